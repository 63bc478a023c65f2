//! A trace to be written: standard output, or a file that appears only once it is whole.

use crate::failure::{Failure, Result};
use metatf::container::{Forward, Sink};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 18;

/// What a trace is written to until it is finished.
pub(crate) struct Target {
    name: String,
    /// The temporary file beside the one that is asked for.
    temporary: Option<(TempPath, PathBuf)>,
}

impl Target {
    /// Opens the target. A file is written under another name in the same folder; what is no plain file (a pipe,
    /// `/dev/null`) is written as it is.
    pub(crate) fn create(path: &str) -> Result<(Self, Box<dyn Sink + Send>)> {
        if path == "-" {
            let target = Self { name: "standard output".to_owned(), temporary: None };
            return Ok((target, Box::new(Forward(BufWriter::with_capacity(BUFFER, std::io::stdout())))));
        }
        let name = path.to_owned();
        let problem = |e: std::io::Error| Failure::io(path, &e);
        // The file behind a link is replaced, not the link.
        let place = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
        if fs::metadata(&place).is_ok_and(|m| !m.is_file()) {
            let file = fs::OpenOptions::new().write(true).open(&place).map_err(problem)?;
            return Ok((Self { name, temporary: None }, Box::new(Forward(BufWriter::with_capacity(BUFFER, file)))));
        }
        let folder = place.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::metadata(folder).map_err(problem)?;
        let (file, temporary) = temporary(folder).map_err(problem)?.into_parts();
        if let Ok(old) = fs::metadata(&place) {
            fs::set_permissions(&temporary, old.permissions()).map_err(problem)?;
        }
        let target = Self { name, temporary: Some((temporary, place)) };
        Ok((target, Box::new(BufWriter::<File>::with_capacity(BUFFER, file))))
    }

    /// The trace is whole: the file gets its name. Dropped without this, a file is removed.
    pub(crate) fn keep(self, mut sink: Box<dyn Sink + Send>) -> Result<()> {
        sink.flush().map_err(|e| Failure::io(&self.name, &e))?;
        drop(sink);
        match self.temporary {
            Some((temporary, place)) => temporary.persist(place).map_err(|e| Failure::io(&self.name, &e.error)),
            None => Ok(()),
        }
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// A temporary file with the rights that a new file has.
fn temporary(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".metatfc-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// Replaces a file's content, all at once.
pub(crate) fn replace(path: &str, content: &[u8]) -> Result<()> {
    let (target, mut sink) = Target::create(path)?;
    sink.write_all(content).map_err(|e| Failure::io(path, &e))?;
    target.keep(sink)
}
