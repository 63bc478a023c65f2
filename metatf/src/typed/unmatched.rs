//! The differences between a trace and a reader with different DTDs (spec 5.3).

use std::fmt;

/// Fields and records that only the trace's DTD or only the reader's DTD contains, named by section, record and path,
/// as in `game.step.x`. Names in the global section omit the section. A field renamed without `was` appears in both
/// lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Names that only the trace's DTD contains. The reader skips these fields and records.
    pub unread: Vec<String>,
    /// Names that the reader expects but that do not occur in the trace's DTD. Fields for which the reader's DTD
    /// specifies a `default` or a constant are not listed.
    pub absent: Vec<String>,
}

impl Unmatched {
    /// Returns whether both lists are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unread.is_empty() && self.absent.is_empty()
    }
}

/// Prints one sentence per nonempty list, each on its own line.
impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.unread.is_empty() {
            write!(f, "the trace has {}, which the reader does not declare", self.unread.join(", "))?;
        }
        if !self.unread.is_empty() && !self.absent.is_empty() {
            writeln!(f)?;
        }
        if !self.absent.is_empty() {
            write!(
                f,
                "the reader has {}, which the trace does not declare, so the values are 0 or empty",
                self.absent.join(", ")
            )?;
        }
        Ok(())
    }
}
