//! Costs of modes that differ in their width alone, side by side: plain loops over arrays of one length, which compilers turn into
//! instructions that work on all of them at once.
//!
//! A cost is a number of bytes times 256, relative to the cheapest mode's, with the number of the mode it comes from below. Where
//! every mode can be entered at any step, no mode is worth more than its metadata, and 16 bits hold all costs that matter; else
//! it takes 32.

use std::ops::{BitOr, Sub};

/// A relative cost and the number of a mode.
pub(super) trait Cost: Copy + Ord + BitOr<Output = Self> + Sub<Output = Self> + Send {
    /// No cost.
    const ZERO: Self;
    /// No path leads here. Put on a cost by `|` it makes it as much.
    const NEVER: Self;
    /// In the place of a mode's number: the mode is kept.
    const STAY: Self;

    /// A cost of so many bytes.
    fn bytes(bytes: u32) -> Self;

    /// The number of a mode, under 255.
    fn mode(number: usize) -> Self;

    /// The sum; more than there can be is `NEVER`.
    fn plus(self, other: Self) -> Self;

    /// The cost alone.
    fn alone(self) -> Self;

    /// In bytes.
    fn in_bytes(self) -> i64;

    /// The mode's number alone.
    fn number(self) -> u8;

    /// `NEVER` if so, else nothing.
    #[inline]
    fn never(if_so: bool) -> Self {
        if if_so { Self::NEVER } else { Self::ZERO }
    }
}

macro_rules! cost {
    ($number:ty, $never:expr) => {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            clippy::cast_sign_loss,
            clippy::cast_lossless,
            reason = "bounded by NEVER; the number of a mode is a byte"
        )]
        impl Cost for $number {
            const ZERO: Self = 0;
            const NEVER: Self = $never;
            const STAY: Self = 255;

            #[inline]
            fn bytes(bytes: u32) -> Self {
                if bytes >= (Self::NEVER >> 8) as u32 { Self::NEVER } else { (bytes as Self) << 8 }
            }

            #[inline]
            fn mode(number: usize) -> Self {
                (number & 255) as Self
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                self.saturating_add(other)
            }

            #[inline]
            fn alone(self) -> Self {
                self & !255
            }

            #[inline]
            fn in_bytes(self) -> i64 {
                (self >> 8) as i64
            }

            #[inline]
            fn number(self) -> u8 {
                (self & 255) as u8
            }
        }
    };
}

// At most 127 bytes: a metadata record takes 26, and three of them lead from any mode to any other.
cost!(i16, 0x7f00);
cost!(i32, 0x4000_0000);

/// Costs, a lane for each width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes<C, const N: usize>(pub(super) [C; N]);

impl<C: Cost, const N: usize> Lanes<C, N> {
    pub(super) const NEVER: Self = Self([C::NEVER; N]);

    #[inline(always)]
    fn with(self, other: Self, f: impl Fn(C, C) -> C) -> Self {
        Self(std::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
    }

    /// The same in every lane.
    #[inline(always)]
    pub(super) fn all(cost: C) -> Self {
        Self([cost; N])
    }

    /// The numbers of modes, of which the first is given.
    pub(super) fn numbers(first: usize) -> Self {
        Self(std::array::from_fn(|lane| C::mode(first + lane)))
    }

    #[inline(always)]
    pub(super) fn or(self, other: Self) -> Self {
        self.with(other, |a, b| a | b)
    }

    #[inline(always)]
    pub(super) fn plus(self, other: Self) -> Self {
        self.with(other, C::plus)
    }

    #[inline(always)]
    pub(super) fn min(self, other: Self) -> Self {
        self.with(other, C::min)
    }

    /// The least of all lanes.
    #[inline(always)]
    pub(super) fn least(self) -> C {
        self.0.into_iter().fold(C::NEVER, C::min)
    }

    /// Costs less `base`.
    #[inline(always)]
    pub(super) fn lower(self, base: C) -> Self {
        Self(self.0.map(|cost| if cost >= C::NEVER { C::NEVER } else { cost - base }))
    }

    /// Keys without the numbers of modes.
    #[inline(always)]
    pub(super) fn alone(self) -> Self {
        Self(self.0.map(|key| if key >= C::NEVER { C::NEVER } else { key.alone() }))
    }

    /// The numbers of modes below.
    #[inline(always)]
    pub(super) fn numbers_of(self) -> [u8; N] {
        self.0.map(C::number)
    }
}
