//! The values of a record as a row.

use metatf::Row;
use metatf::container::{Error, ErrorKind, Result};
use metatf::internals::FREE_ITEMS;
use metatf::reader::Item;

/// A row that returns the values of a record in order, regardless of the requested leaves.
pub(crate) struct ItemRow<I> {
    values: I,
}

impl<'v, I: ExactSizeIterator<Item = Item<'v>>> ItemRow<I> {
    /// Creates a row of these values, which do not include a tag with a fixed value.
    pub(crate) fn new(values: I) -> Self {
        Self { values }
    }

    fn take(&mut self) -> Result<Item<'v>> {
        self.values.next().ok_or(Error::at(0, ErrorKind::Usage("the record lacks some of its values")))
    }
}

impl<'v, I: ExactSizeIterator<Item = Item<'v>>> Row<'v> for ItemRow<I> {
    type Error = Error;

    fn stop(&mut self, error: Error) -> Error {
        error
    }

    #[inline]
    fn number(&mut self, _: u8) -> Result<u64> {
        match self.take()? {
            Item::Number(value) => Ok(value),
            Item::Bytes(_) => Err(Error::at(0, ErrorKind::Usage("expected a number, found bytes"))),
        }
    }

    #[inline]
    fn bytes(&mut self, _: u8) -> Result<&'v [u8]> {
        match self.take()? {
            Item::Bytes(bytes) => Ok(bytes),
            Item::Number(_) => Err(Error::at(0, ErrorKind::Usage("the record has a number, but bytes were expected"))),
        }
    }

    fn items(&mut self, count: u64) -> Result<usize> {
        // Except for items without leaves, there cannot be more items than values.
        let most = self.values.len() as u64 + FREE_ITEMS;
        usize::try_from(count.min(most))
            .map_err(|_| Error::at(0, ErrorKind::Usage("the record has more items than values")))
    }
}
