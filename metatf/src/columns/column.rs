//! The values of one leaf.

use super::RECORDS;
use std::cell::Cell;

/// A column of numbers. In many formats, most leaves keep the same value for a long time, so such a column is filled
/// once and reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberColumn {
    /// The values, at least `len` of them.
    values: Vec<u64>,
    len: usize,
    /// The number that all `values` are known to equal, if any.
    uniform: Option<u64>,
    /// The constant that the DTD specifies for the leaf.
    fixed: Option<u64>,
}

impl NumberColumn {
    pub(crate) fn new(fixed: Option<u64>) -> Self {
        Self { fixed, ..Self::default() }
    }

    pub(crate) fn fixed(&self) -> Option<u64> {
        self.fixed
    }

    /// Returns cells for the maximum number of values. The first cells contain the existing values.
    pub(crate) fn cells(&mut self) -> Option<&[Cell<u64>; RECORDS]> {
        self.uniform = None;
        if self.values.len() < RECORDS {
            self.values.resize(RECORDS, 0);
        }
        Cell::from_mut(&mut *self.values).as_slice_of_cells().first_chunk()
    }

    /// Sets the length of the column after values were stored in its [cells](Self::cells).
    pub(crate) fn go_to(&mut self, len: usize) {
        self.len = len;
    }

    #[inline]
    pub(crate) fn values(&self) -> &[u64] {
        self.values.get(..self.len).unwrap_or_default()
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    #[inline]
    pub(crate) fn push(&mut self, value: u64) {
        self.uniform = None;
        match self.values.get_mut(self.len) {
            Some(slot) => *slot = value,
            None => self.values.push(value),
        }
        self.len += 1;
    }

    #[inline]
    pub(crate) fn extend(&mut self, values: impl Iterator<Item = u64>) {
        self.values.truncate(self.len);
        self.uniform = None;
        self.values.extend(values);
        self.len = self.values.len();
    }

    /// Appends the same number several times.
    pub(crate) fn extend_uniform(&mut self, value: u64, count: usize) {
        let len = self.len + count;
        if self.len == 0 && self.uniform != Some(value) {
            self.values.clear();
            self.uniform = Some(value);
        }
        if self.uniform != Some(value) {
            self.values.truncate(self.len);
            self.uniform = None;
        }
        if self.values.len() < len {
            self.values.resize(len, value);
        }
        self.len = len;
    }
}

/// A column of byte arrays.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArrayColumn {
    ends: NumberColumn,
    data: Vec<u8>,
}

impl ArrayColumn {
    pub(crate) fn arrays(&self) -> Arrays<'_> {
        Arrays { ends: self.ends.values(), data: &self.data }
    }

    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.data.clear();
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        let end = self.ends.values().last().map_or(0, |&end| usize::try_from(end).unwrap_or(0));
        self.data.truncate(end);
    }

    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
        self.ends.push(self.data.len() as u64);
    }

    /// Sets the number of arrays, dropping excess arrays or appending empty ones.
    pub(crate) fn go_to(&mut self, count: usize) {
        if self.ends.len > count {
            self.truncate(count);
        }
        self.extend_empty(count - self.ends.len);
    }

    /// Stores the array with this index, filling any gap before it with empty arrays. Returns its weight.
    #[inline(never)]
    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) -> usize {
        self.go_to(at);
        self.push(bytes);
        bytes.len() + 1
    }

    /// Appends empty arrays.
    pub(crate) fn extend_empty(&mut self, count: usize) {
        self.ends.extend_uniform(self.data.len() as u64, count);
    }
}

/// The byte arrays of a leaf, in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrays<'c> {
    ends: &'c [u64],
    data: &'c [u8],
}

impl<'c> Arrays<'c> {
    /// Returns the number of arrays.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no arrays.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the bytes of the array with this index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'c [u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.data.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// Returns an iterator over the arrays, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'c [u8]> + use<'c> {
        let arrays = *self;
        (0..self.len()).map(move |index| arrays.get(index).unwrap_or_default())
    }

    /// Returns the end of each array in [`data`](Self::data), which is also the start of the next array.
    #[must_use]
    pub fn ends(&self) -> &'c [u64] {
        self.ends
    }

    /// Returns the concatenated bytes of all arrays.
    #[must_use]
    pub fn data(&self) -> &'c [u8] {
        self.data
    }
}
