//! Reads a record in the trace's format and returns its values, leaf by leaf, in the reader's format.

use super::map::{MappedFrom, RecordMap, ZEROS};
use crate::decode::ContentRow;
use crate::record::{FREE_ITEMS, Row, Source, Visit, Walk, walk};
use metatf_container::{Error, ErrorKind, Result};

#[derive(Clone, Copy, Debug)]
enum MappedValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The values of a record, in the byte order of the trace.
pub(crate) struct MappedRow<'a, 'm> {
    map: &'m RecordMap,
    values: Vec<(u8, MappedValue<'a>)>,
    /// For each reader leaf, the index in `values` at which the search for its next value starts.
    next: Vec<usize>,
    /// For each reader leaf, the value returned last.
    last: Vec<u64>,
    items: u64,
}

impl<'a, 'm> MappedRow<'a, 'm> {
    /// Reads the complete record.
    pub(crate) fn read(row: &mut ContentRow<'_, 'a>, map: &'m RecordMap) -> Result<Self> {
        let mut values = Vec::new();
        walk(row, row.record, row.record.first_value(), &mut values)?;
        let leaves = map.leaves.len();
        Ok(Self { map, values, next: vec![0; leaves], last: vec![0; leaves], items: 0 })
    }

    /// Returns the next value of a reader leaf.
    fn take(&mut self, leaf: u8) -> Option<MappedValue<'a>> {
        let index = usize::from(leaf);
        let from = match *self.map.leaves.get(index)? {
            MappedFrom::Leaf(from) => from,
            MappedFrom::Number(value) => return Some(MappedValue::Number(value)),
            MappedFrom::Zeros(n) => return ZEROS.get(..n as usize).map(MappedValue::Bytes),
        };
        let next = self.next.get_mut(index)?;
        let found = self.values.get(*next..)?.iter().position(|(l, _)| *l == from)?;
        let (_, value) = *self.values.get(*next + found)?;
        *next += found + 1;
        Some(value)
    }
}

/// Collects the values in the order in which they are stored.
impl<'a> Visit<'a> for Vec<(u8, MappedValue<'a>)> {
    fn number(&mut self, leaf: u8, value: u64) {
        self.push((leaf, MappedValue::Number(value)));
    }

    fn bytes(&mut self, leaf: u8, bytes: &'a [u8]) {
        self.push((leaf, MappedValue::Bytes(bytes)));
    }
}

fn lost() -> Error {
    Error::at(0, ErrorKind::Mismatch("a record has fewer values than the reader expects"))
}

impl<'a> Row<'a> for MappedRow<'a, '_> {
    type Error = Error;

    fn stop(&mut self, error: Error) -> Error {
        error
    }

    fn number(&mut self, leaf: u8) -> Result<u64> {
        let Some(MappedValue::Number(value)) = self.take(leaf) else { return Err(lost()) };
        if let Some(last) = self.last.get_mut(usize::from(leaf)) {
            *last = value;
        }
        Ok(value)
    }

    fn bytes(&mut self, leaf: u8) -> Result<&'a [u8]> {
        let Some(MappedValue::Bytes(bytes)) = self.take(leaf) else { return Err(lost()) };
        Ok(bytes)
    }

    fn items(&mut self, count: u64) -> Result<usize> {
        // The row for the trace's record limits the items that the trace contains; this check also limits the
        // substituted items.
        self.items = self.items.saturating_add(count);
        match usize::try_from(count) {
            Ok(n) if self.items <= self.values.len() as u64 + FREE_ITEMS => Ok(n),
            _ => Err(Error::at(0, ErrorKind::TooManyItems(self.items))),
        }
    }
}

impl<'a> Source<'a> for MappedRow<'a, '_> {
    fn last(&self, leaf: u8) -> u64 {
        self.last.get(usize::from(leaf)).copied().unwrap_or(0)
    }
}

impl<'a> Walk<'a> for MappedRow<'a, '_> {
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}
