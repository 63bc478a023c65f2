//! The number of bytes that a leaf stores. Stores through raw pointers rely on widths never exceeding 8.

/// The size of a stored integer in bytes, 0 to 8. No other file can create a larger width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Width(u8);

impl Width {
    const MOST: u8 = 8;

    /// Creates a width of this many bytes, at most 8.
    #[allow(clippy::cast_possible_truncation, reason = "at most 8")]
    pub(crate) const fn saturating(bytes: usize) -> Self {
        if bytes < Self::MOST as usize { Self(bytes as u8) } else { Self(Self::MOST) }
    }

    /// Returns the number of bytes, at most 8.
    #[inline(always)]
    pub(crate) const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// Returns the number of bytes as a `u8`, the type used in traces and errors.
    #[inline(always)]
    pub(crate) const fn get(self) -> u8 {
        self.0
    }

    /// Returns whether no bytes are stored.
    #[inline(always)]
    pub(crate) const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the mask for a stored integer of this width.
    #[inline(always)]
    pub(crate) const fn mask(self) -> u64 {
        if self.0 == 0 { 0 } else { u64::MAX >> (64 - 8 * self.0 as u32) }
    }

    /// Returns the number of bits of an 8-byte integer that this width leaves unused, or 0 for width 0, which stores
    /// nothing.
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
