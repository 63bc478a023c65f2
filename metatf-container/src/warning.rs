//! What is odd about a file, and no error.

use std::fmt;

/// Something that is not as it should be, and no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The chunks are whole, and there is no footer: the file was not closed, or came through a pipe that broke off
    /// (spec 5.2).
    NotClosed,
    /// The header has the number of records, which is written when a trace is finished, and there are not as many.
    Records {
        /// By the header.
        declared: u64,
        /// That were read.
        found: u64,
    },
}

impl Warning {
    /// Returns whether records are missing for certain, or are too many.
    #[must_use]
    pub fn is_loss(self) -> bool {
        matches!(self, Self::Records { .. })
    }
}

/// Is called with a warning.
type OnWarning = Box<dyn Fn(Warning) + Send + Sync>;

/// The warnings about a file, and what is called with each.
#[derive(Default)]
pub(crate) struct Warnings {
    all: Vec<Warning>,
    on_warning: Option<OnWarning>,
}

impl Warnings {
    pub(crate) fn all(&self) -> &[Warning] {
        &self.all
    }

    pub(crate) fn push(&mut self, warning: Warning) {
        if let Some(tell) = &self.on_warning {
            tell(warning);
        }
        self.all.push(warning);
    }

    pub(crate) fn tell(&mut self, on_warning: OnWarning) {
        self.on_warning = Some(on_warning);
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotClosed => {
                write!(f, "the trace has no footer: it was not closed, records may be missing at its end")
            }
            Self::Records { declared, found } => write!(f, "the header says {declared} records, there are {found}"),
        }
    }
}
