//! Adds the values of records to their columns.

use super::leaf_column::{BlockRecords, LeafColumn, Traits};
use metatf::Row;
use metatf::container::{Error, Result};
use metatf::format::{Record, Steps};
use metatf::reader::Item;
use std::marker::PhantomData;

/// A step that adds one record to its columns.
pub(super) struct Fill<'f> {
    pub(super) records: &'f mut BlockRecords,
    /// The previous values by cell, and the last values by leaf of the section.
    pub(super) cells: &'f mut [u64],
    pub(super) last: &'f mut [u64],
    /// The size of the added values and bytes, and the number of repeated items.
    pub(super) size: usize,
    pub(super) items: usize,
}

impl Fill<'_> {
    /// Adds the values of a row, in byte order.
    pub(super) fn record<'r>(&mut self, record: &Record, row: &mut impl Row<'r>) -> Result<()> {
        record.walk(record.first_value(), &mut ColumnRow { fill: self, row, data: PhantomData })
    }

    /// Adds a value of a leaf.
    #[inline(always)]
    pub(super) fn value(&mut self, leaf: usize, value: Item<'_>) {
        match value {
            Item::Number(value) => self.number(leaf, value),
            Item::Bytes(array) => self.bytes(leaf, array),
        }
    }

    #[inline(always)]
    fn number(&mut self, leaf: usize, value: u64) {
        let BlockRecords { columns, traits, first, .. } = &mut *self.records;
        if let (Some(column), Some(traits)) = (columns.get_mut(leaf), traits.get(leaf)) {
            number(column, traits, (value, *first + leaf), self.cells, self.last);
        }
        self.size += 1;
    }

    fn bytes(&mut self, leaf: usize, array: &[u8]) {
        if let (Some(column), Some(traits)) = (self.records.columns.get_mut(leaf), self.records.traits.get(leaf)) {
            bytes(column, traits, array);
        }
        self.size += 1 + array.len() / 8;
    }
}

/// A row whose values are added to columns.
struct ColumnRow<'w, 'f, 'r, R> {
    fill: &'w mut Fill<'f>,
    row: &'w mut R,
    data: PhantomData<&'r [u8]>,
}

impl<'r, R: Row<'r>> Steps for ColumnRow<'_, '_, 'r, R> {
    type Error = Error;

    #[inline]
    fn number(&mut self, leaf: u8) -> Result<()> {
        let value = self.row.number(leaf).map_err(Into::into)?;
        self.fill.number(leaf.into(), value);
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, leaf: u8) -> Result<()> {
        let bytes = self.row.bytes(leaf).map_err(Into::into)?;
        self.fill.bytes(leaf.into(), bytes);
        Ok(())
    }

    #[inline]
    fn items(&mut self, count: u8) -> Result<u64> {
        let Fill { records, last, .. } = &*self.fill;
        let count = last.get(records.first + usize::from(count)).copied().unwrap_or(0);
        let items = self.row.items(count).map_err(Into::into)?;
        self.fill.items += items;
        Ok(items as u64)
    }
}

/// Adds a number to the column of the leaf with this index.
#[inline(always)]
fn number(column: &mut LeafColumn, traits: &Traits, (value, leaf): (u64, usize), cells: &mut [u64], last: &mut [u64]) {
    if traits.alone() {
        column.push_alone(value);
    } else {
        column.push(value);
    }
    if traits.shared {
        column.previous.push(cells.get(traits.cell as usize).copied().unwrap_or(0));
    }
    if let Some(reference) = traits.reference {
        column.reference.push(last.get(reference as usize).copied().unwrap_or(0));
    }
    if let Some(cell) = cells.get_mut(traits.cell as usize) {
        *cell = value;
    }
    if let Some(last) = last.get_mut(leaf) {
        *last = value;
    }
}

#[inline(always)]
fn bytes(column: &mut LeafColumn, traits: &Traits, array: &[u8]) {
    column.bytes.extend_from_slice(array);
    if traits.repeated {
        column.push(array.len() as u64);
    } else {
        column.push_alone(array.len() as u64);
    }
}
