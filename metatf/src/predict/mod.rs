//! The interpretation `predicted`: a leaf stores which of a model's candidates is right; what no candidate hits goes to a
//! stream section.
//!
//! Reader and writer run the same model over the same values. [`values`] holds the models for any number, after
//! Burtscher's VPC and TCgen; [`heap`] the one for addresses of a heap. What a model finds is worked out before it
//! learns anything, so that a writer can still choose another encoding.

mod cells;
pub(crate) mod heap;
mod names;
mod values;

pub(crate) use cells::{Cells, Context, Models};
pub(crate) use heap::Live;

/// How a value is stored: a code, and what goes to the stream section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodedValue {
    pub(crate) code: u64,
    misses: [u64; 2],
    count: u8,
    /// Where the value stands in the model, so that it need not be looked up again.
    pub(crate) hint: u32,
}

/// No hint.
pub(crate) const NONE: u32 = u32::MAX;

impl CodedValue {
    fn hit(code: u64, hint: u32) -> Self {
        Self { code, misses: [0; 2], count: 0, hint }
    }

    fn miss(code: u64, element: u64) -> Self {
        Self { code, misses: [element, 0], count: 1, hint: NONE }
    }

    fn misses(code: u64, elements: [u64; 2], hint: u32) -> Self {
        Self { code, misses: elements, count: 2, hint }
    }

    /// The elements for the stream section, in order.
    pub(crate) fn elements(&self) -> &[u64] {
        self.misses.get(..usize::from(self.count)).unwrap_or_default()
    }
}

/// A signed difference as a number that is small where the difference is.
fn fold(difference: u64) -> u64 {
    (difference << 1) ^ if difference >> 63 == 1 { u64::MAX } else { 0 }
}

/// The inverse of [`fold`].
fn unfold(folded: u64) -> u64 {
    (folded >> 1) ^ 0_u64.wrapping_sub(folded & 1)
}

#[cfg(test)]
mod tests {
    use super::{fold, unfold};

    #[test]
    fn folding() {
        for (difference, folded) in [(0, 0), (u64::MAX, 1), (1, 2), (1 << 63, u64::MAX), ((1 << 63) - 1, u64::MAX - 1)]
        {
            assert_eq!((fold(difference), unfold(folded)), (folded, difference));
        }
    }
}
