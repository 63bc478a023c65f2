//! Counts comparison results by record type.

use super::pair::Pairs;
use super::{RecordSummary, Which};
use metatf::dynamic::Schema;
use std::collections::BTreeMap;

/// The counts for a record type.
#[derive(Clone, Debug, Default)]
struct Counts {
    counts: [u64; 2],
    compared: u64,
    differ: u64,
    /// The name of each differing leaf and the number of records in which it differs, by left leaf index.
    fields: BTreeMap<u8, (String, u64)>,
}

/// A record type, as its section index and its record index in the left trace.
pub(super) type Key = (usize, u16);

/// The counts for all record types defined by both formats.
#[derive(Debug)]
pub(super) struct Tally {
    by_section: Vec<Vec<Counts>>,
}

impl Tally {
    pub(super) fn new(left: &Schema) -> Self {
        Self { by_section: vec![vec![Counts::default(); left.dtd.records.len()]; left.dtd.sections.len()] }
    }

    fn counts(&mut self, (section, record): Key) -> Option<&mut Counts> {
        self.by_section.get_mut(section)?.get_mut(usize::from(record))
    }

    /// Counts a record of one trace.
    pub(super) fn one(&mut self, which: Which, key: Option<Key>) {
        if let Some(counts) = key.and_then(|key| self.counts(key)) {
            counts.counts[which as usize] += 1;
        }
    }

    /// Counts two records at the same position. If `in_step` is set, also counts them as compared.
    pub(super) fn both(&mut self, key: Key, in_step: bool) {
        if let Some(counts) = self.counts(key) {
            counts.counts = counts.counts.map(|count| count + 1);
            counts.compared += u64::from(in_step);
        }
    }

    /// Counts a differing pair of records.
    pub(super) fn differ(&mut self, key: Key) {
        if let Some(counts) = self.counts(key) {
            counts.differ += 1;
        }
    }

    /// Counts a differing field. `name` is called only the first time.
    pub(super) fn field(&mut self, key: Key, leaf: u8, name: impl FnOnce() -> String) {
        if let Some(counts) = self.counts(key) {
            counts.fields.entry(leaf).or_insert_with(|| (name(), 0)).1 += 1;
        }
    }

    /// Returns the counts of all record types that occur.
    pub(super) fn finish(self, left: &Schema) -> Vec<RecordSummary> {
        let mut all = Vec::new();
        for (section, records) in self.by_section.into_iter().enumerate() {
            let name = left.section(section).and_then(|s| s.name.clone());
            for (record, counts) in (0_u16..).zip(records).filter(|(_, counts)| counts.counts != [0, 0]) {
                let Counts { counts, compared, differ, fields } = counts;
                let record = left.record(record).map_or_else(String::new, |record| record.name.clone());
                let fields = fields.into_values().collect();
                all.push(RecordSummary { section: name.clone(), record, counts, compared, differ, fields });
            }
        }
        all
    }
}

/// Returns the left record type paired with a right record type.
pub(super) fn key_of_right(pairs: &Pairs, (section, record): Key) -> Option<Key> {
    let &[left, _] = pairs.sections.iter().find(|pair| pair[1] == section)?;
    pairs.left_of(left, record).map(|record| (left, record))
}
