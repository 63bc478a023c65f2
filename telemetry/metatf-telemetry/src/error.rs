//! Errors that occur outside of emitting events.

use std::fmt;
use std::path::PathBuf;

/// The reason why telemetry did not start, stop or dump.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A failed file operation, with its name, the path and the system error.
    File(&'static str, PathBuf, std::io::Error),
    /// An invalid setting of the environment or the program.
    Setting(String),
    /// Telemetry was started before. A process can start it only once for each DTD.
    Started,
    /// Telemetry was not started, or has ended.
    NotRunning,
    /// The trace could not be written, or the buffers are invalid.
    Trace(String),
}

impl Error {
    /// Adds the location to an error of a trace.
    pub(crate) fn at(self, place: &str) -> Self {
        match self {
            Self::Trace(message) => Self::Trace(format!("{place}: {message}")),
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(what, path, error) => write!(f, "telemetry: cannot {what} {}: {error}", path.display()),
            Self::Setting(message) | Self::Trace(message) => write!(f, "telemetry: {message}"),
            Self::Started => {
                f.write_str("telemetry: already started; a process can start telemetry only once for each DTD")
            }
            Self::NotRunning => f.write_str("telemetry: not running"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(_, _, error) => Some(error),
            _ => None,
        }
    }
}
