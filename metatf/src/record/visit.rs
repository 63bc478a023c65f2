//! Traversal of a record's leaves according to its layout.

use super::Source;
use crate::format::{Record, Steps};
use std::marker::PhantomData;

/// A visitor for the values of a record in the order of its leaves.
pub(crate) trait Visit<'a> {
    fn number(&mut self, leaf: u8, value: u64);
    fn bytes(&mut self, leaf: u8, bytes: &'a [u8]);
}

/// Ignores all values.
impl Visit<'_> for () {
    fn number(&mut self, _: u8, _: u64) {}
    fn bytes(&mut self, _: u8, _: &[u8]) {}
}

/// A row that can be traversed.
pub(crate) trait Walk<'a>: Source<'a> {
    /// Ends the record.
    ///
    /// # Errors
    /// Returns an error if the complete record violates a rule.
    fn end(&mut self) -> Result<(), Self::Error>;
}

/// Visits the leaves of a record, starting with this step of its layout.
#[inline]
pub(crate) fn walk<'a, R: Source<'a>>(
    row: &mut R,
    record: &Record,
    first: usize,
    visit: &mut impl Visit<'a>,
) -> Result<(), R::Error> {
    record.walk(first, &mut Visiting { row, visit, data: PhantomData })
}

/// A row whose values are being visited.
struct Visiting<'w, 'a, R, V> {
    row: &'w mut R,
    visit: &'w mut V,
    data: PhantomData<&'a [u8]>,
}

impl<'a, R: Source<'a>, V: Visit<'a>> Steps for Visiting<'_, 'a, R, V> {
    type Error = R::Error;

    #[inline]
    fn number(&mut self, leaf: u8) -> Result<(), R::Error> {
        let value = self.row.number(leaf)?;
        self.visit.number(leaf, value);
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, leaf: u8) -> Result<(), R::Error> {
        let bytes = self.row.bytes(leaf)?;
        self.visit.bytes(leaf, bytes);
        Ok(())
    }

    #[inline]
    fn items(&mut self, count: u8) -> Result<u64, R::Error> {
        Ok(self.row.items(self.row.last(count))? as u64)
    }
}
