//! Converts events to the records of a trace.

use std::collections::BTreeMap;

use metatf::container::{FlushEvery, WriteOptions};
use metatf::dynamic::{Item, OwnedRecord, Schema, Writer};

use crate::clock::Line;
use crate::error::Error;
use crate::events::{Part, Place};
use crate::layout::{DROPPED, NOTE, of_head};
use crate::strings::entries;
use crate::table::{EventRow, Source, Table};
use crate::tail::{CUT, MARK};
use crate::trace_file::TraceSink;

/// A writer of events as records.
pub(crate) struct Encoder {
    schema: Schema,
    writer: Writer<TraceSink>,
    /// The indices of the section and the record of each event.
    rows: Vec<(usize, u16)>,
    dropped: Option<(usize, u16)>,
    clock_sync: Option<(usize, u16)>,
    intern: Option<(usize, u16)>,
    /// The time leaf of each record.
    times: BTreeMap<(usize, u16), usize>,
    pub(crate) table: Table,
    owned: OwnedRecord,
    tail: Vec<u8>,
    /// The number of data records in each section so far, by section number.
    records: Box<[u64; 256]>,
    /// The number of records of each section to skip, because the trace already contains them.
    skip: Box<[u64; 256]>,
    /// The last time written. Times must not decrease.
    last: u64,
    /// The process ID.
    process: u32,
}

/// The information shared by a set of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    /// The line that converts stamps to nanoseconds.
    pub(crate) line: Line,
    /// The time in nanoseconds to which the times in the trace are relative.
    pub(crate) start: u64,
}

/// The content at the start of each trace of a process.
#[derive(Clone, Debug)]
pub(crate) struct Beginning {
    pub(crate) name: &'static str,
    pub(crate) dtd: &'static str,
    pub(crate) table: Table,
    pub(crate) process: u32,
    /// An object of user metadata.
    pub(crate) metadata: String,
}

impl Beginning {
    /// Starts a trace.
    pub(crate) fn write(self, sink: TraceSink) -> Result<Encoder, Error> {
        let mut encoder = Encoder::new(self.name, self.dtd, self.table, self.process, sink)?;
        encoder.metadata(&self.metadata)?;
        encoder.flush()?;
        Ok(encoder)
    }
}

/// Writes events in order.
pub(crate) fn write_places(
    encoder: &mut Encoder,
    parts: &[Part],
    places: &[Place],
    scene: &Scene,
) -> Result<(), Error> {
    for place in places {
        if let Some(part) = parts.get(place.ring as usize) {
            encoder.event(part, *place, scene)?;
        }
    }
    Ok(())
}

