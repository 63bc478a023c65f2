//! Why a trace cannot be opened by a generated reader.

use metatf_container::{Error, ErrorKind};
use std::fmt;
use std::path::Path;

/// An error of the container, or a DTD that does not fit; then the text names both sides.
#[derive(Clone)]
pub struct OpenError {
    error: Error,
    detail: Option<Box<str>>,
    /// The file, if the trace was opened by its path.
    path: Option<Box<Path>>,
}

impl OpenError {
    pub(crate) fn mismatch(detail: impl Into<Box<str>>) -> Self {
        let kind = ErrorKind::Mismatch("see the details");
        Self { error: Error::at(0, kind), detail: Some(detail.into()), path: None }
    }

    pub(crate) fn dtd(detail: impl Into<Box<str>>) -> Self {
        Self {
            error: Error::at(0, ErrorKind::Dtd("the trace's DTD has errors")),
            detail: Some(detail.into()),
            path: None,
        }
    }

    /// Adds the file to an error.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    /// The error without its details.
    #[must_use]
    pub fn error(&self) -> Error {
        self.error
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self { error, detail: None, path: None }
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        error.error
    }
}

/// Prints as `Display`, so that a `main` that returns the error prints a sentence.
impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        match (&self.detail, self.error.kind) {
            (Some(detail), ErrorKind::Dtd(what)) => write!(f, "{what}:\n{detail}"),
            (Some(detail), _) => write!(f, "the trace's DTD does not fit the reader's: {detail}"),
            (None, _) => write!(f, "{}", self.error),
        }
    }
}

impl std::error::Error for OpenError {}
