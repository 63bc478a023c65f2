//! A call observed by a hook.

use crate::event::{Flags, Kind};

/// The size, addresses and extra value of a call, named as in [`crate::SpoolEvent`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Call {
    pub(crate) size: usize,
    pub(crate) address: usize,
    pub(crate) old: usize,
    pub(crate) extra: usize,
    pub(crate) flags: Flags,
}

impl Call {
    /// Returns a copy for a function that is rarely called, so that the call itself can stay in registers.
    #[inline(always)]
    pub(crate) fn copied(&self) -> Call {
        let Self { size, address, old, extra, flags } = *self;
        Self { size, address, old, extra, flags }
    }

    /// Removes the addresses of the blocks.
    pub(crate) fn without_address(self) -> Self {
        let flags = if self.address == 0 { self.flags } else { Flags::NO_ADDRESS };
        Self { address: 0, old: 0, flags, ..self }
    }
}

/// The allocator of a call's block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// The underlying functions, so their `malloc_usable_size` accepts the block.
    Malloc,
    /// Another allocator.
    Other,
}

/// The record of the start of a realloc.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Begun {
    /// Nothing was recorded, because only multi-threaded programs need this record.
    No,
    /// A [`Kind::ReallocBegin`] was recorded.
    Recorded,
    /// Recording was off. Another thread may receive the old block, and record that, before the call returns.
    Off,
}

/// Returns whether calls of this kind end a block without beginning one.
#[inline]
pub(crate) fn ends_only(kind: Kind) -> bool {
    matches!(kind, Kind::Free | Kind::ReallocBegin)
}
