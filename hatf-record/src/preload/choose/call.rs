//! A call that a hook has seen.

use crate::event::{Flags, Kind};

/// The numbers of a call, by their names in [`crate::SpoolEvent`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Call {
    pub(crate) size: usize,
    pub(crate) address: usize,
    pub(crate) old: usize,
    pub(crate) extra: usize,
    pub(crate) flags: Flags,
}

impl Call {
    /// Leaves out where the blocks are.
    pub(crate) fn without_address(self) -> Self {
        let flags = if self.address == 0 { self.flags } else { Flags::NO_ADDRESS };
        Self { address: 0, old: 0, flags, ..self }
    }
}

/// Whose block a call returned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// That of the functions behind ours: `malloc_usable_size` knows it.
    Malloc,
    /// Another allocator's.
    Other,
}

/// What is recorded of the beginning of a realloc.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Begun {
    /// Nothing: only programs with several threads need it.
    No,
    /// A [`Kind::ReallocBegin`].
    Recorded,
    /// Recording was off. Another thread may be given the old block, and record that, before the call returns.
    Off,
}

/// Returns whether calls of a kind end a block, and begin none.
#[inline]
pub(crate) fn ends_only(kind: Kind) -> bool {
    matches!(kind, Kind::Free | Kind::ReallocBegin)
}
