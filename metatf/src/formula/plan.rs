//! How to decode one numeric leaf now.

/// How to decode one numeric leaf now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Plan {
    pub(crate) mask: u64,
    pub(crate) sign: u64,
    pub(crate) base: u64,
    pub(crate) history: u64,
    /// Cell that is added (masked by `history`): the leaf's previous value, or the last value of a referenced leaf.
    pub(crate) read: u32,
    /// Cell of the previous value.
    pub(crate) write: u32,
    /// Cell of the last value: width expressions, counts and references look here.
    pub(crate) last: u32,
    /// Bytes stored, at most 8. All that makes plans sees to that: `buffer/room.rs` counts on it.
    pub(crate) width: u8,
    /// What the formula does not say; 0 for most leaves, which read no cell and write none.
    pub(crate) flags: u8,
}

/// `Plan::flags`: the value does not come from the formula alone: a constant, or from a stream section. Of a byte array:
/// its length does not.
pub(crate) const SPECIAL: u8 = 1;
/// `Plan::flags`: `history` is set.
pub(crate) const HISTORY: u8 = 2;
/// `Plan::flags`: somebody looks at the previous value.
pub(crate) const PREVIOUS: u8 = 4;
/// `Plan::flags`: a width or a count of the same record looks at the last value.
pub(crate) const LAST: u8 = 8;
/// `Plan::flags`: a reference looks at the last value, maybe from a later record.
pub(crate) const REFERENCED: u8 = 16;
/// `Plan::flags`: a byte array. The formula gives its length (with `raw` 0) unless it is special.
pub(crate) const BYTES: u8 = 32;
/// `Plan::flags`, with `SPECIAL`: a predicted leaf. `base` is the index of its model.
pub(crate) const PREDICTED: u8 = 64;
/// `Plan::flags`, with `SPECIAL`: the next element of a stream section, one after the other. `base` is the
/// [`slot`] of its cursor.
pub(crate) const STRIDED: u8 = 128;

/// The bits of a stored integer of so many bytes, 8 at most.
pub(crate) const fn mask(width: u8) -> u64 {
    if width == 0 { 0 } else { u64::MAX >> (64 - 8 * width as u32) }
}

impl Plan {
    /// The stored integer, or with a base the offset from it.
    pub(crate) const fn straight(width: u8, base: Option<u64>) -> Self {
        // Over 8 there is none; straight writers count on that.
        let width = if width < 8 { width } else { 8 };
        let width = if width < 8 { width } else { 8 };
        let mask = mask(width);
        let (sign, base) = match base {
            Some(base) => (mask ^ (mask >> 1), base),
            None => (0, 0),
        };
        Self { mask, sign, base, history: 0, read: 0, write: 0, last: 0, width, flags: 0 }
    }

    /// Whether both plans say the same of a leaf without history.
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

    /// `delta` or `stride`: a reference reads another cell.
    pub(crate) fn uses_previous(&self) -> bool {
        self.is(HISTORY) && self.read == self.write
    }
}
