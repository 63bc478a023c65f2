//! A file that is read to its end, and whose truncation is noticed there.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A file that is read from its beginning to its end. If another process truncates a regular file meanwhile, its end is an error, as what is
/// missing there could otherwise be taken for a shorter file.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    /// The length when the file was opened; 0 if it is not a regular one.
    length: u64,
}

/// Why a file that became shorter cannot be read.
#[derive(Debug)]
pub(crate) struct Truncated;

impl WholeFile {
    /// Opens a file.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        Ok(Self { file, length: if about.is_file() { about.len() } else { 0 } })
    }

    /// Returns whether it is a regular file, which is not empty.
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
