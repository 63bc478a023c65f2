//! What can go wrong.

use std::fmt;
use std::io;

/// The result of this library's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, and with what.
#[derive(Debug)]
pub enum Error {
    /// The system refused something: what was tried, and its answer.
    System(String, io::Error),
    /// The program to record could not be started.
    Start(String, io::Error),
    /// What was asked for does not go together, or is not enough.
    Usage(String),
    /// A trace could not be read or written.
    Trace(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Puts what was tried before the system's answer.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |error| Self::System(what, error)
    }

    /// Whether the reader of our output went away, which is no error for a command.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::System(_, error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(what, error) => write!(f, "{what}: {error}"),
            Self::Start(program, error) => write!(f, "cannot run {program}: {error}"),
            Self::Usage(what) => f.write_str(what),
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
        Self::System("output".to_owned(), error)
    }
}
