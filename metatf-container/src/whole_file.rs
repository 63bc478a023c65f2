//! Reads a file to its end and detects truncation there.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A file read from start to end. If another process truncates a regular file in the meantime, an error is returned at
/// the end, because what was read could otherwise be mistaken for a complete shorter file.
///
/// # Examples
///
/// ```
/// use metatf_container::WholeFile;
/// use std::io::{ErrorKind, Read, Write};
///
/// let mut file = tempfile::NamedTempFile::new()?;
/// file.write_all(b"one two")?;
/// let (mut before, mut after) = (String::new(), String::new());
/// WholeFile::open(file.path())?.read_to_string(&mut before)?;
/// assert_eq!(before, "one two");
///
/// let mut reader = WholeFile::open(file.path())?;
/// file.as_file().set_len(3)?; // Another process truncates the file.
/// let end = reader.read_to_string(&mut after);
/// assert_eq!(end.map_err(|error| error.kind()), Err(ErrorKind::UnexpectedEof));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
