//! Errors returned by this crate.

use std::fmt;
use std::io;

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error returned by this crate.
pub enum Error {
    /// A system call failed: the attempted operation and the system's error.
    System(String, io::Error),
    /// The program to record could not be started: a description and the system's error.
    Start(String, io::Error),
    /// The options contradict each other, or a required option is missing.
    Usage(String),
    /// A trace could not be read or written.
    Trace(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Returns a function that wraps an I/O error as an [`Error::System`] with this context.
    pub fn system(context: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let context = context.into();
        |error| Self::System(context, error)
    }

    /// Returns a function that wraps an I/O error on a temporary file. The message names the directory, because the
    /// temporary file system may be full even if other file systems are not.
    pub fn temporary_file() -> impl FnOnce(io::Error) -> Self {
        Self::system(format!("a temporary file in {}", std::env::temp_dir().display()))
    }

    /// Returns a function that wraps an I/O error on an input of this format as an [`Error::Trace`]. The caller adds
    /// the name of the input, as it does for corrupt inputs.
    pub(crate) fn unreadable(form: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Trace(format!("{form}: {error}").into())
    }

    /// Converts a runtime error, replacing numbers by the names in the DTD.
    pub(crate) fn in_trace(format: &metatf::format::Format, error: &metatf::Error) -> Self {
        let text = metatf::explain(format, error).to_string();
        Self::Trace(match &error.kind {
            metatf::ErrorKind::Io(system) => io::Error::new(io::Error::from(*system).kind(), text).into(),
            _ => text.into(),
        })
    }

    /// Returns whether a system call failed, as opposed to the content being wrong.
    #[must_use]
    pub fn is_of_system(&self) -> bool {
        match self {
            Self::System(..) | Self::Start(..) => true,
            Self::Trace(error) => error.is::<io::Error>(),
            Self::Usage(_) => false,
        }
    }

    /// Returns whether the reader of the output has closed the pipe. Commands do not treat this as an error.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::System(_, error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Prints the same text as `Display`, so that a `main` that returns the error prints a readable message.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(context, error) if error.kind() == io::ErrorKind::IsADirectory => {
                write!(f, "{context} is a directory, not a file")
            }
            Self::System(context, error) => write!(f, "{context}: {error}"),
            Self::Start(program, error) => write!(f, "cannot run {program}: {error}"),
            Self::Usage(message) => f.write_str(message),
            Self::Trace(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System(_, error) | Self::Start(_, error) => Some(error),
            Self::Usage(_) => None,
            Self::Trace(error) => error.source(),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::System("standard output".to_owned(), error)
    }
}
