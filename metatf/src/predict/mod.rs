//! The interpretation `predicted`, with which a leaf stores the number of the model's candidate that is correct. Values
//! that match no candidate are stored in a stream section.
//!
//! The reader and the writer run the same model on the same values. [`values`] contains the models for arbitrary
//! numbers, based on Burtscher's VPC and TCgen; [`heap`] contains the model for heap addresses. A model determines the
//! code of a value before it learns the value, so a writer can still choose a different encoding.

mod cells;
pub(crate) mod heap;
mod names;
mod values;

pub(crate) use cells::{Cells, Context, Models};
pub(crate) use heap::Live;

/// The stored form of a value, which consists of a code and the elements for the stream section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodedValue {
    pub(crate) code: u64,
    misses: [u64; 2],
    count: u8,
    /// The position of the value in the model, which saves a second lookup.
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

    /// Returns the elements for the stream section, in order.
    pub(crate) fn elements(&self) -> &[u64] {
        self.misses.get(..usize::from(self.count)).unwrap_or_default()
    }
}

/// Maps a signed difference to an unsigned number that is small if the difference is small.
fn fold(difference: u64) -> u64 {
    (difference << 1) ^ if difference >> 63 == 1 { u64::MAX } else { 0 }
}

/// Returns the inverse of [`fold`].
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
