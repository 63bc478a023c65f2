//! Sorts records by their keys, in memory or in sorted runs that are merged.

use crate::failure::{Failure, Result, failed};
use metatf::container::{FlushEvery, Reader, WriteOptions};
use metatf::dynamic::{Schema, Trace, Writer};
use metatf::reader::Event;
use metatf_tools::merge::{Keyed, Source, merge};
use metatf_tools::recode::Preset;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Seek as _, Write as _};

/// Maximum number of runs to merge at a time. Each run has two open files.
pub(crate) const MOST: usize = 128;

/// Returns the approximate size of a record in bytes.
fn bytes(keyed: &Keyed) -> usize {
    let arrays: usize = keyed.owned.iter().map(|item| item.bytes().len()).sum();
    size_of::<Keyed>() + 32 + 24 * keyed.owned.len() + arrays
}

/// All records added so far.
pub(crate) struct Runs<'a> {
    schema: &'a Schema,
    options: WriteOptions,
    most: usize,
    /// The records in memory, in trace order.
    kept: Vec<Keyed>,
    /// The total size of the records in memory, in bytes.
    bytes: usize,
    runs: Vec<Run>,
}

impl<'a> Runs<'a> {
    /// Creates an empty collection that keeps up to about this many bytes of records in memory.
    pub(crate) fn new(schema: &'a Schema, write: &WriteOptions, most: usize) -> Self {
        Self { schema, options: options(write), most, kept: Vec::new(), bytes: 0, runs: Vec::new() }
    }

    /// Adds a record.
    pub(crate) fn add(&mut self, keyed: Keyed) -> Result<()> {
        self.bytes += bytes(&keyed);
        self.kept.push(keyed);
        if self.bytes < self.most {
            return Ok(());
        }
        self.spill()
    }

    /// Returns the runs that were written, and the records in memory in the order of their keys.
    pub(crate) fn into_parts(mut self) -> (Vec<Run>, std::vec::IntoIter<Keyed>) {
        self.kept.sort_by_key(|keyed| keyed.key);
        (self.runs, self.kept.into_iter())
    }

    /// Combines all records into one run.
    pub(crate) fn into_run(mut self) -> Result<Run> {
        if !self.kept.is_empty() || self.runs.is_empty() {
            self.spill()?;
        }
        if self.runs.len() > 1 {
            self.join()?;
        }
        self.runs.pop().map_or_else(|| Writing::new(self.schema, &self.options)?.finish(), Ok)
    }

    /// Writes the records in memory to a run.
    fn spill(&mut self) -> Result<()> {
        let mut kept = std::mem::take(&mut self.kept);
        self.bytes = 0;
        kept.sort_by_key(|keyed| keyed.key);
        let mut writing = Writing::new(self.schema, &self.options)?;
        kept.iter().try_for_each(|keyed| writing.put(keyed))?;
        drop(kept);
        self.runs.push(writing.finish()?);
        if self.runs.len() < MOST { Ok(()) } else { self.join() }
    }

    /// Merges all runs into a single run.
    fn join(&mut self) -> Result<()> {
        let mut writing = Writing::new(self.schema, &self.options)?;
        let runs = std::mem::take(&mut self.runs);
        merge(&mut readings(self.schema, runs)?, &mut writing, &mut |writing, keyed| writing.put(keyed))?;
        self.runs.push(writing.finish()?);
        Ok(())
    }
}

/// Returns fast options for writing runs, with the class and byte order of the trace.
fn options(write: &WriteOptions) -> WriteOptions {
    let mut options = WriteOptions { class: write.class, order: write.order, ..WriteOptions::default() };
    Preset::Fast.apply(&mut options);
    options.flush = FlushEvery::NEVER;
    options
}

fn readings(schema: &Schema, runs: Vec<Run>) -> Result<Vec<Reading>> {
    runs.into_iter().map(|run| run.open(schema)).collect()
}

/// A sorted part of the records, as a trace and the keys of its records.
pub(crate) struct Run {
    records: File,
    keys: File,
}

impl Run {
    /// Opens the run for reading.
    pub(crate) fn open(self, schema: &Schema) -> Result<Reading> {
        let reader = Reader::from_read(BufReader::new(self.records)).map_err(Failure::temporary_file)?;
        let trace = Trace::new(schema.clone(), reader).map_err(Failure::temporary_file)?;
        Ok(Reading { trace, keys: BufReader::new(self.keys) })
    }
}

/// A run being written.
pub(crate) struct Writing {
    /// The writer, until the run is finished.
    writer: Option<Writer<File>>,
    keys: BufWriter<File>,
}

impl Writing {
    pub(crate) fn new(schema: &Schema, write: &WriteOptions) -> Result<Self> {
        let file = || tempfile::tempfile().map_err(Failure::temporary_file);
        let writer = Writer::new(file()?, schema, &options(write)).map_err(Failure::temporary_file)?;
        Ok(Self { writer: Some(writer), keys: BufWriter::new(file()?) })
    }

    /// Writes the next record. Records must be in the order of their keys.
    pub(crate) fn put(&mut self, keyed: &Keyed) -> Result<()> {
        self.keys.write_all(&keyed.key.to_le_bytes()).map_err(Failure::temporary_file)?;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.record(keyed.section, keyed.record, &keyed.owned).map_err(Failure::temporary_file)
    }

    pub(crate) fn finish(mut self) -> Result<Run> {
        let Some(writer) = self.writer.take() else { return failed("a run is written already") };
        let mut records = writer.finish().map_err(Failure::temporary_file)?;
        let mut keys = self.keys.get_ref().try_clone().map_err(Failure::temporary_file)?;
        self.keys
            .flush()
            .and_then(|()| records.rewind())
            .and_then(|()| keys.rewind())
            .map_err(Failure::temporary_file)?;
        Ok(Run { records, keys })
    }
}

/// Abandons the trace of an unfinished run.
impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.abandon();
        }
    }
}

/// A run being read.
pub(crate) struct Reading {
    trace: Trace<'static>,
    keys: BufReader<File>,
}

impl<W> Source<W, Failure> for Reading {
    fn next(&mut self, _: &mut W, keyed: &mut Keyed) -> Result<bool> {
        loop {
            let Some(entry) = self.trace.next_entry().map_err(Failure::temporary_file)? else { return Ok(false) };
            let (Event::Record(at) | Event::Comment(at)) = entry.event else { continue };
            let mut key = [0; 8];
            self.keys.read_exact(&mut key).map_err(Failure::temporary_file)?;
            keyed.key = u64::from_le_bytes(key);
            (keyed.section, keyed.record) = (at.section, at.record);
            keyed.owned.clone_from(entry.record);
            return Ok(true);
        }
    }
}