impl Encoder {
    /// Starts a trace.
    pub(crate) fn new(name: &str, dtd: &str, table: Table, process: u32, sink: TraceSink) -> Result<Self, Error> {
        let schema = Schema::parse(name, dtd.as_bytes()).map_err(|error| Error::Trace(error.to_string()))?;
        let find = |row: &EventRow| {
            let section = schema.dtd.sections.iter().position(|section| section.number == row.section)?;
            let (id, record) = schema.dtd.tagged(schema.dtd.sections.get(section)?, row.tag)?;
            let leaves =
                record.leaves.len() == row.sources.len() + 1 && record.leaves.iter().all(|leaf| !leaf.repeated);
            leaves.then_some((section, u16::try_from(id.0).ok()?))
        };
        let known = |row: &EventRow| {
            find(row).ok_or_else(|| Error::Trace(format!("the DTD has no record for the event `{}`", row.name)))
        };
        let rows = table.events.iter().map(known).collect::<Result<Vec<_>, _>>()?;
        let dropped = table.dropped.as_ref().map(known).transpose()?;
        let clock_sync = table.clock_sync.as_ref().map(known).transpose()?;
        let intern = table.intern.as_ref().map(known).transpose()?;
        let all = table.events.iter().chain(&table.dropped).chain(&table.clock_sync).chain(&table.intern);
        let times = all.filter_map(|row| Some((find(row)?, row.sources.iter().position(is_stamp)?))).collect();
        // The drain decides when to flush the trace.
        let options = WriteOptions { dtd_url: name.to_owned(), flush: FlushEvery::NEVER, ..WriteOptions::default() };
        let writer = Writer::new(sink, &schema, &options).map_err(|error| Error::Trace(error.to_string()))?;
        Ok(Self {
            schema,
            writer,
            rows,
            dropped,
            clock_sync,
            intern,
            times,
            table,
            owned: OwnedRecord::default(),
            tail: Vec::new(),
            records: Box::new([0; 256]),
            skip: Box::new([0; 256]),
            last: 0,
            process,
        })
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Sets the number of records to skip at the start of each section.
    pub(crate) fn skip(&mut self, records: &[u64; 256]) {
        self.skip.copy_from_slice(records);
    }

    /// Returns the number of data records in each section.
    pub(crate) fn records(&self) -> &[u64; 256] {
        &self.records
    }

    /// Adds an object of user metadata.
    pub(crate) fn metadata(&mut self, json: &str) -> Result<(), Error> {
        self.writer.inner().user_metadata(json).map_err(|error| self.error(&error))
    }

    /// Copies a record of the unfinished trace.
    pub(crate) fn copy(&mut self, section: usize, record: u16, owned: &OwnedRecord) -> Result<(), Error> {
        self.writer.record(section, record, owned).map_err(|error| self.error(&error))?;
        self.count(section, record);
        let time = self.times.get(&(section, record)).and_then(|leaf| owned.get(*leaf));
        if let Some(Item::Number(time)) = time {
            self.last = self.last.max(time);
        }
        Ok(())
    }

    /// Copies an element of the unfinished trace. It keeps its offset, because the encoding of elements is fixed.
    pub(crate) fn element(&mut self, section: usize, shared: bool, owned: &OwnedRecord) -> Result<(), Error> {
        self.writer.element(section, shared, owned).map(drop).map_err(|error| self.error(&error))
    }

    fn count(&mut self, section: usize, record: u16) {
        // The first three records are not data.
        if let Some(section) = self.schema.section(section).filter(|_| record > 2) {
            self.records[usize::from(section.number)] += 1;
        }
    }

    /// Writes an event of a part.
    pub(crate) fn event(&mut self, part: &Part, place: Place, scene: &Scene) -> Result<(), Error> {
        let at = place.at as usize;
        let position = part.from.wrapping_add(8 * u64::from(place.at));
        let found = part.words.get(at).and_then(|head| of_head(*head, position));
        let Some((event, count)) = found else { return Ok(()) };
        let thread = part.thread_at(place.at);
        let words = part.words.get(at + 1..at + 1 + usize::from(count)).unwrap_or_default();
        match event {
            DROPPED => self.dropped(words, thread, scene),
            NOTE => self.note(words),
            _ => {
                let index = usize::from(event);
                let Some(to) = self.rows.get(index).copied() else { return Ok(()) };
                self.fill(Which::Event(index), words, thread, scene);
                self.put(to)
            }
        }
    }

    /// Writes a report of dropped events. `words` contains the count and the stamp, as in an event.
    pub(crate) fn dropped(&mut self, words: &[u64], thread: u32, scene: &Scene) -> Result<(), Error> {
        match self.dropped {
            Some(to) => {
                self.fill(Which::Dropped, words, thread, scene);
                self.put(to)
            }
            None => {
                let count = words.first().copied().unwrap_or(0);
                self.comment(format!("{count} events of thread {thread} were dropped here").as_bytes())
            }
        }
    }

    /// Writes the wall-clock time at a stamp, if the DTD has a record for it.
    pub(crate) fn clock_sync(&mut self, stamp: u64, wall: u64, scene: &Scene) -> Result<(), Error> {
        let Some(to) = self.clock_sync else { return Ok(()) };
        // Times must not decrease. If the stamp's time is earlier than the last time written, shift the wall-clock time
        // by the difference.
        let late = self.last.saturating_sub(scene.line.at(stamp).saturating_sub(scene.start));
        self.fill(Which::ClockSync, &[wall.saturating_add(late), stamp], 0, scene);
        self.put(to)
    }

    /// Writes strings, given the words of a buffers file. Returns whether all words belong to valid strings. Words
    /// after an invalid entry are lost.
    pub(crate) fn strings(&mut self, words: &[u64], scene: &Scene) -> Result<bool, Error> {
        let Some(to) = self.intern else { return Ok(true) };
        for entry in entries(words) {
            let Some(entry) = entry else { return Ok(false) };
            self.fill(Which::Intern, entry, 0, scene);
            self.put(to)?;
        }
        Ok(true)
    }

    /// Returns whether the DTD has a record that relates both clocks.
    pub(crate) fn has_clock_sync(&self) -> bool {
        self.clock_sync.is_some()
    }

    fn note(&mut self, words: &[u64]) -> Result<(), Error> {
        let lengths = words.first().copied().unwrap_or(0);
        let all: Vec<u8> = words.iter().skip(2).flat_map(|word| word.to_ne_bytes()).collect();
        let name_length = length_of(lengths, 0).0;
        let name = all.get(..name_length).unwrap_or_default();
        let bytes = all.get(name_length.next_multiple_of(8)..).unwrap_or_default();
        let bytes = bytes.get(..length_of(lengths, 16).0).unwrap_or_default();
        let mut text = String::from_utf8_lossy(name).into_owned();
        text.push_str(": ");
        match std::str::from_utf8(bytes) {
            Ok(plain) if !plain.contains(|c: char| c.is_control()) => text.push_str(plain),
            _ => bytes.iter().for_each(|byte| text.push_str(&format!("{byte:02x}"))),
        }
        self.comment(text.as_bytes())
    }

    fn comment(&mut self, text: &[u8]) -> Result<(), Error> {
        // Use the section of the first event, if there is one; a comment in another section would start a chunk.
        let section = self.rows.first().map_or(0, |(section, _)| *section);
        self.writer.inner().comment(section, text).map_err(|error| self.error(&error))
    }

    /// Fills the owned record from the words of an event.
    fn fill(&mut self, which: Which, words: &[u64], thread: u32, scene: &Scene) {
        let Self { table, owned, tail, last, process, .. } = self;
        owned.clear();
        let row = match which {
            Which::Event(index) => table.events.get(index),
            Which::Dropped => table.dropped.as_ref(),
            Which::ClockSync => table.clock_sync.as_ref(),
            Which::Intern => table.intern.as_ref(),
        };
        let Some(row) = row else { return };
        let word = |index: u16| words.get(usize::from(index)).copied().unwrap_or(0);
        tail.clear();
        if row.sources.iter().any(|source| matches!(source, Source::Tail { .. } | Source::Array(_))) {
            tail.extend(words.iter().skip(usize::from(row.words)).flat_map(|word| word.to_ne_bytes()));
        }
        let mut next = 0;
        for source in &row.sources {
            match *source {
                Source::Bits { word: index, shift, machine } => owned.push_number(machine.value(word(index) >> shift)),
                // A string has no time. It precedes the events that refer to it.
                Source::Stamp { .. } if which == Which::Intern => owned.push_number(*last),
                Source::Stamp { word: index } => {
                    let time = scene.line.at(word(index)).saturating_sub(scene.start);
                    *last = time.max(*last);
                    owned.push_number(*last);
                }
                Source::Thread => owned.push_number(u64::from(thread)),
                Source::Process => owned.push_number(u64::from(*process)),
                Source::Constant(value) => owned.push_number(value),
                Source::Length(leaf) => owned.push_number(match row.sources.get(usize::from(leaf)) {
                    Some(Source::Tail { word: index, shift, text }) => {
                        let (length, is_cut) = length_of(word(*index), *shift);
                        (length + if is_cut && *text { MARK.len() } else { 0 }) as u64
                    }
                    Some(Source::Array(bytes)) => u64::from(*bytes),
                    _ => 0,
                }),
                Source::Tail { word: index, shift, text } => {
                    let (length, is_cut) = length_of(word(index), shift);
                    let bytes = tail_part(tail, &mut next, length);
                    if is_cut && text {
                        owned.push_bytes(&[bytes, MARK].concat());
                    } else {
                        owned.push_bytes(bytes);
                    }
                }
                Source::Array(bytes) => owned.push_bytes(tail_part(tail, &mut next, usize::from(bytes))),
            }
        }
    }

    /// Writes the owned record, unless the record must be skipped.
    fn put(&mut self, (section, record): (usize, u16)) -> Result<(), Error> {
        let number = self.schema.section(section).map_or(0, |section| usize::from(section.number));
        if let Some(left) = self.skip.get_mut(number).filter(|left| **left > 0) {
            *left -= 1;
            return Ok(());
        }
        self.writer.record(section, record, &self.owned).map_err(|error| self.error(&error))?;
        self.records[number] += 1;
        Ok(())
    }

    /// Flushes all written data to the system.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.writer.inner().flush().map_err(|error| self.error(&error))
    }

