//! Records in the order of their keys: in memory, or in runs that are sorted apart and merged.

use crate::failure::{Failure, Result, failed};
use metatf::container::{FlushEvery, Reader, WriteOptions};
use metatf::dynamic::{OwnedRecord, Schema, Trace, Writer};
use metatf::reader::{At, Event};
use metatf::recode::Profile;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Seek as _, Write as _};

/// Runs that are merged at a time: each has two files open.
const MOST: usize = 128;

/// A record that waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    key: u64,
    pub(super) section: usize,
    pub(super) record: u16,
    pub(super) owned: OwnedRecord,
}

impl Kept {
    /// Bytes it takes, nearly.
    fn bytes(&self) -> usize {
        let arrays: usize = self.owned.iter().map(|item| item.bytes().len()).sum();
        size_of::<Self>() + 32 + 24 * self.owned.len() + arrays
    }
}

/// All records so far.
pub(super) struct Runs<'a> {
    schema: &'a Schema,
    options: WriteOptions,
    most: usize,
    /// Those in memory, in the order of the trace, and their bytes.
    kept: Vec<Kept>,
    bytes: usize,
    runs: Vec<Run>,
}

impl<'a> Runs<'a> {
    /// Begins; about so many bytes of records are held in memory.
    pub(super) fn new(schema: &'a Schema, write: &WriteOptions, most: usize) -> Self {
        let mut options = WriteOptions { class: write.class, order: write.order, ..WriteOptions::default() };
        Profile::Fast.apply(&mut options);
        options.flush = FlushEvery::NEVER;
        Self { schema, options, most, kept: Vec::new(), bytes: 0, runs: Vec::new() }
    }

    /// Takes a record.
    pub(super) fn add(&mut self, key: u64, at: At, owned: &OwnedRecord) -> Result<()> {
        let kept = Kept { key, section: at.section, record: at.record, owned: owned.clone() };
        self.bytes += kept.bytes();
        self.kept.push(kept);
        if self.bytes < self.most {
            return Ok(());
        }
        self.spill()
    }

    /// Gives all records in order.
    pub(super) fn write(mut self, mut put: impl FnMut(&Kept) -> Result<()>) -> Result<()> {
        if self.runs.is_empty() {
            self.kept.sort_by_key(|kept| kept.key);
            return self.kept.iter().try_for_each(put);
        }
        if !self.kept.is_empty() {
            self.spill()?;
        }
        merge(self.schema, self.runs, &mut put)
    }

    /// Makes a run of what is in memory.
    fn spill(&mut self) -> Result<()> {
        let mut kept = std::mem::take(&mut self.kept);
        self.bytes = 0;
        kept.sort_by_key(|kept| kept.key);
        let mut writing = Writing::new(self.schema, &self.options)?;
        kept.iter().try_for_each(|kept| writing.put(kept))?;
        drop(kept);
        self.runs.push(writing.finish()?);
        if self.runs.len() < MOST {
            return Ok(());
        }
        let mut writing = Writing::new(self.schema, &self.options)?;
        merge(self.schema, std::mem::take(&mut self.runs), &mut |kept| writing.put(kept))?;
        self.runs.push(writing.finish()?);
        Ok(())
    }
}

fn io(error: &std::io::Error) -> Failure {
    Failure::Failed(format!("a temporary file in {}: {error}", std::env::temp_dir().display()))
}

fn trace(error: &metatf::Error) -> Failure {
    Failure::Failed(format!("a temporary file in {}: {error}", std::env::temp_dir().display()))
}

/// A sorted part: a trace of its records, and their keys.
struct Run {
    records: File,
    keys: File,
}

/// A run that is being written.
struct Writing {
    writer: Writer<File>,
    keys: BufWriter<File>,
}

impl Writing {
    fn new(schema: &Schema, options: &WriteOptions) -> Result<Self> {
        let file = || tempfile::tempfile().map_err(|e| io(&e));
        let writer = Writer::new(file()?, schema, options).map_err(|e| trace(&e))?;
        Ok(Self { writer, keys: BufWriter::new(file()?) })
    }

    fn put(&mut self, kept: &Kept) -> Result<()> {
        self.keys.write_all(&kept.key.to_le_bytes()).map_err(|e| io(&e))?;
        self.writer.record(kept.section, kept.record, &kept.owned).map_err(|e| trace(&e))
    }

    fn finish(self) -> Result<Run> {
        let mut records = self.writer.finish().map_err(|e| trace(&e))?;
        let mut keys = self.keys.into_inner().map_err(|e| io(e.error()))?;
        records.rewind().and_then(|()| keys.rewind()).map_err(|e| io(&e))?;
        Ok(Run { records, keys })
    }
}

/// A run that is being read.
struct Reading {
    trace: Trace<'static>,
    keys: BufReader<File>,
}

impl Reading {
    fn new(schema: &Schema, run: Run) -> Result<Self> {
        let reader = Reader::from_read(BufReader::new(run.records)).map_err(|e| trace(&e))?;
        let trace = Trace::new(schema.clone(), reader).map_err(|e| trace(&e))?;
        Ok(Self { trace, keys: BufReader::new(run.keys) })
    }

    /// Reads the next record; `None` at the end.
    fn next(&mut self, kept: &mut Kept) -> Result<bool> {
        loop {
            let Some(entry) = self.trace.next_entry().map_err(|e| trace(&e))? else { return Ok(false) };
            let (Event::Record(at) | Event::Comment(at)) = entry.event else { continue };
            let mut key = [0; 8];
            self.keys.read_exact(&mut key).map_err(|e| io(&e))?;
            kept.key = u64::from_le_bytes(key);
            (kept.section, kept.record) = (at.section, at.record);
            kept.owned.clone_from(entry.record);
            return Ok(true);
        }
    }
}

/// Gives the records of runs in order; of equal ones those of earlier runs first.
fn merge(schema: &Schema, runs: Vec<Run>, put: &mut dyn FnMut(&Kept) -> Result<()>) -> Result<()> {
    let mut heap = BinaryHeap::new();
    let mut heads = Vec::new();
    for run in runs {
        let (mut reading, mut kept) = (Reading::new(schema, run)?, Kept::default());
        if reading.next(&mut kept)? {
            heap.push(Reverse((kept.key, heads.len())));
        }
        heads.push((reading, kept));
    }
    while let Some(Reverse((_, index))) = heap.pop() {
        let Some((reading, kept)) = heads.get_mut(index) else { return failed("a run is missing") };
        put(kept)?;
        if reading.next(kept)? {
            heap.push(Reverse((kept.key, index)));
        }
    }
    Ok(())
}
