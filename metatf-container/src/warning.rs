//! Irregularities in a file that are not errors.

use std::fmt;

/// An irregularity that is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The chunks are intact, but there is no footer, because the file was not closed or was received through an
    /// interrupted pipe (spec 5.2).
    NotClosed,
    /// There is no footer, and the header contains a number of records, which is written when a trace is finished, but
    /// the actual number differs.
    Records {
        /// The number in the header.
        declared: u64,
        /// The number of records read.
        found: u64,
    },
}

impl Warning {
    /// Returns whether the warning proves that records are missing or that there are too many records.
    #[must_use]
    pub fn is_loss(self) -> bool {
        matches!(self, Self::Records { .. })
    }
}

/// A callback for warnings.
type OnWarning = Box<dyn Fn(Warning) + Send + Sync>;

/// The warnings about a file and the callback for each of them.
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
                write!(f, "the trace has no footer: it was not closed, so records may be missing at its end")
            }
            Self::Records { declared, found } => {
                write!(f, "the header declares {declared} records, but the trace contains {found}")
            }
        }
    }
}
