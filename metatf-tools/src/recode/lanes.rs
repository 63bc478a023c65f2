//! Costs of modes that differ in their width alone, side by side, so that an instruction works on all of them at once.
//!
//! A cost is a number of bytes times 256, relative to the cheapest mode's, with the number of the mode it comes from below: a
//! *key*, of which the least gives the cheapest mode and the one before it. Where every mode can be entered at any step, no mode is worth more
//! than its metadata, and 16 bits hold all costs that matter; else it takes 32.

use std::ops::{BitOr, Sub};
use wide::{i16x8, u8x16};

/// A relative cost and the number of a mode.
pub(super) trait Cost: Copy + Ord + BitOr<Output = Self> + Sub<Output = Self> {
    /// No cost.
    const ZERO: Self;
    /// No path leads here. Put on a cost by `|` it makes it as much.
    const NEVER: Self;
    /// In place of a mode's number: the mode is kept.
    const STAY: Self;

    /// A cost of this many bytes.
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

// At most 127 bytes: a metadata record takes 26, and three of them lead from any mode to any other.
cost!(i16, 0x7f00);
cost!(i32, 0x4000_0000);

/// Keys, a lane for each of `N` widths.
pub(super) trait Lanes<const N: usize>: Copy {
    /// What a lane holds.
    type Cost: Cost;

    /// By lane.
    fn of(lane: impl FnMut(usize) -> Self::Cost) -> Self;

    /// The same in every lane.
    fn all(key: Self::Cost) -> Self;

    /// What each lane holds.
    fn keys(self) -> [Self::Cost; N];

    /// `|` in each lane.
    fn or(self, other: Self) -> Self;

    /// The sum in each lane; more than there can be is `NEVER`.
    fn plus(self, other: Self) -> Self;

    /// The lesser of each lane.
    fn min(self, other: Self) -> Self;

    /// The least of all lanes.
    fn least(self) -> Self::Cost;

    /// Keys without the numbers of modes.
    fn alone(self) -> Self;

    /// The numbers of modes below.
    fn numbers(self) -> [u8; N];

    /// Costs less `base`.
    fn lower(self, base: Self::Cost) -> Self {
        let keys = self.keys();
        Self::of(|lane| if keys[lane] >= Cost::NEVER { keys[lane] } else { keys[lane] - base })
    }

    /// No path leads to any.
    #[inline(always)]
    fn never() -> Self {
        Self::all(Cost::NEVER)
    }

    /// No cost, and numbers of modes, of which the first is given.
    #[inline(always)]
    fn numbered(first: usize) -> Self {
        Self::of(|lane| Cost::mode(first + lane))
    }
}

/// Eight small costs, as nearly every leaf has them.
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
        // The greatest number is `NEVER` except for its number.
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
