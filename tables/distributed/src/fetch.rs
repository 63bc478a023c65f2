//! Provides a trace in an object store as a file, which is either the original file or a temporary copy.

use std::path::{Path, PathBuf};

use datafusion::error::Result;
use futures::StreamExt as _;
use object_store::path::Path as Location;
use object_store::{GetResultPayload, ObjectStore, ObjectStoreExt as _};
use tempfile::TempDir;

/// A fetched file. The directory of a temporary copy is deleted on drop.
pub(crate) struct Fetched {
    path: PathBuf,
    _folder: Option<TempDir>,
}

impl Fetched {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Fetches a trace with a single request. Only one part of the trace is in memory at a time.
///
/// # Errors
/// Returns an error if the trace does not exist or cannot be read, or if there is no space for a copy.
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
