//! Reads a file to its end and detects truncation there.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A file read from start to end. If another process truncates a regular file in the meantime, an error is returned at
/// the end, because what was read could otherwise be mistaken for a complete shorter file.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    /// Length of the file when it was opened, or 0 if it is not a regular file.
    length: u64,
}

/// The error for a file that was truncated while being read.
#[derive(Debug)]
pub(crate) struct Truncated;

impl WholeFile {
    /// Opens a file.
    ///
    /// # Errors
    /// Returns errors from the system.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        Ok(Self { file, length: if about.is_file() { about.len() } else { 0 } })
    }

    /// Returns whether this is a nonempty regular file.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        self.length > 0
    }
}

impl Read for WholeFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(bytes)?;
        if read == 0 && !bytes.is_empty() && self.length > 0 && self.file.metadata()?.len() < self.length {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, Truncated));
        }
        Ok(read)
    }
}

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the file was truncated while it was being read")
    }
}

impl std::error::Error for Truncated {}
