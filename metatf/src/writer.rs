//! Writes a trace record by record: rows for the caller to fill, metadata where a value needs it, chunks and groups
//! for the container. Both faces write through this.
//!
//! Records of one section keep their order. Records of different sections keep theirs only as far as chunks do, unless
//! [`RecordWriter::keep_order`] asks for a chunk at every change of section.

use crate::buffer::Buffer;
use crate::container::{ChunkWriter, ExtentWriter, Order, Sink, WriteOptions};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::format::{COMMENT, Interpretation, METADATA, SECTION};
use crate::grade::bit;
use crate::group_write::Chunk;
use crate::hindsight::Log;
use crate::predict::SizeRule;
use crate::reader::{FormatRef, Metadata};
use crate::row_foretold_write::ForetoldWriter;
use crate::row_shaped_write::ShapedWriter;
use crate::row_write::{Attempt, Misfit, Put, RowWriter, UNPREDICTED, bytes_for};
use crate::state::{Change, State};
use crate::stream_write::{HELD_A_NUMBER, StreamWriters};
use crate::typed::{Known, WriteFields};
use std::collections::HashMap;

/// The container that takes the chunks.
pub(crate) enum Layout<S: Sink> {
    /// Version 1.
    Chunks(Box<ChunkWriter<S>>),
    /// Version 0.
    Extents(Box<ExtentWriter<S>>),
}

/// One section of a trace being written.
pub(crate) struct SectionWriter {
    pub(crate) state: State,
    /// Encoded records that are not in a chunk yet.
    pub(crate) out: Buffer,
    /// Where the records in `out` end, metadata records and comments counted.
    pub(crate) ends: Vec<u32>,
    /// Data records in `out`.
    pub(crate) records: u32,
    /// What a heap's model was given in this group, while it may turn out that it should have known more.
    pub(crate) log: Option<Box<Log>>,
    /// Chunks of this group that are closed.
    pub(crate) closed: u32,
    /// The next chunk resets the state.
    pub(crate) reset: bool,
    /// Changes to make again after every reset: record, leaf, whether it is for all leaves of the name, change.
    sticky: Vec<(u16, u8, bool, Change)>,
    /// The sticky changes are due.
    fresh: bool,
}

/// Writes the records of a trace. [`finish`](Self::finish) must be called; a writer dropped without it says so on
/// standard error.
pub struct RecordWriter<S: Sink> {
    pub(crate) format: FormatRef,
    pub(crate) layout: Option<Layout<S>>,
    pub(crate) order: Order,
    /// Bytes of a metadata value of default width.
    int_size: usize,
    pub(crate) sections: Vec<SectionWriter>,
    pub(crate) streams: StreamWriters,
    attempt: Attempt,
    /// The stream element encoded last.
    element: Buffer,
    /// Chunks of the group in progress, which wait until the stream sections are known.
    pub(crate) waiting: Vec<Chunk>,
    /// Whether chunks have to wait for stream sections at all.
    pub(crate) waits: bool,
    pub(crate) group: u32,
    /// Nothing of the group is in the file yet.
    pub(crate) group_start: bool,
    /// Raw bytes in the group so far.
    pub(crate) group_bytes: usize,
    interned: HashMap<(usize, Vec<u8>), u64>,
    pub(crate) chunk_size: usize,
    /// Raw bytes after which a group ends; without limit where the caller says when, and in version 0.
    group_size: usize,
    strict: bool,
    keep_order: bool,
    last_section: Option<usize>,
    pub(crate) records: u64,
}

