//! Readers of single groups of a trace (spec 5.2), for reading them in parallel.

use super::{FormatRef, Next, RecordReader};
use crate::state::State;
use metatf_container::{Decoder, Part, Result, Split, Warning};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The groups of a trace. Readers for them can be created on any thread.
#[derive(Clone, Debug)]
pub(crate) struct GroupList<'s> {
    split: Split<'s>,
    format: FormatRef,
    all: bool,
    /// The groups to read.
    wanted: Range<usize>,
}

/// The section index and content of the shared table chunks before a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables(Arc<Vec<(usize, Part)>>);

/// The resources of finished readers, to be reused by readers of other groups.
#[derive(Default)]
pub(crate) struct StatePool(Mutex<Vec<Spare>>);

/// The resources that a reader passes to a reader of another group: memory, mainly the memory of models.
#[derive(Default)]
pub(crate) struct Spare {
    decoder: Decoder,
    states: Vec<State>,
}

/// The results of reading a group.
#[derive(Debug, Default)]
pub(crate) struct GroupSummary {
    pub(crate) records: u64,
    pub(crate) user: Vec<Vec<u8>>,
    pub(crate) warnings: Vec<Warning>,
}

/// Minimum number of content bytes that makes it worthwhile to hand work to a thread.
const BATCH: u64 = 512 << 10;

/// The fixed cost of a group, expressed as the number of content bytes that take the same time to read.
const GROUP: u64 = 2 << 10;

impl RecordReader<'_> {
    /// Returns the groups that begin in this byte range of the file, or `None` if the trace cannot be split; see
    /// [`metatf_container::Reader::split`].
    pub(crate) fn groups(&self, bytes: &Range<u64>) -> Option<GroupList<'_>> {
        let split = self.container.split().filter(|_| !self.salvage && self.next != Next::Finished)?;
        let wanted = split.groups_in(bytes);
        Some(GroupList { split, format: self.format.clone(), all: self.all, wanted })
    }

    /// Returns the number of data records, according to the chunks, in groups that begin before this byte of the file.
    /// Returns `None` if the trace cannot be split.
    #[must_use]
    pub fn records_before(&self, byte: u64) -> Option<u64> {
        let split = self.container.split()?;
        let chunks = split.chunks_before(split.groups_in(&(byte..u64::MAX)).start);
        Some(chunks.iter().filter(|chunk| self.holds_records(chunk)).map(|chunk| u64::from(chunk.nrecords)).sum())
    }

    /// Returns the results of reading.
    pub(crate) fn summary(&self) -> GroupSummary {
        GroupSummary {
            records: self.records_read(),
            user: self.container.user_metadata().to_vec(),
            warnings: self.container.warnings().to_vec(),
        }
    }

    /// Ends reading and returns the reusable resources.
    pub(crate) fn end(&mut self) -> Spare {
        self.next = Next::Finished;
        Spare { decoder: self.container.end(), states: std::mem::take(&mut self.states) }
    }

    /// Informs this reader that other readers have read its groups: all groups if `whole` is set, otherwise only some.
    /// This reader then returns nothing more, and the summary replaces its own results.
    pub(crate) fn has_been_read(&mut self, summary: GroupSummary, whole: bool) {
        self.forget_ahead();
        self.current = None;
        self.kept = None;
        self.records = summary.records;
        self.container.has_been_read(summary.user, summary.warnings);
        if whole {
            self.container.check_records(summary.records);
        }
        self.next = Next::Finished;
    }
}

impl StatePool {
    fn take(&self) -> Spare {
        self.0.lock().ok().and_then(|mut idle| idle.pop()).unwrap_or_default()
    }

    /// Adds the resources of a reader that no longer exists, so nothing refers to their contents.
    pub(crate) fn put(&self, spare: Spare) {
        if let Ok(mut idle) = self.0.lock() {
            idle.push(spare);
        }
    }
}

