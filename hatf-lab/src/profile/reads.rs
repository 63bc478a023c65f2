//! Contexts whose blocks nobody reads.

use serde::Serialize;

use super::info::HeapInfo;

/// What a program does with the blocks of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// Neither reads nor writes one.
    NeverAccessed,
    /// Writes, and reads none.
    OnlyWritten,
    /// Reads some, and never reads others.
    SomeUnread,
    /// Reads all.
    Read,
    /// Code that is not instrumented may have read the blocks that no load was counted of; or nothing was counted.
    Unknown,
}

impl Reads {
    /// Returns what is known of a context.
    #[must_use]
    pub fn of(info: &HeapInfo) -> Self {
        let Some(loads) = info.loads else { return Self::Unknown };
        match (loads.total_load_count, loads.total_store_count) {
            // Loads of one block say nothing of another.
            (_, _) if loads.unread_count == 0 && loads.unknown_count == 0 => Self::Read,
            (0, _) if loads.unknown_count > 0 => Self::Unknown,
            (0, 0) => Self::NeverAccessed,
            (0, _) => Self::OnlyWritten,
            (_, _) if loads.unread_count > 0 => Self::SomeUnread,
            (_, _) => Self::Unknown,
        }
    }
}
