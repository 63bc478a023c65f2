//! Errors of this library.

use std::{fmt, io};

/// The result type of this library.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this library.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A setting is unknown or out of range.
    Usage(String),
    /// An allocator violated one of its invariants. This is a bug in the simulation, not in the trace.
    Invariant(String),
    /// A limit of this library, such as 2^32 simultaneously live objects, was exceeded.
    Limit(&'static str),
    /// The trace lacks required data.
    Trace(String),
    /// A model is not usable.
    Model(String),
    /// A synthetic trace exceeds this limit on live objects.
    Memory(u64),
    /// The consumer of events has stopped. If it is a thread, `finish` returns the thread's error.
    Stopped,
    /// A system call failed. The fields are the attempted operation and the system's error.
    System(&'static str, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::Invariant(message) => write!(f, "invariant violated: {message}"),
            Self::Limit(limit) => write!(f, "limit exceeded: {limit}"),
            Self::Trace(message) => f.write_str(message),
            Self::Model(message) => write!(f, "the model cannot be used: {message}"),
            Self::Memory(live) => write!(f, "memory limit reached with {live} live objects"),
            Self::Stopped => f.write_str("the thread that processes events has stopped"),
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
