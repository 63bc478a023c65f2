//! Standard output, or a file that appears only once it is whole.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use metatf::container::{Forward, Sink};
use tempfile::{NamedTempFile, TempPath};

/// Bytes that are written at once.
const BUFFER: usize = 1 << 18;

/// An output that is being written.
#[derive(Debug)]
pub struct OutputFile {
    /// The temporary file beside the one that is asked for, and the name that it gets.
    temporary: Option<(TempPath, PathBuf)>,
}

impl OutputFile {
    /// Opens an output; `-` is standard output. A file is written under another name in the same folder. What is no plain
    /// file (a pipe, `/dev/null`) is written as it is.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path) -> io::Result<(Self, Box<dyn Sink + Send>)> {
        if path == Path::new("-") {
            let sink = Forward(BufWriter::with_capacity(BUFFER, io::stdout()));
            return Ok((Self { temporary: None }, Box::new(sink)));
        }
        // The file behind a link is replaced, not the link.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&place).is_ok_and(|m| !m.is_file()) {
            let file = OpenOptions::new().write(true).open(&place)?;
            return Ok((Self { temporary: None }, Box::new(Forward(BufWriter::with_capacity(BUFFER, file)))));
        }
        let folder = place.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The system's error for a folder that is not there.
        fs::metadata(folder)?;
        let (file, temporary) = temporary(folder)?.into_parts();
        if let Ok(old) = fs::metadata(&place) {
            fs::set_permissions(&temporary, old.permissions())?;
        }
        let output = Self { temporary: Some((temporary, place)) };
        Ok((output, Box::new(BufWriter::with_capacity(BUFFER, file))))
    }

    /// Whether the file appears once it is whole. Nobody reads it before, so that nothing has to be flushed.
    #[must_use]
    pub fn appears_whole(&self) -> bool {
        self.temporary.is_some()
    }

    /// Flushes the sink and gives the file its name. Dropped without this, the file is removed.
    ///
    /// # Errors
    /// The system's.
    pub fn keep(self, mut sink: Box<dyn Sink + '_>) -> io::Result<()> {
        sink.flush()?;
        drop(sink);
        match self.temporary {
            Some((temporary, place)) => temporary.persist(place).map_err(|error| error.error),
            None => Ok(()),
        }
    }
}

/// Makes a temporary file with the rights that a new file has.
fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".metatf-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let entries = || fs::read_dir(folder.path()).unwrap().count();
        let (output, mut sink) = OutputFile::create(&path).unwrap();
        sink.write_all(b"first").unwrap();
        assert!(!path.exists() && output.appears_whole());
        output.keep(sink).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        // One that is given up leaves what was there.
        let (output, mut sink) = OutputFile::create(&path).unwrap();
        sink.write_all(b"second").unwrap();
        drop((output, sink));
        assert_eq!((fs::read(&path).unwrap().as_slice(), entries()), (&b"first"[..], 1));
        assert!(OutputFile::create(&folder.path().join("no/such")).is_err());
    }
}
