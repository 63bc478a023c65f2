//! How many bytes a leaf stores. Stores through raw pointers rely on it, so a width over 8 cannot exist.

/// Counts the bytes of a stored integer: 0 to 8. No other file can make one of more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Width(u8);

impl Width {
    const MOST: u8 = 8;

    /// Makes a width of this many bytes, 8 at most.
    #[allow(clippy::cast_possible_truncation, reason = "8 at most")]
    pub(crate) const fn saturating(bytes: usize) -> Self {
        if bytes < Self::MOST as usize { Self(bytes as u8) } else { Self(Self::MOST) }
    }

    /// Gives the number of bytes, 8 at most.
    #[inline(always)]
    pub(crate) const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// Gives the number of bytes as traces and errors state it.
    #[inline(always)]
    pub(crate) const fn get(self) -> u8 {
        self.0
    }

    /// Whether no byte is stored.
    #[inline(always)]
    pub(crate) const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Masks the bits of a stored integer of this width.
    #[inline(always)]
    pub(crate) const fn mask(self) -> u64 {
        if self.0 == 0 { 0 } else { u64::MAX >> (64 - 8 * self.0 as u32) }
    }

    /// Counts the bits of an integer of 8 bytes that this width leaves unused; 0 for the width 0, which stores nothing.
    #[inline(always)]
    pub(crate) const fn unused_bits(self) -> u32 {
        (64 - 8 * self.0 as u32) & 63
    }
}

#[cfg(test)]
mod tests {
    use super::Width;

    #[test]
    fn none_is_over_eight() {
        for bytes in (0..1000).chain([usize::MAX]) {
            assert_eq!(Width::saturating(bytes).bytes(), bytes.min(8));
        }
        assert_eq!(Width::saturating(0).mask(), 0);
        assert_eq!(Width::saturating(3).mask(), 0xff_ffff);
        assert_eq!(Width::saturating(8).mask(), u64::MAX);
        assert_eq!([0, 1, 8].map(|bytes| Width::saturating(bytes).unused_bits()), [0, 56, 0]);
    }
}