    /// Ends the trace.
    pub(crate) fn finish(self) -> Result<TraceSink, Error> {
        let format = std::sync::Arc::clone(&self.schema.format);
        self.writer.finish().map_err(|error| Error::Trace(metatf::explain(&format, &error).to_string()))
    }

    /// Ends the trace and flushes it to the system.
    pub(crate) fn close(self) -> Result<(), Error> {
        let mut sink = self.finish()?;
        sink.flush().map_err(|error| Error::Trace(format!("the trace could not be written: {error}")))
    }

    /// Abandons the trace, leaving it as it is.
    pub(crate) fn abandon(self) {
        self.writer.abandon();
    }

    fn error(&self, error: &metatf::Error) -> Error {
        Error::Trace(metatf::explain(&self.schema.format, error).to_string())
    }
}

fn is_stamp(source: &Source) -> bool {
    matches!(source, Source::Stamp { .. })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Event(usize),
    Dropped,
    ClockSync,
    Intern,
}

/// Decodes the length of a part of the tail, and whether the part was truncated.
fn length_of(word: u64, shift: u8) -> (usize, bool) {
    let length = word >> shift & 0xffff;
    (usize::try_from(length & (CUT - 1)).unwrap_or(0), length & CUT != 0)
}

/// Returns the next part of a tail. Bytes missing from a hostile file are replaced with zeros.
fn tail_part<'t>(tail: &'t mut Vec<u8>, next: &mut usize, length: usize) -> &'t [u8] {
    let from = *next;
    *next += length.next_multiple_of(8);
    if tail.len() < *next {
        tail.resize(*next, 0);
    }
    tail.get(from..from + length).unwrap_or_default()
}
