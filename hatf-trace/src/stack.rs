//! The stack of an event.

use std::fmt;
use std::ops::Deref;

/// Return addresses of a call, innermost first.
///
/// A source that meets a stack again may say so by a number, so that what keeps something by stack needs not compare frames. Stacks are
/// equal if their frames are.
#[derive(Clone, Copy)]
pub struct Stack<'a> {
    frames: &'a [u64],
    number: u32,
}

impl<'a> Stack<'a> {
    /// A stack that is not known.
    pub const NONE: Self = Self { frames: &[], number: 0 };

    /// Numbers of stacks are under this: what keeps a list by them is bounded.
    pub const NUMBERS: u32 = 1 << 22;

    /// Makes a stack with a number, which no other stack has that goes to the same sink. A number from [`NUMBERS`](Self::NUMBERS) on is
    /// not kept.
    #[must_use]
    pub fn numbered(frames: &'a [u64], number: u32) -> Self {
        Self { frames, number: if number < Self::NUMBERS { number } else { 0 } }
    }

    /// Returns its number among those of its source, from 1; 0: it has none, and may have been met before.
    #[must_use]
    pub fn number(self) -> u32 {
        self.number
    }

    /// Returns its frames.
    #[must_use]
    pub fn frames(self) -> &'a [u64] {
        self.frames
    }
}

impl<'a> From<&'a [u64]> for Stack<'a> {
    fn from(frames: &'a [u64]) -> Self {
        Self { frames, number: 0 }
    }
}

impl<'a, const N: usize> From<&'a [u64; N]> for Stack<'a> {
    fn from(frames: &'a [u64; N]) -> Self {
        frames.as_slice().into()
    }
}

impl<'a> From<&'a Vec<u64>> for Stack<'a> {
    fn from(frames: &'a Vec<u64>) -> Self {
        frames.as_slice().into()
    }
}

impl Deref for Stack<'_> {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        self.frames
    }
}

impl PartialEq for Stack<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.frames == other.frames
    }
}

impl Eq for Stack<'_> {}

impl fmt::Debug for Stack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.frames.fmt(f)
    }
}
