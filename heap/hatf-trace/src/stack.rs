//! Call stacks of events.

use std::fmt;
use std::ops::Deref;

/// The return addresses of a call, innermost first.
///
/// A source can number stacks that recur, so that a sink that stores data per stack does not have to compare frames.
/// Two stacks are equal if their frames are equal.
///
/// # Examples
///
/// ```
/// use hatf_trace::event::Stack;
///
/// let frames = [0x401136_u64, 0x401050];
/// let stack = Stack::from(&frames);
/// assert_eq!(stack.first(), Some(&0x401136));
/// // The number that a source assigns to a stack does not affect equality.
/// let numbered = Stack::numbered(&frames, 7);
/// assert_eq!((numbered == stack, numbered.number()), (true, 7));
/// ```
#[derive(Clone, Copy)]
pub struct Stack<'a> {
    frames: &'a [u64],
    number: u32,
}

impl<'a> Stack<'a> {
    /// An unknown stack.
    pub const NONE: Self = Self { frames: &[], number: 0 };

    /// The exclusive upper bound of stack numbers. It bounds the size of lists indexed by stack number.
    pub const NUMBERS: u32 = 1 << 22;

    /// Returns a stack with a number. No other stack passed to the same sink may have this number. Numbers of
    /// [`NUMBERS`](Self::NUMBERS) or more are discarded.
    #[must_use]
    pub fn numbered(frames: &'a [u64], number: u32) -> Self {
        Self { frames, number: if number < Self::NUMBERS { number } else { 0 } }
    }

    /// Returns the number that the source assigned to this stack, from 1, or 0 if the stack has no number. A stack
    /// without a number may have occurred before.
    #[must_use]
    pub fn number(self) -> u32 {
        self.number
    }

    /// Returns the frames of the stack.
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
