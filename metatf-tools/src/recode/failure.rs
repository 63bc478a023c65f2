//! The error of recoding.

use metatf::container::Error;
use std::fmt;

/// The reason why a trace was not recoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// An error in the trace.
    Read(Error),
    /// An error in the output.
    Write(Error),
}

/// Formats like `Display`, so that a `main` function that returns the error prints a sentence.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "could not read: {error}"),
            Self::Write(error) => write!(f, "could not write: {error}"),
        }
    }
}

impl std::error::Error for Failure {}
