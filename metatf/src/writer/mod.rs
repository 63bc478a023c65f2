//! The record writer, which writes a trace record by record. It supplies rows for the caller to fill, writes metadata
//! when a value requires it, and assembles chunks and groups for the container. Both the generated writers and the
//! dynamic writer are built on it.
//!
//! Records of one section keep their order. The order across sections is preserved only at chunk granularity, unless
//! [`RecordWriter::set_keep_order`] requests a new chunk at every change of section.

mod attempt;
mod batch;
mod carry_over;
mod clock;
mod element;
mod flush;
mod group;
mod in_place;
mod intern;
mod metadata;
mod record_writer;
mod resume;
mod rows;
mod section;
#[cfg(feature = "dynamic")]
mod trial;
mod typed;

use crate::buffer::Buffer;
use crate::encode::{Attempt, GivenElements, NOT_LAST, StreamWriters};
use crate::format::{COMMENT, FormatRef, METADATA, SECTION};
#[cfg(feature = "dynamic")]
use crate::formula::{BYTES, HISTORY, SPECIAL, plain};
use crate::record::Put;
use crate::state::State;
use flush::FlushLimit;
use group::{Chunk, ChunkPool};
use intern::Interned;
pub(crate) use intern::Key;
use metatf_container::{Chunks, Error, ErrorKind, Extents, Filter, Order, Result, Sink, SizeRule, WriteOptions};
pub use record_writer::RecordWriter;
pub(crate) use section::SectionWriter;
#[cfg(feature = "dynamic")]
pub use trial::{TrialEncoder, TrialState};

/// The container writer that receives the chunks.
pub(crate) enum FileWriter {
    /// Version 1.
    Chunks(Box<Chunks>),
    /// Version 0.
    Extents(Box<Extents>),
}

/// Everything that [`RecordWriter`] does, compiled once: its methods belong to `RecordCore<dyn Sink>` rather than to
/// each type of sink.
pub(crate) struct RecordCore<S: ?Sized> {
    pub(crate) format: FormatRef,
    pub(crate) layout: Option<FileWriter>,
    pub(crate) order: Order,
    /// Default width of a metadata value in bytes (4 in class 1, 8 in class 2).
    int_size: usize,
    pub(crate) sections: Vec<SectionWriter>,
    pub(crate) streams: StreamWriters,
    attempt: Attempt,
    /// The most recently encoded stream element.
    element: Buffer,
    /// The chunks of the current group, which wait until its stream sections are complete.
    pub(crate) waiting: Vec<Chunk>,
    pub(crate) pool: ChunkPool,
    /// Whether chunks must wait for stream sections.
    pub(crate) waits: bool,
    pub(crate) group: u32,
    /// Whether no chunk of the group has been written to the file yet.
    pub(crate) group_start: bool,
    /// Number of raw bytes in the group so far.
    pub(crate) group_bytes: usize,
    interned: Interned,
    pub(crate) chunk_size: usize,
    /// Number of raw bytes after which a group ends; unlimited in version 0, or if the caller ends the groups.
    group_size: usize,
    flush_limit: FlushLimit,
    strict: bool,
    /// Whether the output is a raw stream, which contains no metadata.
    raw: bool,
    keep_order: bool,
    last_section: Option<usize>,
    /// The section whose chunk is being built in place, in the sink's memory.
    pub(crate) in_place: Option<usize>,
    /// Number of data records in closed chunks.
    pub(crate) records: u64,
    sink: S,
}

impl<S: Sink> RecordCore<S> {
    /// Starts a trace. Options that do not name a DTD name `source`.
    fn new(mut sink: S, format: FormatRef, options: Option<&WriteOptions>, source: &str) -> Result<Self> {
        // This function is compiled for each type of sink, so it only moves fields.
        let core = start(&mut sink, format, options, source)?;
        Ok(Self {
            format: core.format,
            layout: core.layout,
            order: core.order,
            int_size: core.int_size,
            sections: core.sections,
            streams: core.streams,
            attempt: core.attempt,
            element: core.element,
            waiting: core.waiting,
            pool: core.pool,
            waits: core.waits,
            group: core.group,
            group_start: core.group_start,
            group_bytes: core.group_bytes,
            interned: core.interned,
            chunk_size: core.chunk_size,
            group_size: core.group_size,
            flush_limit: core.flush_limit,
            strict: core.strict,
            raw: core.raw,
            keep_order: core.keep_order,
            last_section: core.last_section,
            in_place: core.in_place,
            records: core.records,
            sink,
        })
    }
}

