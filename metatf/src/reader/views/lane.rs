//! Where the next record of a type is noted.

use crate::formula::eight;

/// Where the next record's row is, and what is needed to find the record behind it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lane {
    pub(super) tag: u32,
    /// The row: where it begins, and, 32 bits up, how many places it has.
    pub(super) entry: u64,
    /// Words of a row.
    pub(super) stride: u64,
    /// Bytes of a record but for a byte array at its end.
    pub(super) fixed: usize,
    /// Where the length of that byte array is, the mask to read it by, 0 where there is none, and the word of the row that it is noted
    /// in.
    pub(super) length: usize,
    pub(super) mask: u64,
    pub(super) word: usize,
}

/// No tag of a record that is decoded ahead.
const NO_TAG: u32 = u32::MAX;

impl Lane {
    /// Meets no record.
    pub(super) const NONE: Self =
        Self { tag: NO_TAG, entry: 0, stride: 0, fixed: usize::MAX >> 1, length: 0, mask: 0, word: 0 };

    /// Whether it is of a type.
    pub(super) fn is_some(&self) -> bool {
        self.stride != 0
    }

    /// Notes a record's place. Gives its row, and where the next record begins; none where that is too near to the end, which is eight
    /// bytes before the data's.
    #[inline(always)]
    pub(super) fn note(&mut self, data: &[u8], end: usize, at: usize, values: &mut [u64]) -> Option<(u64, usize)> {
        let (entry, mut next) = (self.entry, at + self.fixed);
        if next > end {
            return None;
        }
        let row = row_of(entry).0;
        if self.mask != 0 {
            let length = u64::from_le_bytes(eight(data, at + self.length)?) & self.mask;
            *values.get_mut(row + self.word)? = length;
            // A branch that is foreseen: most often there is nothing.
            if length != 0 {
                next += usize::try_from(length).ok().filter(|&length| length <= end - next)?;
            }
        }
        *values.get_mut(row)? = at as u64;
        self.entry = entry + self.stride;
        Some((entry, next))
    }
}

/// Where a row begins, and how many places it has.
#[allow(clippy::cast_possible_truncation, reason = "two numbers of 32 bits")]
#[inline(always)]
pub(super) fn row_of(entry: u64) -> (usize, usize) {
    (entry as u32 as usize, (entry >> 32) as usize)
}
