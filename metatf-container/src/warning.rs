//! What is odd about a file, and no error.

use std::fmt;

/// Something that is not as it should be, and no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The chunks are whole, and there is no footer: the file was not closed, or came through a pipe that broke off
    /// (spec 5.2).
    NotClosed,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotClosed => {
                write!(f, "the trace has no footer: it was not closed, records may be missing at its end")
            }
        }
    }
}
