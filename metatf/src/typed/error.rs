//! The reasons why a generated reader cannot open a trace.

use metatf_container::{Error, ErrorKind};
use std::fmt;
use std::path::Path;

/// A container error, or a mismatch between the DTDs of the reader and the trace. The message about a mismatch names
/// both DTDs.
#[derive(Clone)]
pub struct OpenError {
    error: Error,
    about: Option<Box<About>>,
}

/// Additional information about an error.
#[derive(Clone, Default)]
struct About {
    detail: Option<Box<str>>,
    /// The file, if the trace was opened by its path.
    path: Option<Box<Path>>,
}

impl About {
    fn detail(detail: impl Into<Box<str>>) -> Option<Box<Self>> {
        Some(Box::new(Self { detail: Some(detail.into()), path: None }))
    }
}

impl OpenError {
    pub(crate) fn mismatch(detail: impl Into<Box<str>>) -> Self {
        let kind = ErrorKind::Mismatch("see the details");
        Self { error: Error::at(0, kind), about: About::detail(detail) }
    }

    pub(crate) fn dtd(detail: impl Into<Box<str>>) -> Self {
        Self { error: Error::at(0, ErrorKind::Dtd("the trace's DTD has errors")), about: About::detail(detail) }
    }

    /// Adds the file's path to the error.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        let About { detail, .. } = self.about.map(|about| *about).unwrap_or_default();
        Self { error: self.error, about: Some(Box::new(About { detail, path: Some(path.into()) })) }
    }

    /// Returns the error without its details.
    #[must_use]
    pub fn error(&self) -> Error {
        self.error
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self { error, about: None }
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        error.error
    }
}

/// Prints like `Display`, so that a `main` that returns the error prints a readable message.
impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = self.about.as_deref();
        if let Some(path) = about.and_then(|about| about.path.as_deref()) {
            write!(f, "{}: ", path.display())?;
        }
        match (about.and_then(|about| about.detail.as_deref()), self.error.kind) {
            (Some(detail), ErrorKind::Dtd(what)) => write!(f, "{what}:\n{detail}"),
            (Some(detail), _) => write!(f, "the trace's DTD does not match the reader's: {detail}"),
            (None, _) => write!(f, "{}", self.error),
        }
    }
}

impl std::error::Error for OpenError {}
