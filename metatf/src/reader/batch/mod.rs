//! Decodes records in batches, for readers that learn the record types at run time.
//!
//! The first step finds the start of each record from its tag and the length determined by the plans. The second step
//! decodes the records of a type leaf by leaf, each leaf in a loop with a single plan. The first step is implemented
//! here. Columns and views implement the second step separately, because they arrange values differently.

mod cursor;
mod layout;
mod types;

pub(super) use layout::{Mode, Take};
pub(super) use types::{Type, Types};

/// The records found by one or more scans, in trace order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// For each record, the start of its row in `places` (if rows are requested), or otherwise the position of its type
    /// in its section.
    pub(super) order: Vec<u32>,
    /// Number of records; `order` has capacity for more.
    pub(super) len: usize,
    /// The start of each record within the part, stored in the first slot of its row.
    pub(super) places: Vec<u64>,
    /// Positions, in the section, of the record types encountered.
    pub(super) met: Vec<u16>,
    /// Number of bytes in byte arrays at the ends of records.
    pub(super) bytes: usize,
}

impl Batch {
    /// Returns the used entries of `order`.
    pub(super) fn order(&self) -> &[u32] {
        self.order.get(..self.len).unwrap_or_default()
    }
}
