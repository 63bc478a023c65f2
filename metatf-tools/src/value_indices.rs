//! Indices of each leaf's values in an owned record.

use metatf::dynamic::OwnedRecord;
use metatf::format::{Record, Step, Steps};
use metatf::reader::Item;
use std::convert::Infallible;

/// The indices of each leaf's values in an owned record. A leaf has a single index, or one index per repeated item. The
/// memory is reused for the next record.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueIndices {
    by_leaf: Vec<Vec<usize>>,
}

impl ValueIndices {
    /// Finds the values of a record in its owned record.
    pub(crate) fn fill(&mut self, record: &Record, owned: &OwnedRecord) {
        self.by_leaf.resize_with(record.leaves.len().max(self.by_leaf.len()), Vec::new);
        self.by_leaf.iter_mut().for_each(Vec::clear);
        let Ok(()) = record.walk(record.first_value(), &mut IndexFinder { indices: self, owned, next: 0 });
    }

    /// Returns the indices for a record without repetitions; these indices are the same in every owned record.
    pub(crate) fn fixed(record: &Record) -> Option<Self> {
        let repeats = record.steps.iter().any(|step| matches!(step, Step::Repeat { .. }));
        let mut indices = Self::default();
        indices.fill(record, &OwnedRecord::default());
        (!repeats).then_some(indices)
    }

    /// Returns the number of leaves.
    pub(crate) fn leaves(&self) -> usize {
        self.by_leaf.len()
    }

    /// Returns the indices of a leaf's values.
    pub(crate) fn of(&self, leaf: u8) -> &[usize] {
        self.by_leaf.get(usize::from(leaf)).map_or(&[], Vec::as_slice)
    }
}

/// A walk over an owned record that collects indices.
struct IndexFinder<'p> {
    indices: &'p mut ValueIndices,
    owned: &'p OwnedRecord,
    next: usize,
}

impl IndexFinder<'_> {
    fn note(&mut self, leaf: u8) {
        if let Some(indices) = self.indices.by_leaf.get_mut(usize::from(leaf)) {
            indices.push(self.next);
        }
        self.next += 1;
    }
}

impl Steps for IndexFinder<'_> {
    type Error = Infallible;

    fn number(&mut self, leaf: u8) -> Result<(), Infallible> {
        self.note(leaf);
        Ok(())
    }

    fn bytes(&mut self, leaf: u8) -> Result<(), Infallible> {
        self.note(leaf);
        Ok(())
    }

    fn items(&mut self, count: u8) -> Result<u64, Infallible> {
        let (owned, last) = (self.owned, self.indices.of(count).last());
        // Every item has at least one value, so if there are fewer values than items, the owned record does not match
        // the record type.
        let left = owned.len().saturating_sub(self.next) as u64;
        Ok(match last.and_then(|&place| owned.get(place)) {
            Some(Item::Number(items)) => left.min(items),
            _ => 0,
        })
    }
}
