//! Numbers for the names in a trace.

use std::collections::HashMap;

use hatf_trace::Result;

/// A mapping from names to numbers. Equal names share a number, even at different offsets.
#[derive(Default)]
pub(super) struct NameNumbers {
    by_offset: HashMap<u64, u64>,
    by_name: HashMap<Vec<u8>, u64>,
    names: Vec<String>,
}

impl NameNumbers {
    /// Returns the names, indexed by number.
    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }

    /// Returns the number of the name at an offset in the trace, if a number has been assigned.
    pub(super) fn known(&self, offset: u64) -> Option<u64> {
        self.by_offset.get(&offset).copied()
    }

    /// Returns the number of the name at an offset in the trace, assigning one if necessary.
    pub(super) fn number(&mut self, offset: u64, name: impl FnOnce() -> Result<Vec<u8>>) -> Result<u64> {
        if let Some(number) = self.by_offset.get(&offset) {
            return Ok(*number);
        }
        let (next, name) = (self.by_name.len() as u64, name()?);
        let shown = || String::from_utf8_lossy(&name).into_owned();
        let number = match self.by_name.get(&name) {
            Some(number) => *number,
            None => {
                self.names.push(shown());
                self.by_name.insert(name, next);
                next
            }
        };
        self.by_offset.insert(offset, number);
        Ok(number)
    }
}
