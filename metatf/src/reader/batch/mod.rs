//! Decodes records many at a time, for readers that learn the types of records at run time.
//!
//! Where records begin is found first, by their tags and the lengths that follow from the plans. Then leaf after leaf is decoded for
//! all records of a type, each in a loop with one plan. The first half is here; columns and views each have the second, as they keep
//! values in different orders.

mod cursor;
mod layout;
mod types;

pub(super) use layout::{Mode, Take};
pub(super) use types::{Type, Types};

/// The records that one or more scans found, in the order of the trace.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Of each record: where its row begins in `places`, or the position of its type in its section.
    pub(super) order: Vec<u32>,
    /// How many records there are; `order` has capacity for more.
    pub(super) len: usize,
    /// Where records begin in the part: a slot at the beginning of each row.
    pub(super) places: Vec<u64>,
    /// Positions of the types that there are records of.
    pub(super) met: Vec<u16>,
    /// Of byte arrays at the ends of records.
    pub(super) bytes: usize,
}

impl Batch {
    /// The entries of `order`.
    pub(super) fn order(&self) -> &[u32] {
        self.order.get(..self.len).unwrap_or_default()
    }
}
