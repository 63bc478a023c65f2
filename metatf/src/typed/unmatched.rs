//! What a trace and a reader do not share, where their DTDs differ (spec 5.3).

use std::fmt;

/// Fields and records that only the trace has, and those that only the reader has: by section, record and path, `game.step.x`;
/// without the section where that is the global one. A rename without `was` shows as one of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// The trace has them, and the reader passes them over.
    pub unread: Vec<String>,
    /// The reader asks for them, and they are in no record of the trace. Fields that the reader's DTD gives a `default` or a
    /// constant are not among them.
    pub absent: Vec<String>,
}

impl Unmatched {
    /// Checks whether nothing is passed over, and nothing asked for in vain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unread.is_empty() && self.absent.is_empty()
    }
}

/// A sentence for each kind, on a line of its own.
impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.unread.is_empty() {
            write!(f, "the trace has {}, which the reader does not know", self.unread.join(", "))?;
        }
        if !self.unread.is_empty() && !self.absent.is_empty() {
            writeln!(f)?;
        }
        if !self.absent.is_empty() {
            write!(f, "the reader has {}, which the trace lacks: 0 or nothing", self.absent.join(", "))?;
        }
        Ok(())
    }
}
