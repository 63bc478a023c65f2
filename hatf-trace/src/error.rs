//! The library's errors.

use std::fmt;
use std::io;

/// The result of this library's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this library.
pub enum Error {
    /// A system call failed: what was tried, and the system's error.
    System(String, io::Error),
    /// The program to record could not be started.
    Start(String, io::Error),
    /// The options contradict each other, or one is missing.
    Usage(String),
    /// A trace could not be read or written.
    Trace(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Makes a [`Error::System`] from what was tried.
    pub fn system(context: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let context = context.into();
        |error| Self::System(context, error)
    }

    /// Makes an [`Error::System`] about a temporary file, with its folder, as that may be full where nothing else is.
    pub fn temporary_file() -> impl FnOnce(io::Error) -> Self {
        Self::system(format!("a temporary file in {}", std::env::temp_dir().display()))
    }

    /// Makes an [`Error::Trace`] about an input of a form that the system cannot read. The reader of the form does not know the input's name, which its
    /// caller adds as it does for damage.
    pub(crate) fn unreadable(form: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Trace(format!("{form}: {error}").into())
    }

    /// Returns whether the reader of our output has closed it, which is not an error for a command.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::System(_, error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Prints as `Display`, so that a `main` that returns the error prints a sentence.
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
