//! The library's errors.

use std::{fmt, io};

/// The result of this library's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this library.
#[derive(Debug)]
pub enum Error {
    /// A setting is unknown or out of range.
    Usage(String),
    /// An allocator broke one of its invariants: a bug in the simulation, not in the trace.
    Invariant(String),
    /// More than this library counts: 2^32 objects live at once, for example.
    Limit(&'static str),
    /// The trace lacks what is needed.
    Trace(String),
    /// A model cannot be used.
    Model(String),
    /// A synthetic trace has more live objects than its limit: this many.
    Memory(u64),
    /// The thread that takes events has stopped; its own error is returned by `finish`.
    Stopped,
    /// A system call failed: what was tried, and the system's error.
    System(&'static str, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::Invariant(message) => write!(f, "invariant broken: {message}"),
            Self::Limit(limit) => write!(f, "too large: {limit}"),
            Self::Trace(message) => f.write_str(message),
            Self::Model(message) => write!(f, "the model: {message}"),
            Self::Memory(live) => write!(f, "the memory limit: {live} objects are live"),
            Self::Stopped => f.write_str("the thread that takes events has stopped"),
            Self::System(tried, error) => write!(f, "{tried}: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System(_, error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for hatf_trace::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Usage(message) => Self::Usage(message),
            Error::System(tried, error) => Self::System(tried.to_owned(), error),
            other => Self::Trace(other.into()),
        }
    }
}
