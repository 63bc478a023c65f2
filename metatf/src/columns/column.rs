//! The values of one leaf.

use super::RECORDS;
use std::cell::Cell;

/// Numbers. Most leaves of many formats are the same number for a long time: such a column is written once, and used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberColumn {
    /// At least `len`.
    values: Vec<u64>,
    len: usize,
    /// All `values` are this number.
    uniform: Option<u64>,
    /// By the DTD the leaf has this value.
    fixed: Option<u64>,
}

impl NumberColumn {
    pub(crate) fn new(fixed: Option<u64>) -> Self {
        Self { fixed, ..Self::default() }
    }

    pub(crate) fn fixed(&self) -> Option<u64> {
        self.fixed
    }

    /// Places for all values there may be, those that are there among them.
    pub(crate) fn cells(&mut self) -> Option<&[Cell<u64>; RECORDS]> {
        self.uniform = None;
        if self.values.len() < RECORDS {
            self.values.resize(RECORDS, 0);
        }
        Cell::from_mut(&mut *self.values).as_slice_of_cells().first_chunk()
    }

    /// There are this many, in their [places](Self::cells).
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

    /// The same number several times.
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

/// Byte arrays.
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

    /// There are this many: others are gone, or have no bytes.
    pub(crate) fn go_to(&mut self, count: usize) {
        if self.ends.len > count {
            self.truncate(count);
        }
        self.extend_empty(count - self.ends.len);
    }

    /// The array of this number, all before it that are not there being empty. Gives its weight.
    #[inline(never)]
    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) -> usize {
        self.go_to(at);
        self.push(bytes);
        bytes.len() + 1
    }

    /// Arrays without bytes.
    pub(crate) fn extend_empty(&mut self, count: usize) {
        self.ends.extend_uniform(self.data.len() as u64, count);
    }
}

/// The byte arrays of a leaf, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrays<'c> {
    ends: &'c [u64],
    data: &'c [u8],
}

impl<'c> Arrays<'c> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of one.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'c [u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.data.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'c [u8]> + use<'c> {
        let arrays = *self;
        (0..self.len()).map(move |index| arrays.get(index).unwrap_or_default())
    }

    /// Where each ends in [`data`](Self::data): the next begins there.
    #[must_use]
    pub fn ends(&self) -> &'c [u64] {
        self.ends
    }

    /// The bytes of all.
    #[must_use]
    pub fn data(&self) -> &'c [u8] {
        self.data
    }
}