impl GroupSummary {
    /// Adds the results of the next group.
    pub(crate) fn add(&mut self, next: Self) {
        self.records += next.records;
        self.user.extend(next.user);
        self.warnings.extend(next.warnings);
    }
}

impl<'s> GroupList<'s> {
    /// Returns the groups to read.
    pub(crate) fn wanted(&self) -> Range<usize> {
        self.wanted.clone()
    }

    /// Returns the tables before the first group to read.
    ///
    /// # Errors
    /// As for [`tables_behind`](Self::tables_behind).
    pub(crate) fn first_tables(&self) -> Result<Tables> {
        (0..self.wanted.start).try_fold(Tables::default(), |tables, n| self.tables_behind(n, &tables))
    }

    /// Returns the groups from `first` on that are worth handing to a thread together: either one group or several
    /// small ones.
    pub(crate) fn batch(&self, first: usize) -> Range<usize> {
        let (mut end, mut bytes) = (first, 0);
        while end < self.wanted.end && bytes < BATCH {
            bytes += self.split.content_len(end) + GROUP;
            end += 1;
        }
        first..end
    }

    /// Returns the tables before group `n + 1`, given the tables before group `n`.
    ///
    /// # Errors
    /// Returns an error if a table chunk is invalid. The reader of group `n` encounters the same error.
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
            // Ignore an invalid section here. The reader of the group that contains the chunk reports the error.
            if let Some(section) = section.filter(|&i| self.format.sections.get(i).is_some_and(|s| s.stream)) {
                tables.push((section, part));
            }
        }
        Ok(Tables(Arc::new(tables)))
    }

    /// Returns a reader for group `n`.
    ///
    /// # Errors
    /// Never returns an error for version 1. The return type matches that of [`RecordReader::new`].
    pub(crate) fn reader(&self, n: usize, tables: &Tables, pool: &StatePool) -> Result<RecordReader<'s>> {
        let Spare { decoder, states } = pool.take();
        let container = self.split.reader_with(n, decoder);
        let mut reader = RecordReader::with(self.format.clone(), container, states)?;
        reader.set_all(self.all);
        for (section, part) in tables.0.iter() {
            reader.add_piece(*section, part, false);
        }
        // Mark a group as open, so that the reader reports the start of any group but the first.
        reader.group_open = n > 0;
        Ok(reader)
    }
}

#[cfg(test)]
#[cfg(feature = "dynamic")]
mod tests {
    use crate::dynamic::{Line, OwnedRecord, Schema, Trace, Writer};
    use metatf_container::{Codec, WriteOptions};

    const DTD: &str = "section s 1 { r: vfield { tag.value = 4; } }";

    /// Writes a trace of groups, each with one record of this many bytes.
    fn trace(schema: &Schema, groups: usize, bytes: usize) -> Vec<u8> {
        let options = WriteOptions { codec: Codec::Stored, trial: None, ..WriteOptions::default() };
        let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), schema, &options).unwrap();
        let mut owned = OwnedRecord::default();
        for group in 0..groups {
            if group > 0 {
                writer.write(&Line::Group, &owned).unwrap();
            }
            let text = "00".repeat(bytes);
            let line = format!(r#"{{"@section":"s","@record":"r","vfield":"{text}"}}"#);
            let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
            writer.write(&line, &owned).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn small_groups_go_together() {
        let schema =
            Schema::parse("s.dtd", DTD.replace("vfield {", "(tag, vfield) { vfield.length.width = 4;").as_bytes());
        let schema = schema.unwrap();
        for (length, together, all) in [(10, 255, 300), (100_000, 6, 8), (600_000, 1, 3)] {
            let bytes = trace(&schema, all, length);
            let trace = Trace::from_slice(&bytes).unwrap();
            let groups = trace.reader().groups(&(0..u64::MAX)).unwrap();
            assert_eq!(groups.batch(1), 1..1 + together);
            assert_eq!(groups.batch(all - 1), all - 1..all);
            assert_eq!(groups.split.has_small_groups(), length < 1000);
            drop(groups);
        }
    }
}
