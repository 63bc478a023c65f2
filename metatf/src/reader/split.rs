//! Readers of single groups of a trace (spec 5.2), for reading them in parallel.

use super::{FormatRef, RecordReader};
use crate::state::State;
use metatf_container::{Decoder, Part, Result, Split, Warning};
use std::sync::{Arc, Mutex};

/// The groups of a trace. Any thread can make readers of them.
#[derive(Clone, Debug)]
pub(crate) struct GroupList<'s> {
    split: Split<'s>,
    format: FormatRef,
    all: bool,
}

/// The chunks of shared tables that stand before a group, read: index of the section, content.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables(Arc<Vec<(usize, Part)>>);

/// What readers that have ended leave, for readers of other groups.
#[derive(Default)]
pub(crate) struct StatePool(Mutex<Vec<Spare>>);

/// What a reader leaves to a reader of another group: memory, above all that of models.
#[derive(Default)]
pub(crate) struct Spare {
    decoder: Decoder,
    states: Vec<State>,
}

/// What is known of a group when it was read.
#[derive(Debug, Default)]
pub(crate) struct GroupSummary {
    pub(crate) records: u64,
    pub(crate) user: Vec<Vec<u8>>,
    pub(crate) warnings: Vec<Warning>,
}

impl RecordReader<'_> {
    /// The groups; `None` where the trace is read in one, see [`metatf_container::Reader::split`].
    pub(crate) fn groups(&self) -> Option<GroupList<'_>> {
        let split = self.container.split().filter(|_| !self.salvage && !self.finished)?;
        Some(GroupList { split, format: self.format.clone(), all: self.all })
    }

    /// What reading has found out.
    pub(crate) fn summary(&self) -> GroupSummary {
        GroupSummary {
            records: self.records_read(),
            user: self.container.user_metadata().to_vec(),
            warnings: self.container.warnings().to_vec(),
        }
    }

    /// Nothing more comes.
    pub(crate) fn end(&mut self) -> Spare {
        self.finished = true;
        Spare { decoder: self.container.end(), states: std::mem::take(&mut self.states) }
    }

    /// The groups were read by others: nothing more comes, and what is known of the trace is what they found out.
    pub(crate) fn has_been_read(&mut self, summary: GroupSummary) {
        self.forget_ahead();
        self.records = summary.records;
        self.container.has_been_read(summary.user, summary.warnings);
        self.finished = true;
    }
}

impl StatePool {
    fn take(&self) -> Spare {
        self.0.lock().ok().and_then(|mut idle| idle.pop()).unwrap_or_default()
    }

    /// Of a reader that is not there any more, so that nothing holds its contents.
    pub(crate) fn put(&self, spare: Spare) {
        if let Ok(mut idle) = self.0.lock() {
            idle.push(spare);
        }
    }
}

impl GroupSummary {
    /// Adds what the next group has found out.
    pub(crate) fn add(&mut self, next: Self) {
        self.records += next.records;
        self.user.extend(next.user);
        self.warnings.extend(next.warnings);
    }
}

impl<'s> GroupList<'s> {
    pub(crate) fn count(&self) -> usize {
        self.split.groups()
    }

    /// The tables before group `n + 1`, given those before group `n`.
    ///
    /// # Errors
    /// A chunk of a table is wrong; the reader of group `n` finds the same.
    pub(crate) fn tables_behind(&self, n: usize, before: &Tables) -> Result<Tables> {
        let mut numbers = self.split.tables_of(n).peekable();
        if numbers.peek().is_none() {
            return Ok(before.clone());
        }
        let mut reader = self.split.reader(n);
        let mut tables = before.0.to_vec();
        for number in numbers {
            let part = reader.read_chunk(number)?;
            let section = self.format.section_index(part.section);
            // A section that is none is an error of the group that the chunk stands in.
            if let Some(section) = section.filter(|&i| self.format.sections.get(i).is_some_and(|s| s.stream)) {
                tables.push((section, part));
            }
        }
        Ok(Tables(Arc::new(tables)))
    }

    /// A reader of group `n`.
    ///
    /// # Errors
    /// None for version 1; for symmetry with [`RecordReader::new`].
    pub(crate) fn reader(&self, n: usize, tables: &Tables, pool: &StatePool) -> Result<RecordReader<'s>> {
        let Spare { decoder, states } = pool.take();
        let container = self.split.reader_with(n, decoder);
        let mut reader = RecordReader::with(self.format.clone(), container, states)?;
        reader.set_all(self.all);
        for (section, part) in tables.0.iter() {
            reader.add_piece(*section, part, false);
        }
        // So that the start of a later group is told.
        reader.group_open = n > 0;
        Ok(reader)
    }
}