/// Starts a trace in the sink and returns a core without the sink.
fn start(
    sink: &mut dyn Sink,
    format: FormatRef,
    options: Option<&WriteOptions>,
    source: &str,
) -> Result<RecordCore<()>> {
    let mut options = options.cloned().unwrap_or_default();
    if options.dtd_url.is_empty() {
        source.clone_into(&mut options.dtd_url);
    }
    let is_volatile = sink.is_volatile();
    let layout = match options.version {
        0 if sink.existing().is_some() => {
            return Err(Error::at(0, ErrorKind::Usage("only traces in version 1 can be continued")));
        }
        0 => {
            let mut writer = Extents::new(&options, format.tag_width)?;
            writer.set_section_tag(format.tag(SECTION));
            if let Some(raw) = &format.raw {
                let before = raw.starts.iter().map(|start| start.section).filter(|number| *number != raw.records);
                writer.set_raw_around(before, raw.trailer);
            }
            FileWriter::Extents(Box::new(writer))
        }
        1 => {
            let dtd = format.dtd.as_bytes();
            let mut chunks = Chunks::new(sink, &options, dtd, &|existing| format.is_same(existing))?;
            chunks.set_time_leaves(format.time_leaves());
            FileWriter::Chunks(Box::new(chunks))
        }
        n => {
            let what = ErrorKind::Invalid { what: "the version to write", found: n.into(), expected: "0 or 1" };
            return Err(Error::at(0, what));
        }
    };
    let section = |i| {
        let mut state = State::new(&format, i);
        // In version 0, use the default rule instead of guessing, because a wrong guess could not be corrected by a
        // reset.
        let unknown = (options.version == 0).then(SizeRule::default);
        state.history.models.set_rule(options.size_rule.or(unknown));
        let number = format.sections.get(i).map_or(0, |s| s.number);
        let wants_rows = options.version == 1 && options.of_section(number).1 == Filter::Columns;
        SectionWriter::new(state, options.wants_ends(number), wants_rows)
    };
    let sections: Vec<_> = (0..format.sections.len()).map(section).collect();
    Ok(RecordCore {
        order: options.order,
        int_size: options.class.int_size(),
        streams: StreamWriters::new(&format, options.version == 0),
        attempt: Attempt::default(),
        element: Buffer::default(),
        waiting: Vec::new(),
        pool: ChunkPool::default(),
        waits: options.version == 1 && format.sections.iter().any(|s| s.stream),
        group: 0,
        group_start: true,
        group_bytes: 0,
        interned: Interned::default(),
        chunk_size: options.chunk_size.clamp(1, metatf_container::MAX_RAW_LEN / 2),
        group_size: if options.version == 0 { usize::MAX } else { options.group_size.max(1) },
        flush_limit: FlushLimit::new(&options, is_volatile, &sections),
        strict: options.raw,
        raw: options.raw,
        keep_order: false,
        last_section: None,
        in_place: None,
        records: 0,
        sections,
        format,
        layout: Some(layout),
        sink: (),
    })
}

