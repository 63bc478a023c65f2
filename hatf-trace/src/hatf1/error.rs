//! What is wrong with a stream, and where.

use super::field::Field;
use std::{fmt, io};

/// The result of reading or writing.
pub type Result<T> = std::result::Result<T, Error>;

/// An error in a stream, and its place.
pub struct Error {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The offset in the stream of the first byte at fault; for a writer the bytes written before.
    pub offset: u64,
    /// Where the record begins.
    pub record: u64,
    /// The field at fault, where it is one's.
    pub field: Option<Field>,
}

/// The kind of the error.
#[derive(Debug)]
pub enum ErrorKind {
    /// The stream could not be read, or written.
    Io(io::Error),
    /// The stream ends within a record, which needs this many bytes more.
    Truncated(u64),
    /// A byte that is none of what may stand there.
    Unknown {
        /// What the byte encodes.
        item: &'static str,
        /// The byte.
        found: u8,
        /// The values that are allowed.
        expected: &'static str,
    },
    /// The interpretation stores bytes, and the field never had a width.
    NoWidth,
    /// Bytes that are longer than the format can hold.
    TooLong {
        /// What the bytes hold.
        item: &'static str,
        /// Their length.
        length: u64,
    },
}

/// Prints as `Display`, so that a `main` that returns the error prints a sentence.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let ErrorKind::Io(error) = &self.kind {
            return error.fmt(f);
        }
        write!(f, "HATF 1.0, offset {}", self.offset)?;
        if let Some(field) = self.field {
            write!(f, ", field {}", field.name())?;
        }
        if self.record != self.offset {
            write!(f, " (record at {})", self.record)?;
        }
        match &self.kind {
            ErrorKind::Io(_) => Ok(()),
            ErrorKind::Truncated(missing) => write!(f, ": the stream ends {missing} bytes too early"),
            ErrorKind::Unknown { item, found, expected } => {
                write!(f, ": {found} is no {item}; expected {expected}")
            }
            ErrorKind::NoWidth => write!(f, ": the interpretation stores bytes, and the field never had a width"),
            ErrorKind::TooLong { item, length } => {
                write!(f, ": {item} of {length} bytes; at most 65535 can be written")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        match error.kind {
            ErrorKind::Io(error) => Self::System("HATF 1.0".to_owned(), error),
            _ => Self::Trace(error.into()),
        }
    }
}
