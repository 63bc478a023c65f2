//! Costs of modes that differ only in their width. They are stored next to each other, so a single instruction
//! processes all of them.
//!
//! A cost is a number of bytes times 256, relative to the cheapest mode. The low byte contains the number of the
//! preceding mode, which makes the cost a *key*: the minimum key provides both the lowest cost and the preceding mode.
//! If every mode can be entered at any step, no mode saves more than its metadata costs, and 16 bits are enough for all
//! relevant costs; otherwise, 32 bits are used.

use std::ops::{BitOr, Sub};
use wide::{i16x8, u8x16};

/// A relative cost with the number of a mode.
pub(super) trait Cost: Copy + Ord + BitOr<Output = Self> + Sub<Output = Self> {
    /// No cost.
    const ZERO: Self;
    /// The cost of an unreachable mode. The bitwise OR of this cost and any other cost is at least as large as this
    /// cost.
    const NEVER: Self;
    /// The mode number for "stay in the same mode".
    const STAY: Self;

    /// Returns the cost of this many bytes.
    fn bytes(bytes: u32) -> Self;

    /// Returns the number of a mode, which is less than 255.
    fn mode(number: usize) -> Self;

    /// Returns the sum, saturated at `NEVER`.
    fn plus(self, other: Self) -> Self;

    /// Returns only the cost.
    fn alone(self) -> Self;

    /// Returns the cost in bytes.
    fn in_bytes(self) -> i64;

    /// Returns only the mode number.
    fn number(self) -> u8;

    /// Returns `NEVER` if `if_so` is true, or zero if it is false.
    #[inline(always)]
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

            #[inline(always)]
            fn bytes(bytes: u32) -> Self {
                if bytes >= (Self::NEVER >> 8) as u32 { Self::NEVER } else { (bytes as Self) << 8 }
            }

            #[inline(always)]
            fn mode(number: usize) -> Self {
                (number & 255) as Self
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.saturating_add(other)
            }

            #[inline(always)]
            fn alone(self) -> Self {
                (self & !255).min(Self::NEVER)
            }

            #[inline(always)]
            fn in_bytes(self) -> i64 {
                (self >> 8) as i64
            }

            #[inline(always)]
            fn number(self) -> u8 {
                (self & 255) as u8
            }
        }
    };
}

// The maximum is 127 bytes. A metadata record takes 26 bytes, and three of them are enough to switch between any two
// modes.
cost!(i16, 0x7f00);
cost!(i32, 0x4000_0000);

/// Keys with a lane for each of `N` widths.
pub(super) trait Lanes<const N: usize>: Copy {
    /// The cost in a lane.
    type Cost: Cost;

    /// Builds the lanes from a function.
    fn of(lane: impl FnMut(usize) -> Self::Cost) -> Self;

    /// Returns the same key in every lane.
    fn all(key: Self::Cost) -> Self;

    /// Returns the content of each lane.
    fn keys(self) -> [Self::Cost; N];

    /// Returns the bitwise OR of each lane.
    fn or(self, other: Self) -> Self;

    /// Returns the sum of each lane, saturated at `NEVER`.
    fn plus(self, other: Self) -> Self;

    /// Returns the minimum of each lane.
    fn min(self, other: Self) -> Self;

    /// Returns the minimum over all lanes.
    fn least(self) -> Self::Cost;

    /// Returns the keys without mode numbers.
    fn alone(self) -> Self;

    /// Returns the mode numbers.
    fn numbers(self) -> [u8; N];

    /// Subtracts `base` from the costs.
    fn lower(self, base: Self::Cost) -> Self {
        let keys = self.keys();
        Self::of(|lane| if keys[lane] >= Cost::NEVER { keys[lane] } else { keys[lane] - base })
    }

    /// Returns `NEVER` in every lane.
    #[inline(always)]
    fn never() -> Self {
        Self::all(Cost::NEVER)
    }

    /// Returns zero costs with consecutive mode numbers starting at `first`.
    #[inline(always)]
    fn numbered(first: usize) -> Self {
        Self::of(|lane| Cost::mode(first + lane))
    }
}

/// Eight small costs, which are enough for almost every leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eight(i16x8);

impl Lanes<8> for Eight {
    type Cost = i16;

    #[inline(always)]
    fn of(lane: impl FnMut(usize) -> i16) -> Self {
        Self(i16x8::new(std::array::from_fn(lane)))
    }

    #[inline(always)]
    fn all(key: i16) -> Self {
        Self(i16x8::splat(key))
    }

    #[inline(always)]
    fn keys(self) -> [i16; 8] {
        self.0.to_array()
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    #[inline(always)]
    fn least(self) -> i16 {
        self.0.reduce_min()
    }

    #[inline(always)]
    fn alone(self) -> Self {
        // The maximum is `NEVER`, except for its mode number.
        Self(self.0 & i16x8::splat(!255))
    }

    #[inline(always)]
    fn numbers(self) -> [u8; 8] {
        let numbers = self.0 & i16x8::splat(255);
        let bytes = u8x16::narrow_i16x8(numbers, numbers).to_array();
        bytes.first_chunk().copied().unwrap_or_default()
    }
}

/// Any number of costs of any size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Any<C, const N: usize>([C; N]);

impl<C: Cost, const N: usize> Any<C, N> {
    #[inline(always)]
    fn with(self, other: Self, f: impl Fn(C, C) -> C) -> Self {
        Self(std::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
    }
}

impl<C: Cost, const N: usize> Lanes<N> for Any<C, N> {
    type Cost = C;

    #[inline(always)]
    fn of(lane: impl FnMut(usize) -> C) -> Self {
        Self(std::array::from_fn(lane))
    }

    #[inline(always)]
    fn all(key: C) -> Self {
        Self([key; N])
    }

    #[inline(always)]
    fn keys(self) -> [C; N] {
        self.0
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self.with(other, |a, b| a | b)
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.with(other, C::plus)
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.with(other, C::min)
    }

    #[inline(always)]
    fn least(self) -> C {
        self.0.into_iter().fold(C::NEVER, C::min)
    }

    #[inline(always)]
    fn alone(self) -> Self {
        Self(self.0.map(C::alone))
    }

    #[inline(always)]
    fn numbers(self) -> [u8; N] {
        self.0.map(C::number)
    }
}
