//! Contexts whose blocks are never read.

use serde::Serialize;

use super::info::HeapInfo;

/// The accesses of a program to the blocks of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// No block is read or written.
    NeverAccessed,
    /// Blocks are written but never read.
    OnlyWritten,
    /// Some blocks are read, but others are never read.
    SomeUnread,
    /// All blocks are read.
    Read,
    /// Unknown, because uninstrumented code may have read the blocks without a counted load, or because nothing was
    /// counted.
    Unknown,
}

impl Reads {
    /// Classifies a context.
    #[must_use]
    pub fn of(info: &HeapInfo) -> Self {
        let Some(loads) = info.loads else { return Self::Unknown };
        match (loads.total_load_count, loads.total_store_count) {
            // The loads of one block do not indicate that another block was read.
            (_, _) if loads.unread_count == 0 && loads.unknown_count == 0 => Self::Read,
            (0, _) if loads.unknown_count > 0 => Self::Unknown,
            (0, 0) => Self::NeverAccessed,
            (0, _) => Self::OnlyWritten,
            (_, _) if loads.unread_count > 0 => Self::SomeUnread,
            (_, _) => Self::Unknown,
        }
    }
}