impl RecordCore<dyn Sink + '_> {
    fn records_written(&self) -> u64 {
        self.records + self.sections.iter().map(|section| u64::from(section.records)).sum::<u64>()
    }

    #[cfg(feature = "dynamic")]
    fn unstored_value(&self, section: usize, record: u16, leaf: u8) -> Option<u64> {
        let encoding = &self.sections.get(section)?.state.encoding;
        let plan = encoding.plan(encoding.plans_of_record(record)? + usize::from(leaf))?;
        (plan.width.is_zero() && plan.flags & (HISTORY | SPECIAL | BYTES) == 0).then(|| plain(0, plan))
    }

    /// Returns whether a record of the section can be encoded immediately, because neither its chunk nor its group is
    /// full and no change is due.
    #[inline]
    fn is_ready(&self, section: usize) -> bool {
        let Some(writer) = self.sections.get(section) else { return false };
        self.last_section == Some(section)
            && writer.out.len() < self.chunk_size
            && !writer.fresh
            && !writer.state.history.models.is_outdated()
            && self.group_has_place(writer.out.len())
    }

    /// Returns whether a record can be added to the group without flushing first. `open` is the number of bytes in the
    /// open section.
    #[inline]
    fn group_has_place(&self, open: usize) -> bool {
        let closed = self.group_bytes + self.streams.held;
        closed < self.group_size && self.flush_limit.allows(closed + open)
    }

    #[inline(never)]
    fn prepare(&mut self, section: usize, record: u16) -> Result<()> {
        self.position(section, record)?;
        self.close_full(section)?;
        self.put_sticky(section)
    }

    fn comment(&mut self, section: usize, text: &[u8]) -> Result<()> {
        self.record(section, COMMENT, &mut |row| {
            row.number(1, text.len() as u64)?;
            row.bytes(2, text)
        })
    }

    fn user_metadata(&mut self, json: &str) -> Result<()> {
        self.end_in_place();
        match &mut self.layout {
            Some(FileWriter::Chunks(chunks)) => chunks.user_metadata(&mut self.sink, json),
            _ => Err(Error::at(0, ErrorKind::Usage("a version 0 file cannot store user metadata"))),
        }
    }

    fn start_group(&mut self) -> Result<()> {
        if self.streams.fixed {
            return Ok(());
        }
        self.stop_grouping();
        self.next_group()
    }

    fn reset(&mut self, section: usize) -> Result<()> {
        if self.streams.fixed {
            return Ok(());
        }
        self.stop_grouping();
        if self.format.sections.get(section).is_some_and(|s| s.stream) {
            // If no elements were added since the last reset, no further reset is needed.
            if let Some(writer) = self.streams.streams.get_mut(section)
                && writer.given.last().is_some_and(|segment| segment.count > 0)
            {
                writer.given.push(GivenElements::default());
            }
        } else {
            self.close_chunk(section)?;
        }
        if let Some(writer) = self.sections.get_mut(section) {
            writer.restart(&self.format);
        }
        Ok(())
    }

    /// Abandons the trace. Returns false if the trace has already been finished or abandoned.
    fn give_up(&mut self) -> bool {
        self.end_in_place();
        match self.layout.take() {
            Some(FileWriter::Extents(extents)) => extents.abandon(&mut self.sink),
            Some(FileWriter::Chunks(_)) => {}
            None => return false,
        }
        true
    }

    /// Abandons the trace with a message if it has not been finished or abandoned.
    fn warn_if_unfinished(&mut self) {
        if self.give_up() && !std::thread::panicking() {
            eprintln!(
                "metatf: a trace writer was dropped without a call of finish(), so the trace has no index and may lack \
                 records"
            );
        }
    }

    fn position(&self, section: usize, record: u16) -> Result<usize> {
        let listed = self.format.sections.get(section).filter(|s| !s.stream).map(|s| &s.records);
        let position = listed.and_then(|r| r.iter().position(|&r| r == record));
        let position = position.filter(|_| record != SECTION && record != METADATA);
        position.ok_or_else(no_such_record)
    }

    /// Closes a full chunk and ends a full group before a record of the section is written.
    fn close_full(&mut self, section: usize) -> Result<()> {
        self.close_open_section();
        if self.keep_order && self.last_section.is_some_and(|last| last != section) {
            self.close_chunk(self.last_section.unwrap_or(section))?;
        }
        self.last_section = Some(section);
        self.flush_due(section)?;
        let length = self.sections.get(section).map_or(0, |s| s.out.len());
        if length >= self.chunk_size {
            self.close_chunk(section)?;
        }
        if self.sections.get(section).is_some_and(|s| s.state.history.models.is_outdated()) {
            if self.streams.fixed {
                return Err(Error::at(0, ErrorKind::Usage(NOT_LAST)));
            }
            self.close_chunk(section)?;
            if let Some(writer) = self.sections.get_mut(section) {
                writer.restart(&self.format);
            }
        }
        let held = self.group_bytes + self.streams.held;
        if held >= self.group_size {
            self.next_group()?;
        }
        self.start_in_place(section)
    }

    /// Closes the buffer of the open section, so that [`is_ready`](Self::is_ready) is consulted for its next record.
    /// Only the section written to last can be open.
    #[inline]
    fn close_open_section(&mut self) {
        if let Some(writer) = self.last_section.and_then(|last| self.sections.get_mut(last)) {
            writer.out.close();
        }
    }

    fn number(&self, section: usize) -> Option<u8> {
        self.format.sections.get(section).map(|s| s.number)
    }
}

#[cold]
fn no_such_record() -> Error {
    Error::at(0, ErrorKind::Usage("the section has no such data record"))
}
