//! Errors in a stream, with their positions.

use super::field::Field;
use std::{fmt, io};

/// The result of reading or writing a stream.
pub type Result<T> = std::result::Result<T, Error>;

/// An error in a stream, and its position.
pub struct Error {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The offset in the stream of the first invalid byte; for a writer, the number of bytes written before the error.
    pub offset: u64,
    /// The offset of the record.
    pub record: u64,
    /// The invalid field, if the error concerns a single field.
    pub field: Option<Field>,
}

/// The kind of the error.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The stream could not be read or written.
    Io(io::Error),
    /// The stream ends within a record, which needs this many more bytes.
    Truncated(u64),
    /// A byte has a value that is not allowed.
    Unknown {
        /// The item that the byte encodes.
        item: &'static str,
        /// The byte.
        found: u8,
        /// The allowed values.
        expected: &'static str,
    },
    /// The interpretation stores bytes, but the field never had a width.
    NoWidth,
    /// A byte string is longer than the format allows.
    TooLong {
        /// The item that the bytes contain.
        item: &'static str,
        /// The number of bytes.
        length: u64,
    },
}

/// Prints the same text as `Display`, so that a `main` that returns the error prints a readable message.
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
            ErrorKind::Truncated(missing) => write!(f, ": the stream is truncated; {missing} more bytes were expected"),
            ErrorKind::Unknown { item, found, expected } => {
                write!(f, ": expected {item} {expected}, found {found}")
            }
            ErrorKind::NoWidth => write!(f, ": the interpretation stores bytes, but no width was set for the field"),
            ErrorKind::TooLong { item, length } => {
                write!(f, ": {item} of {length} bytes exceeds the maximum of 65535")
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