impl<S: Sink> RecordWriter<S> {
    /// Starts a trace.
    ///
    /// # Errors
    /// The sink's.
    pub fn new(sink: S, format: FormatRef, options: &WriteOptions) -> Result<Self> {
        let layout = match options.version {
            0 => Layout::Extents(Box::new(ExtentWriter::new(sink, options, format.tag_width)?)),
            1 => Layout::Chunks(Box::new(ChunkWriter::new(sink, options, format.dtd.as_bytes())?)),
            n => {
                let what = ErrorKind::Invalid { what: "the version to write", found: n.into(), expected: "0 or 1" };
                return Err(Error::at(0, what));
            }
        };
        let section = |i| {
            let mut state = State::new(&format, i);
            // Version 0 cannot say that a model begins anew.
            let unknown = (options.version == 0).then(SizeRule::default);
            state.models.set_rule(options.size_rule.or(unknown));
            SectionWriter::new(state)
        };
        let sections = (0..format.sections.len()).map(section).collect();
        Ok(Self {
            order: options.order,
            int_size: options.class.int_size(),
            sections,
            streams: StreamWriters::new(&format, options.version == 0),
            attempt: Attempt::default(),
            element: Buffer::default(),
            waiting: Vec::new(),
            waits: options.version == 1 && format.sections.iter().any(|s| s.stream),
            group: 0,
            group_start: true,
            group_bytes: 0,
            interned: HashMap::new(),
            chunk_size: options.chunk_size.clamp(1, crate::container::MAX_RAW_LEN / 2),
            group_size: if options.version == 0 { usize::MAX } else { options.group_size.max(1) },
            strict: false,
            keep_order: false,
            last_section: None,
            records: 0,
            format,
            layout: Some(layout),
        })
    }

    /// Strict: a value that does not fit its leaf's encoding is an error, instead of a metadata record that makes it fit.
    pub fn set_strict(&mut self, strict: bool) {
        self.strict = strict;
    }

    /// Keeps the order of records over sections: a new chunk at every change of section.
    pub fn set_keep_order(&mut self, keep_order: bool) {
        self.keep_order = keep_order;
    }

    /// The format written.
    #[must_use]
    pub fn format(&self) -> &FormatRef {
        &self.format
    }

    /// Data records written so far.
    #[must_use]
    pub fn records_written(&self) -> u64 {
        self.records
    }

    /// Writes a `K` of the section, which has `PLANS` plans: in a straight line where its grade and the room allow it.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    #[doc(hidden)]
    #[inline]
    pub fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> Result<()> {
        let mut begun = false;
        if self.is_ready(section) {
            if self.put_straight::<K, T, PLANS>(section, fields).is_some() {
                return Ok(());
            }
            if K::MODELS {
                match self.put_foretold::<K, T, PLANS>(section, fields) {
                    Ok(()) => return Ok(()),
                    Err(learnt) => begun = learnt,
                }
            }
        }
        self.put_apart::<K, T>(section, fields, begun)
    }

    /// A record of which models may have learnt the first values already.
    #[inline(never)]
    fn put_apart<K: Known, T: WriteFields>(&mut self, section: usize, fields: &T, begun: bool) -> Result<()> {
        let encode = |row: &mut RowWriter<'_>| fields.write_fields(row, 0);
        if begun { self.go_on(section, K::RECORD, encode) } else { self.record(section, K::RECORD, encode) }
    }

    /// A record some of whose values a model tells. An error where that cannot be: whether models have learnt the first of
    /// them; nothing else has happened.
    #[inline(always)]
    fn put_foretold<K: Known, T: WriteFields, const PLANS: usize>(
        &mut self,
        section: usize,
        fields: &T,
    ) -> Result<(), bool> {
        let reader = self.format.sections.len() + section;
        let writer = self.sections.get_mut(section).ok_or(false)?;
        if self.order == Order::Big || writer.state.grades.foretold() & const { bit(K::POSITION) } == 0 {
            return Err(false);
        }
        let plans = writer.state.plans.first_chunk::<PLANS>().ok_or(false)?;
        let start = writer.out.used;
        let mut row = ShapedWriter::<K, PLANS, true>::new(&mut writer.out.bytes, start, plans);
        fields.write_fields(&mut row, 0).map_err(|_| false)?;
        let end = row.end().ok_or(false)?;
        // What models have learnt of one value stays learnt, so there has to be room for what they may not know of the next.
        let codes = row.codes();
        if codes > 1 && !self.streams.are_only_of(reader) {
            return Err(false);
        }
        self.attempt.start_record();
        self.attempt.start();
        let SectionWriter { out, state, log, .. } = writer;
        let room = (&mut out.bytes[..], start);
        let mut row = ForetoldWriter::<K, PLANS>::new(room, state, &mut self.attempt, log.is_some(), codes);
        if fields.write_fields(&mut row, 0).is_err() {
            self.attempt.roll_back(&mut state.cells);
            return Err(true);
        }
        if let Some(log) = log {
            self.attempt.noted().for_each(|noted| log.note(noted, writer.closed));
        }
        writer.out.used = end;
        writer.note_end();
        writer.records += 1;
        self.records += 1;
        Ok(())
    }

