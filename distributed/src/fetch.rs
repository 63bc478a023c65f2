//! A trace of an object store as a file: where it lies, or a copy of it for as long as it is read.

use std::path::{Path, PathBuf};

use datafusion::error::Result;
use futures::StreamExt as _;
use object_store::path::Path as Location;
use object_store::{GetResultPayload, ObjectStore, ObjectStoreExt as _};
use tempfile::TempDir;

/// A file, which goes with its folder if it is a copy.
pub(crate) struct Fetched {
    path: PathBuf,
    _folder: Option<TempDir>,
}

impl Fetched {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Fetches a trace: one request, and memory for one part of it.
///
/// # Errors
/// It is not there, or cannot be read; there is no space for a copy.
pub(crate) async fn fetch(store: &dyn ObjectStore, location: &Location) -> Result<Fetched> {
    let found = store.get(location).await?;
    let mut parts = match found.payload {
        GetResultPayload::File(_, path) => return Ok(Fetched { path, _folder: None }),
        GetResultPayload::Stream(parts) => parts,
    };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(location.filename().unwrap_or("trace.mtf"));
    let mut file = std::fs::File::create_new(&path)?;
    while let Some(part) = parts.next().await {
        std::io::Write::write_all(&mut file, &part?)?;
    }
    Ok(Fetched { path, _folder: Some(folder) })
}
