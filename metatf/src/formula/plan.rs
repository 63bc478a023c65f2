//! The current decoding parameters of a numeric leaf.

use super::Width;

/// The current decoding parameters of a numeric leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Plan {
    pub(crate) mask: u64,
    pub(crate) sign: u64,
    pub(crate) base: u64,
    pub(crate) history: u64,
    /// The cell whose value, masked by `history`, is added: the leaf's previous value, or the last value of a
    /// referenced leaf.
    pub(crate) read: u32,
    /// Cell of the previous value.
    pub(crate) write: u32,
    /// Cell of the last value, which width expressions, counts and references read.
    pub(crate) last: u32,
    /// Number of bytes stored.
    pub(crate) width: Width,
    /// Properties that the formula does not cover; 0 for most leaves, which neither read nor write a cell.
    pub(crate) flags: u8,
}

/// `Plan::flags`: the value does not follow from the formula alone, because it is a constant or comes from a stream
/// section. For a byte array, this applies to its length.
pub(crate) const SPECIAL: u8 = 1;
/// `Plan::flags`: `history` is set.
pub(crate) const HISTORY: u8 = 2;
/// `Plan::flags`: the previous value is needed later.
pub(crate) const PREVIOUS: u8 = 4;
/// `Plan::flags`: a width or count in the same record depends on the last value.
pub(crate) const LAST: u8 = 8;
/// `Plan::flags`: a reference, possibly in a later record, depends on the last value.
pub(crate) const REFERENCED: u8 = 16;
/// `Plan::flags`: a byte array. The formula yields its length (with `raw` 0) unless it is special.
pub(crate) const BYTES: u8 = 32;
/// `Plan::flags`, with `SPECIAL`: a predicted leaf. `base` is the index of its model.
pub(crate) const PREDICTED: u8 = 64;
/// `Plan::flags`, with `SPECIAL`: the next element of a stream section, with a stride of 1. `base` is the [`slot`] of
/// its cursor.
pub(crate) const STRIDED: u8 = 128;

impl Plan {
    /// A plan that does not tell how a leaf is encoded.
    pub(crate) const UNKNOWN: Self = Self { flags: SPECIAL, ..Self::straight(Width::saturating(0), None) };

    /// Creates the plan of a leaf whose value is the stored integer or, with a base, the base plus the stored integer.
    pub(crate) const fn straight(width: Width, base: Option<u64>) -> Self {
        let mask = width.mask();
        let (sign, base) = match base {
            Some(base) => (mask ^ (mask >> 1), base),
            None => (0, 0),
        };
        Self { mask, sign, base, history: 0, read: 0, write: 0, last: 0, width, flags: 0 }
    }

    /// Returns whether both plans encode a leaf without history in the same way.
    pub(crate) fn stores_as(&self, other: &Self) -> bool {
        (self.width, self.sign, self.base) == (other.width, other.sign, other.base)
    }

    #[inline]
    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn set(&mut self, flag: u8, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }

    /// Returns whether the interpretation is `delta` or `stride`. These read and write the same cell, unlike a
    /// reference.
    pub(crate) fn uses_previous(&self) -> bool {
        self.is(HISTORY) && self.read == self.write
    }
}