    /// None where that cannot be; then nothing has happened.
    #[inline(always)]
    fn put_straight<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> Option<()> {
        let writer = self.sections.get_mut(section)?;
        if self.order == Order::Big || writer.state.grades.straight() & const { bit(K::POSITION) } == 0 {
            return None;
        }
        let plans = writer.state.plans.first_chunk::<PLANS>()?;
        let mut row = ShapedWriter::<K, PLANS, false>::new(&mut writer.out.bytes, writer.out.used, plans);
        fields.write_fields(&mut row, 0).ok()?;
        writer.out.used = row.end()?;
        writer.note_end();
        writer.records += 1;
        self.records += 1;
        Some(())
    }

    /// Writes a record of the section and record of these indices. `encode` fills the leaves after the tag, in order; it
    /// is called again where an encoding has to change first.
    ///
    /// # Errors
    /// What `encode` returns; a value that cannot fit; the sink's.
    #[inline]
    pub fn record(
        &mut self,
        section: usize,
        record: u16,
        encode: impl FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        if !self.is_ready(section) {
            self.prepare(section, record)?;
        }
        self.attempt.start_record();
        self.go_on(section, record, encode)
    }

    /// As [`record`](Self::record), where the section is ready, and models may have learnt values of the record.
    #[inline]
    fn go_on(
        &mut self,
        section: usize,
        record: u16,
        mut encode: impl FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        // Every round widens at least one leaf, or ends.
        loop {
            match self.attempt_record(section, record, &mut encode) {
                Ok(true) => break,
                tried => self.widen_all(tried, section, record)?,
            }
        }
        if record != COMMENT {
            self.records += 1;
            if let Some(writer) = self.sections.get_mut(section) {
                writer.records += 1;
            }
        }
        Ok(())
    }

    /// The state of a section, and the index of the record's first plan.
    #[cfg(feature = "dynamic")]
    pub(crate) fn state(&self, section: usize, record: u16) -> Option<(&State, usize)> {
        let state = &self.sections.get(section)?.state;
        Some((state, state.plans_of_record(record)?))
    }

    /// Whether a record of the section can be encoded right away: its chunk and group have room, no change is due.
    #[inline]
    fn is_ready(&self, section: usize) -> bool {
        let Some(writer) = self.sections.get(section) else { return false };
        self.last_section == Some(section)
            && writer.out.used < self.chunk_size
            && !writer.fresh
            && !writer.state.models.is_outdated()
            && self.group_bytes + self.streams.held < self.group_size
    }

    #[inline(never)]
    fn prepare(&mut self, section: usize, record: u16) -> Result<()> {
        self.position(section, record)?;
        self.make_room(section)?;
        self.put_sticky(section)
    }

    /// A record did not fit, or could not be encoded: makes room for its values.
    #[cold]
    #[inline(never)]
    fn widen_all(&mut self, tried: Result<bool>, section: usize, record: u16) -> Result<()> {
        tried?;
        let position = self.position(section, record)?;
        let misfits = std::mem::take(&mut self.attempt.misfits);
        misfits.into_iter().try_for_each(|misfit| self.widen(section, record, position, misfit))
    }

