//! Operations of a replay, 16 bytes each.

/// Maximum number of operations in a block of operations.
pub(super) const BLOCK: usize = 4096;

/// Maximum size in an operation: 2^48 - 1 bytes.
pub(super) const MOST: u64 = (1 << 48) - 1;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// `malloc(size)`
    Malloc,
    /// `calloc(1, size)`
    Calloc,
    /// `realloc(block, size)`
    Realloc,
    /// `posix_memalign(2^alignment, size)`
    Aligned,
    /// `free(block)`; `size` is the size of the block.
    Free,
    /// Starts the thread whose number is in `slot`.
    Start,
    /// Waits until `size` nanoseconds after the beginning.
    Wait,
    /// Begins the replay after the initial blocks were set up.
    Begin,
    /// Marks the end of the phase whose number is in `slot`.
    PhaseEnd,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Malloc,
        Self::Calloc,
        Self::Realloc,
        Self::Aligned,
        Self::Free,
        Self::Start,
        Self::Wait,
        Self::Begin,
        Self::PhaseEnd,
    ];

    /// Returns whether the operation calls the allocator.
    #[inline]
    pub(super) fn is_call(self) -> bool {
        (self as u8) <= Self::Free as u8
    }
}

/// An operation. The operations on a slot have ascending turns across all threads. Each operation waits for its turn,
/// which preserves the order in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    /// The exponent of the block's alignment.
    pub(super) alignment: u8,
    /// The size in bytes, at most [`MOST`].
    pub(super) size: u64,
    /// The slot that contains the block's address.
    pub(super) slot: u32,
    /// The number of earlier operations on this slot.
    pub(super) turn: u32,
}

impl Operation {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, alignment: 0, size: 0, slot: 0, turn: 0 }
    }

    #[inline]
    pub(super) fn to_words(self) -> [u64; 2] {
        let head = self.kind as u64 | u64::from(self.alignment) << 8 | self.size << 16;
        [head, u64::from(self.slot) | u64::from(self.turn) << 32]
    }

    /// Decodes an operation. Returns `None` if the kind is invalid.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "extracts parts of the words")]
    pub(super) fn from_words([head, place]: [u64; 2]) -> Option<Self> {
        let kind = *Kind::ALL.get((head & 0xff) as usize)?;
        let (slot, turn) = (place as u32, (place >> 32) as u32);
        Some(Self { kind, alignment: (head >> 8) as u8, size: head >> 16, slot, turn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_back() {
        for (n, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, n);
            let operation = Operation { kind, alignment: 12, size: MOST - 5, slot: u32::MAX - 1, turn: 77 };
            assert_eq!(Operation::from_words(operation.to_words()), Some(operation));
        }
        assert_eq!(Operation::from_words([9, 0]), None);
    }
}
