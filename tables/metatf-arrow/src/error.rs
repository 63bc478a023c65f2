//! Errors.

use std::fmt;
use std::path::PathBuf;

use arrow_schema::ArrowError;

/// An error with the trace and the position in it.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    message: String,
}

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error about a file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, message: impl fmt::Display) -> Self {
        Self { path: path.into(), message: message.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

impl std::error::Error for Error {}

/// Returns the message of a batch error, without Arrow's prefix if it is an error of this crate.
#[must_use]
pub fn message(error: &ArrowError) -> String {
    match error {
        ArrowError::ExternalError(error) => error.to_string(),
        other => other.to_string(),
    }
}