    /// Writes a comment record.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn comment(&mut self, section: usize, text: &[u8]) -> Result<()> {
        self.record(section, COMMENT, |row| {
            row.number(1, text.len() as u64)?;
            row.bytes(2, text)
        })
    }

    /// Writes a metadata record as it is given.
    ///
    /// # Errors
    /// A change that spec 4.1 does not allow.
    pub fn metadata(&mut self, section: usize, metadata: &Metadata) -> Result<()> {
        self.group_size = usize::MAX;
        self.make_room(section)?;
        self.put_metadata(section, metadata)
    }

    /// Changes the encoding of a leaf from here on, in this group and, again, in every later one.
    ///
    /// # Errors
    /// A change that spec 4.1 does not allow.
    pub fn set(&mut self, section: usize, record: u16, leaf: u8, change: Change) -> Result<()> {
        self.set_lasting(section, record, leaf, false, change)
    }

    /// As [`set`](Self::set), for every leaf of the section that has this one's field name, by one metadata record.
    ///
    /// # Errors
    /// A change that spec 4.1 does not allow to one of them.
    pub fn set_all(&mut self, section: usize, record: u16, leaf: u8, change: Change) -> Result<()> {
        self.set_lasting(section, record, leaf, true, change)
    }

    fn set_lasting(&mut self, section: usize, record: u16, leaf: u8, all: bool, change: Change) -> Result<()> {
        self.position(section, record)?;
        self.make_room(section)?;
        self.put_sticky(section)?;
        self.put_change(section, record, leaf, all, change)?;
        if let Some(writer) = self.sections.get_mut(section) {
            writer.sticky.push((record, leaf, all, change));
        }
        Ok(())
    }

    /// Appends an element to a stream section and returns its offset in the section's content. Shared: the section is a
    /// table that grows over the whole trace. Otherwise the element belongs to the group in progress.
    ///
    /// # Errors
    /// What `encode` returns; a value that does not fit the DTD's widths (a section of one number adapts).
    pub fn element(
        &mut self,
        section: usize,
        shared: bool,
        encode: &mut dyn FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<u64> {
        let record = self.element_record(section)?;
        let shared = shared && self.waits;
        // Chunks of numbers adapt their width: not in a table, whose offsets are given out, and not in version 0.
        let adapts = !shared && !self.streams.fixed;
        self.encode_element(section, record, adapts, encode)?;
        let encoded = self.element.in_use();
        let Some(writer) = self.streams.streams.get_mut(section) else { return Ok(0) };
        if shared {
            let offset = writer.table_length;
            writer.table_length += encoded.len() as u64;
            writer.table.extend_from_slice(encoded);
            writer.table_count += 1;
            return Ok(offset);
        }
        let single = self.format.records.get(usize::from(record)).is_some_and(|r| r.single_number().is_some());
        let value = self.sections.get(section).and_then(|s| {
            let last = s.state.plan(0).map(|p| p.last as usize)?;
            s.state.cells.get(last).copied()
        });
        if writer.given.is_empty() {
            writer.given.push(crate::stream_write::Segment::default());
        }
        // Offsets into a section of one number hold where its width does: in version 0.
        let width =
            self.format.records.get(usize::from(record)).and_then(|r| r.single_number()).map_or(0, |l| l.width());
        let offset = writer.next_local(width);
        if let Some(segment) = writer.given.last_mut() {
            segment.count += 1;
            match value {
                Some(value) if single => {
                    segment.values.push(value);
                    self.streams.held += HELD_A_NUMBER;
                }
                _ => {
                    segment.raw.extend_from_slice(encoded);
                    self.streams.held += encoded.len();
                }
            }
        }
        Ok(offset)
    }

    /// The offset that the next new element of a table will get by [`intern`](Self::intern).
    #[must_use]
    pub fn next_offset(&self, section: usize) -> u64 {
        let Some(writer) = self.streams.streams.get(section) else { return 0 };
        if self.waits {
            return writer.table_length;
        }
        let record = self.element_record(section).ok().and_then(|r| self.format.records.get(usize::from(r)));
        writer.next_local(record.and_then(|r| r.single_number()).map_or(0, |l| l.width()))
    }

    /// Like [`element`](Self::element) of a shared table, but equal elements are stored once.
    ///
    /// # Errors
    /// As [`element`](Self::element).
    pub fn intern(&mut self, section: usize, encode: &mut dyn FnMut(&mut RowWriter<'_>) -> Result<()>) -> Result<u64> {
        let record = self.element_record(section)?;
        // The key is the element's bytes at the DTD's state, whatever the state of the table is.
        let Some(saved) = self.sections.get(section).map(|s| s.state.clone()) else { return Ok(0) };
        if let Some(writer) = self.sections.get_mut(section) {
            writer.state.reset(&self.format);
        }
        let encoded = self.encode_element(section, record, false, encode);
        if let Some(writer) = self.sections.get_mut(section) {
            writer.state = saved;
        }
        encoded?;
        let key = self.element.in_use().to_vec();
        if let Some(&offset) = self.interned.get(&(section, key.clone())) {
            return Ok(offset);
        }
        let offset = self.element(section, true, encode)?;
        self.interned.insert((section, key), offset);
        Ok(offset)
    }

    /// Adds user metadata, a JSON object (version 1; version 0 has no place for it).
    ///
    /// # Errors
    /// Text that is no JSON object, a version 0 file; the sink's.
    pub fn user_metadata(&mut self, json: &str) -> Result<()> {
        match &mut self.layout {
            Some(Layout::Chunks(chunks)) => chunks.user_metadata(json),
            _ => Err(Error::at(0, ErrorKind::Usage("a version 0 file has no place for user metadata"))),
        }
    }

    /// Ends the group in progress and starts another (version 1): what follows can be read without what precedes.
    /// Version 0 has one group: there nothing happens.
    ///
    /// # Errors
    /// The sink's.
    pub fn start_group(&mut self) -> Result<()> {
        if self.streams.fixed {
            return Ok(());
        }
        self.group_size = usize::MAX;
        self.next_group()
    }

    /// Resets the state of a section inside the group (version 1). Version 0 cannot say so: there state goes on.
    ///
    /// # Errors
    /// The sink's.
    pub fn reset(&mut self, section: usize) -> Result<()> {
        if self.streams.fixed {
            return Ok(());
        }
        self.group_size = usize::MAX;
        if self.format.sections.get(section).is_some_and(|s| s.stream) {
            // Where nothing was given since the last reset there is nothing to reset.
            if let Some(writer) = self.streams.streams.get_mut(section)
                && writer.given.last().is_some_and(|segment| segment.count > 0)
            {
                writer.given.push(crate::stream_write::Segment::default());
            }
        } else {
            self.close_chunk(section)?;
        }
        if let Some(writer) = self.sections.get_mut(section) {
            writer.restart(&self.format);
        }
        Ok(())
    }

    /// Hands on what is written to where it goes. What the group in progress holds is not written yet (version 1), see
    /// [`start_group`](Self::start_group).
    ///
    /// # Errors
    /// The sink's.
    pub fn flush(&mut self) -> Result<()> {
        match &mut self.layout {
            Some(Layout::Chunks(chunks)) => chunks.flush(),
            _ => Ok(()),
        }
    }

    /// Gives up: what is in the sink is no whole trace, and nobody is told.
    pub fn abandon(mut self) {
        self.layout = None;
    }

    fn position(&self, section: usize, record: u16) -> Result<usize> {
        let listed = self.format.sections.get(section).filter(|s| !s.stream).map(|s| &s.records);
        let position = listed.and_then(|r| r.iter().position(|&r| r == record));
        let position = position.filter(|_| record != SECTION && record != METADATA);
        position.ok_or_else(no_such_record)
    }

    fn element_record(&self, section: usize) -> Result<u16> {
        let stream = self.format.sections.get(section).filter(|s| s.stream);
        let record = stream.and_then(|s| s.records.first()).copied();
        record.ok_or(Error::at(0, ErrorKind::Usage("not a stream section")))
    }

    /// Before a record: a chunk that is full is closed, a group that is full ended.
    fn make_room(&mut self, section: usize) -> Result<()> {
        if self.keep_order && self.last_section.is_some_and(|last| last != section) {
            self.close_chunk(self.last_section.unwrap_or(section))?;
        }
        self.last_section = Some(section);
        let length = self.sections.get(section).map_or(0, |s| s.out.used);
        if length >= self.chunk_size {
            self.close_chunk(section)?;
        }
        if self.sections.get(section).is_some_and(|s| s.state.models.is_outdated()) {
            self.close_chunk(section)?;
            if let Some(writer) = self.sections.get_mut(section) {
                writer.restart(&self.format);
            }
        }
        let held = self.group_bytes + self.streams.held;
        if held >= self.group_size {
            self.next_group()?;
        }
        Ok(())
    }

    /// Encodes a record once. False where a value did not fit; then nothing was written.
    #[inline(always)]
    fn attempt_record(
        &mut self,
        section: usize,
        record: u16,
        encode: &mut impl FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<bool> {
        let writer = self.sections.get_mut(section);
        let Some(((r, writer), first)) = self.format.records.get(usize::from(record)).zip(writer).and_then(|found| {
            let first = found.1.state.plans_of_record(record)?;
            Some((found, first))
        }) else {
            return Err(no_such_record());
        };
        let start = writer.out.used;
        self.attempt.start();
        self.streams.start();
        let tag_width = self.format.tag_width;
        let mut row = RowWriter {
            format: &self.format,
            record: r,
            first,
            state: &mut writer.state,
            out: &mut writer.out.bytes,
            at: start,
            start,
            order: self.order,
            attempt: &mut self.attempt,
            streams: &mut self.streams,
            items: 0,
        };
        row.tag(r.tag, tag_width);
        let mut encoded = encode(&mut row);
        if encoded.is_ok() {
            encoded = row.finish();
        }
        let end = row.at;
        let too_long = end - start > crate::container::MAX_RAW_LEN;
        if encoded.is_ok() && self.attempt.misfits.is_empty() && !too_long {
            writer.out.used = end;
            if !self.attempt.predicts() || self.predict(section) {
                if let Some(writer) = self.sections.get_mut(section) {
                    writer.note_end();
                }
                return Ok(true);
            }
        }
        self.take_back(section, start, encoded, too_long)
    }

    /// Runs the models of the record's predicted leaves. False where that made misfits.
    #[inline]
    fn predict(&mut self, section: usize) -> bool {
        if let Some(writer) = self.sections.get_mut(section) {
            let (state, out) = (&mut writer.state, &mut writer.out.bytes);
            let how = (self.order, self.strict);
            self.attempt.predict(&self.format, state, &mut self.streams, how, out);
            if let Some(log) = writer.log.as_mut().filter(|_| self.attempt.misfits.is_empty()) {
                self.attempt.noted().for_each(|noted| log.note(noted, writer.closed));
            }
        }
        self.attempt.misfits.is_empty()
    }

    /// Takes a record back that did not fit, or could not be encoded.
    #[cold]
    #[inline(never)]
    fn take_back(&mut self, section: usize, start: usize, encoded: Result<()>, too_long: bool) -> Result<bool> {
        if let Some(writer) = self.sections.get_mut(section) {
            writer.out.used = start;
            self.attempt.roll_back(&mut writer.state.cells);
        }
        self.streams.roll_back();
        encoded?;
        if too_long {
            return Err(Error::at(0, ErrorKind::Limit("a record of over 64 MiB does not fit a chunk")));
        }
        Ok(false)
    }

    /// Emits the metadata record that makes a value fit.
    fn widen(&mut self, section: usize, record: u16, position: usize, misfit: Misfit) -> Result<()> {
        let Some(writer) = self.sections.get(section) else { return Ok(()) };
        let index = writer.state.plans_of(position) + usize::from(misfit.leaf);
        let interpretation = writer.state.interpretation(index);
        let width = writer.state.plan(index).map_or(0, |p| p.width);
        if self.strict {
            let mut error = Error::at(0, ErrorKind::DoesNotFit { value: misfit.value, width });
            error.place = Place { section: self.number(section), leaf: Some(misfit.leaf), ..Place::default() };
            error.place.tag = self.format.records.get(usize::from(record)).map(|r| r.tag);
            return Err(error);
        }
        if misfit.needs == UNPREDICTED {
            let wanted = bytes_for(misfit.value, false).next_power_of_two();
            self.put_change(section, record, misfit.leaf, false, Change::Width(wanted))?;
            return self.put_change(section, record, misfit.leaf, false, Change::Interpretation(Interpretation::None));
        }
        let wanted = misfit.needs.next_power_of_two();
        if interpretation.stores() {
            // An item before this one of the same record may have made room already.
            if width < wanted {
                self.put_change(section, record, misfit.leaf, false, Change::Width(wanted))?;
            }
            return Ok(());
        }
        if writer.state.remembered(index) < wanted {
            self.put_change(section, record, misfit.leaf, false, Change::Width(wanted))?;
        }
        self.put_change(section, record, misfit.leaf, false, Change::Interpretation(Interpretation::None))
    }

    fn number(&self, section: usize) -> Option<u8> {
        self.format.sections.get(section).map(|s| s.number)
    }

    fn put_change(&mut self, section: usize, record: u16, leaf: u8, all: bool, change: Change) -> Result<()> {
        let tag = self.format.records.get(usize::from(record)).map_or(0, |r| r.tag);
        let metadata = Metadata::new(tag, leaf, change);
        self.put_metadata(section, &if all { metadata.for_all() } else { metadata })
    }

    fn put_metadata(&mut self, section: usize, metadata: &Metadata) -> Result<()> {
        let at = |kind| Error::at(0, kind);
        let change = metadata.change().map_err(at)?;
        let int_size = self.int_size;
        let Some(writer) = self.sections.get_mut(section) else { return Ok(()) };
        let unknown = ErrorKind::Metadata("it names a tag that is not declared here");
        let position = writer.state.position(metadata.record).ok_or(at(unknown))?;
        let width = match metadata.property >> 4 {
            0 => int_size,
            n @ 1..=8 => usize::from(n),
            _ => return Err(at(ErrorKind::Metadata("a value width over 8"))),
        };
        for (i, &value) in metadata.values.iter().take(usize::from(metadata.count)).enumerate() {
            if usize::from(bytes_for(value, i == 1)) > width {
                return Err(at(ErrorKind::Metadata("a value that does not fit the width its property gives")));
            }
        }
        writer.state.apply(&self.format, position, metadata.field, metadata.all(), change).map_err(at)?;
        let tag_width = usize::from(self.format.tag_width);
        let mut bytes = Vec::with_capacity(26);
        self.order.write(3, tag_width, &mut bytes);
        self.order.write(metadata.record.into(), tag_width, &mut bytes);
        bytes.extend_from_slice(&[metadata.field, metadata.property]);
        for &value in metadata.values.iter().take(usize::from(metadata.count)) {
            self.order.write(value, width, &mut bytes);
        }
        writer.out.append(&bytes);
        writer.note_end();
        Ok(())
    }

    /// Makes the lasting changes again after a reset.
    fn put_sticky(&mut self, section: usize) -> Result<()> {
        let Some(writer) = self.sections.get_mut(section).filter(|s| s.fresh) else { return Ok(()) };
        writer.fresh = false;
        let sticky = writer.sticky.clone();
        for (record, leaf, all, change) in sticky {
            self.put_change(section, record, leaf, all, change)?;
        }
        Ok(())
    }

    /// Encodes a stream element to `self.element`, by the state of its section. `adapts`: a value that does not fit
    /// is no error in a section of one number.
    fn encode_element(
        &mut self,
        section: usize,
        record: u16,
        adapts: bool,
        encode: &mut dyn FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some((r, writer)) = self.format.records.get(usize::from(record)).zip(self.sections.get_mut(section)) else {
            return Err(Error::at(0, ErrorKind::Usage("no such record")));
        };
        self.attempt.start();
        self.streams.start();
        let mut row = RowWriter {
            format: &self.format,
            record: r,
            first: 0,
            state: &mut writer.state,
            out: &mut self.element.bytes,
            at: 0,
            start: 0,
            order: self.order,
            attempt: &mut self.attempt,
            streams: &mut self.streams,
            items: 0,
        };
        let encoded = encode(&mut row).and_then(|()| row.finish());
        self.element.used = row.at;
        // Only a section of one number can adapt the width of its chunks; others have no metadata.
        let misfit = self.attempt.misfits.first().filter(|_| !adapts || r.single_number().is_none()).copied();
        if encoded.is_ok() && misfit.is_none() {
            return Ok(());
        }
        self.attempt.roll_back(&mut writer.state.cells);
        encoded?;
        let Some(misfit) = misfit else { return Ok(()) };
        let width = writer.state.plan(usize::from(misfit.leaf)).map_or(0, |p| p.width);
        let mut error = Error::at(0, ErrorKind::DoesNotFit { value: misfit.value, width });
        error.place.section = self.number(section);
        error.place.leaf = Some(misfit.leaf);
        Err(error)
    }
}

#[cold]
fn no_such_record() -> Error {
    Error::at(0, ErrorKind::Usage("the section has no such data record"))
}

impl SectionWriter {
    fn new(state: State) -> Self {
        Self {
            state,
            out: Buffer::default(),
            ends: Vec::new(),
            records: 0,
            log: None,
            closed: 0,
            reset: true,
            sticky: Vec::new(),
            fresh: false,
        }
    }

    /// A record ends here.
    #[inline]
    fn note_end(&mut self) {
        // A chunk has at most 64 MiB.
        self.ends.push(u32::try_from(self.out.used).unwrap_or(u32::MAX));
    }

    /// The next chunk starts from the DTD's state.
    pub(crate) fn restart(&mut self, format: &crate::format::Format) {
        self.state.reset(format);
        self.log = None;
        self.reset = true;
        self.fresh = true;
    }

    /// A group starts: it may turn out that its heap's model should know what is live.
    pub(crate) fn restart_group(&mut self, format: &crate::format::Format) {
        let new = self.state.models.live();
        let live = match self.log.take() {
            Some(log) => log.after(&self.state.model_cells, new),
            None => new,
        };
        self.restart(format);
        self.closed = 0;
        if live.iter().any(|(_, objects)| !objects.is_empty()) {
            self.log = Some(Box::new(Log::new(live)));
        }
    }
}

impl<S: Sink> Drop for RecordWriter<S> {
    fn drop(&mut self) {
        if self.layout.is_some() && !std::thread::panicking() {
            eprintln!(
                "metatf: a trace writer was dropped without finish(): the trace has no index, and records may be missing"
            );
        }
    }
}

impl Metadata {
    /// The same for all leaves of the field's name (bit 3 of the property).
    #[must_use]
    pub fn for_all(self) -> Self {
        Self { property: self.property | 8, ..self }
    }

    /// The metadata record of a change, its values as short as they go.
    #[must_use]
    pub fn new(record: u32, field: u8, change: Change) -> Self {
        let (code, values, count) = match change {
            Change::Width(width) => (0, [width.into(), 0], 1),
            Change::Interpretation(interpretation) => match interpretation {
                Interpretation::None | Interpretation::BaseOffsetOf(..) | Interpretation::Predicted(_) => {
                    (1, [0, 0], 0)
                }
                Interpretation::BaseOffset(base) => (2, [base, 0], 1),
                Interpretation::Delta(initial) => (3, [initial, 0], 1),
                Interpretation::Default(value) => (4, [value, 0], 1),
                Interpretation::SectionOffset(n) => (5, [n.into(), 0], 1),
                Interpretation::Stride(initial, stride) => (6, [initial, stride], 2),
                Interpretation::SectionStride(n, stride) => (7, [n.into(), stride], 2),
            },
        };
        let [first, second] = values;
        let width = bytes_for(first, false).max(if count == 2 { bytes_for(second, true) } else { 1 });
        let nibble = if count == 0 { 0 } else { width << 4 };
        Self { record, field, property: nibble | code, values, count }
    }
}
