//! Operations: what one thread of a replay does, in 16 bytes each.

/// Operations are given out in blocks of at most this many.
pub(super) const BLOCK: usize = 4096;

/// The largest size that an operation holds: 2^48 - 1 bytes.
pub(super) const MOST: u64 = (1 << 48) - 1;

/// What an operation does.
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
    /// `free(block)`; the size is that of the block.
    Free,
    /// Starts the thread whose number is in `slot`.
    Start,
    /// Waits until `size` nanoseconds after the beginning.
    Wait,
    /// What was set up is there, and the replay begins.
    Begin,
    /// The phase whose number is in `slot` ended.
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

    /// Whether it calls the allocator.
    #[inline]
    pub(super) fn is_call(self) -> bool {
        (self as u8) <= Self::Free as u8
    }
}

/// An operation. Those of one slot carry ascending turns over all threads: one waits until it is its turn, which is the order
/// in which the trace has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    /// The power of two to which a block is aligned.
    pub(super) alignment: u8,
    /// Bytes; at most [`MOST`].
    pub(super) size: u64,
    /// Where the block's address is kept.
    pub(super) slot: u32,
    /// How many operations on this slot came before.
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

    /// `None`: no operation has this kind.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "parts of the words")]
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
