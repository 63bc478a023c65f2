//! Walks a trace record by record: parts from the container, state from metadata, rows for the caller to decode.
//!
//! Both faces read through this: generated code decodes a [`ContentRow`] into its structs, the universal reader into an
//! owned record. After an error nothing more comes.

mod annotate;
mod batch;
mod columns;
mod element_table;
mod metadata;
mod parts;
mod raw;
mod recognize;
mod rows;
mod run;
mod seek;
mod skip;
#[cfg(feature = "parallel")]
mod split;
mod views;

pub use crate::format::FormatRef;
pub use crate::state::Metadata;
pub use annotate::VisitField;
pub(crate) use element_table::{SharedTable, lock};
pub use recognize::{RecognizedFile, begins_as, recognize, recognized};
pub(crate) use rows::One;
#[cfg(feature = "parallel")]
pub(crate) use split::{GroupList, GroupSummary, StatePool, Tables};
pub use views::{Item, RecordView};

use crate::decode::{ContentRow, Decoding};
use crate::format::{COMMENT, METADATA, SECTION};
use crate::record::Stopped;
use crate::state::State;
use crate::streams::{Bytes, Piece, Streams, place};
use columns::ColumnFiller;
use metatf_container::{Content, Error, ErrorKind, Order, Origin, Part, Result};
use std::collections::VecDeque;
use views::Views;

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Index in [`Format::sections`](crate::format::Format::sections).
    pub section: usize,
    /// Index in [`Format::records`](crate::format::Format::records).
    pub record: u16,
    /// Spec 8's `@offset`: in the file (version 0), or in the section's logical content (version 1).
    pub offset: u64,
}

/// What comes next in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A data record; decode it, or it is skipped.
    Record(At),
    /// A comment record; decode it, or it is skipped.
    Comment(At),
    /// An element of a stream section (only when everything is asked for).
    Element(At, /** Of a shared table. */ bool),
    /// A metadata record, already applied.
    Metadata(At, Metadata),
    /// A `section` record (version 0): it ends the section of `At`, and starts the one of this number.
    Section(At, u8),
    /// A group starts (version 1, from the second on).
    Group(u32),
    /// State of the section of this index is reset inside a group.
    Reset(usize),
}

/// The part that is being read.
struct Current {
    section: usize,
    content: Content,
    origin: Origin,
    base: u64,
    /// Of elements: the bytes before the content in its section, in any version.
    logical: u64,
    position: usize,
    follow: bool,
    declared: Option<u32>,
    found: u64,
    is_element: bool,
    shared: bool,
}

/// What is known of what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Unknown,
    /// A record of a section that is not a stream, in little endian, or the end of its part. What was found once holds until
    /// something else than a record is asked for: that is all that is tested for a record.
    Plain,
    /// Records were decoded ahead of those that were given.
    Ahead,
    /// Nothing.
    Finished,
}

/// A record that was announced and not yet decoded.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    /// Where it begins in the part.
    start: usize,
    /// Index in the format's sections.
    pub(crate) section: usize,
    /// Index in the format's records.
    pub(crate) record: u16,
    /// Index of its first plan.
    first: usize,
}

/// Reads the records of a trace in order. See the module's head.
pub struct RecordReader<'a> {
    format: FormatRef,
    container: metatf_container::Reader<'a>,
    order: Order,
    states: Vec<State>,
    streams: Streams,
    parts: VecDeque<Part>,
    current: Option<Current>,
    pending: Option<Pending>,
    queue: VecDeque<Event>,
    /// Elements of the finished group still to be delivered: section, piece, whether of a shared table.
    elements: VecDeque<(usize, Piece, bool)>,
    /// Elements of shared tables, due before the next group.
    shared: VecDeque<(usize, Piece, bool)>,
    /// Sections that had a part in this group.
    seen: Vec<bool>,
    group: u32,
    last_section: usize,
    /// Deliver elements, too.
    all: bool,
    salvage: bool,
    next: Next,
    /// Data records in the parts before the current one.
    records: u64,
    /// An error that is due after what stands before it.
    deferred: Option<Error>,
    /// A group has begun.
    group_open: bool,
    /// The elements of this group were queued.
    flushed: bool,
    /// The parts of a version 0 file, to start over from.
    table: Vec<Part>,
    /// An event that seeking found and did not deliver.
    found: Option<Event>,
    /// Why the last row stopped.
    stopped: Option<Error>,
    /// An error that is reported when the records before it were given, after which nothing comes.
    held: Option<Error>,
    /// For columns.
    filler: Option<Box<ColumnFiller>>,
    /// By section: what elements are found in, where that was asked for.
    tables: Vec<Option<SharedTable<'a>>>,
    /// For records by their values.
    views: Views,
}

/// Why a row stopped.
#[cold]
#[inline(never)]
pub(crate) fn why<T>(stopped: Option<&mut Option<Error>>) -> Result<T> {
    Err(stopped.and_then(Option::take).unwrap_or(Stopped(()).into()))
}

/// What has to be reported when a record was decoded.
struct End<'t> {
    position: &'t mut usize,
    next: &'t mut Next,
}

impl Bytes for metatf_container::Reader<'_> {
    fn bytes<'c>(&'c self, content: &'c Content) -> &'c [u8] {
        metatf_container::Reader::bytes(self, content)
    }
}

impl<'a> RecordReader<'a> {
    /// Reads the container's records by this format.
    ///
    /// # Errors
    /// A section table that does not hold (version 0).
    pub fn new(format: FormatRef, container: metatf_container::Reader<'a>) -> Result<Self> {
        Self::with(format, container, Vec::new())
    }

    /// As [`new`](Self::new), with the states of a reader by the same format, or none, whose memory is used again.
    fn with(format: FormatRef, mut container: metatf_container::Reader<'a>, mut states: Vec<State>) -> Result<Self> {
        container.set_tag_width(format.tag_width);
        container.set_section_tag(format.tag(SECTION));
        let sections = format.sections.len();
        if states.len() == sections {
            states.iter_mut().for_each(|state| state.reset(&format));
        } else {
            states = (0..sections).map(|i| State::new(&format, i)).collect();
        }
        let mut reader = Self {
            order: container.header().order,
            states,
            streams: Streams::new(&format),
            parts: VecDeque::new(),
            current: None,
            pending: None,
            queue: VecDeque::new(),
            elements: VecDeque::new(),
            shared: VecDeque::new(),
            seen: vec![false; sections],
            group: 0,
            last_section: 0,
            all: false,
            salvage: false,
            next: Next::Unknown,
            records: 0,
            deferred: None,
            group_open: false,
            flushed: false,
            table: Vec::new(),
            found: None,
            stopped: None,
            held: None,
            filler: None,
            tables: Vec::new(),
            views: Views::default(),
            format,
            container,
        };
        if reader.version_0() {
            reader.group_open = true;
            reader.read_table();
        }
        Ok(reader)
    }

    /// Also delivers the elements of stream sections (spec 8, `--all`).
    pub fn set_all(&mut self, all: bool) {
        self.all = all;
    }

    /// Reads on after damage (spec 5.2): delivers what is whole and reports what is not. Of a raw stream that is looked for now, before
    /// its first record is read (spec 5.4).
    pub fn set_salvage(&mut self, salvage: bool) {
        self.salvage = salvage;
        self.container.set_salvage(salvage);
        if salvage {
            self.find_whole_parts();
        }
    }

    /// Whether it reads on after damage.
    #[must_use]
    pub fn salvages(&self) -> bool {
        self.salvage
    }

    /// The byte order of the records.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// The format the trace is read by.
    #[must_use]
    pub fn format(&self) -> &FormatRef {
        &self.format
    }

    /// The container: header, DTD, user metadata, losses.
    #[must_use]
    pub fn container(&self) -> &metatf_container::Reader<'a> {
        &self.container
    }

    /// Data records announced so far.
    #[must_use]
    pub fn records_read(&self) -> u64 {
        let here = self.current.as_ref().filter(|current| !current.is_element).map_or(0, |current| current.found);
        self.records + here + self.given_ahead()
    }

    /// The offset by which `sectionOffset` leaves refer to the element that was announced last: its offset in the content of its section,
    /// which in a version 0 file is not that of [`At`].
    #[must_use]
    pub fn element_offset(&self, at: At) -> Option<u64> {
        let current = self.current.as_ref().filter(|current| current.is_element)?;
        at.offset.checked_sub(current.base)?.checked_add(current.logical)
    }

    /// What comes next; `None` at the end, and after an error.
    ///
    /// # Errors
    /// The first thing that is wrong with the trace; nothing comes after it.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        self.commit();
        if self.next == Next::Finished {
            return self.held.take().map_or(Ok(None), Err);
        }
        let event = self.advance();
        if !matches!(event, Ok(Some(_))) {
            self.next = Next::Finished;
        }
        if matches!(event, Ok(None)) {
            self.container.check_records(self.records_read());
        }
        event
    }

    /// Nothing more comes: for an error that is found after a record was decoded.
    #[cfg(feature = "dynamic")]
    pub(crate) fn stop(&mut self) {
        self.commit();
        self.next = Next::Finished;
    }

    /// Decodes the record that was announced last. The row borrows from the reader, so that byte arrays need no copy.
    ///
    /// # Errors
    /// What `decode` returns, or the rules a record has to keep as a whole.
    pub fn decode<'t, T>(&'t mut self, decode: impl FnOnce(&mut ContentRow<'t, 't>) -> Result<T>) -> Result<T> {
        let Some(pending) = self.pending.take() else {
            return Err(Error::at(0, ErrorKind::Usage("no record is waiting to be decoded")));
        };
        let Some((mut row, end)) = self.row(pending) else {
            return Err(Error::at(0, ErrorKind::Usage("no such record")));
        };
        let decoded = decode(&mut row).and_then(|value| Ok(row.finish().map(|()| value)?));
        *end.position = row.position;
        decoded.map_err(|error| {
            *end.next = Next::Finished;
            row.decoding.stopped.take().unwrap_or(error)
        })
    }

    /// The row of a record, and what has to be reported at its end.
    #[inline(always)]
    fn row(&mut self, pending: Pending) -> Option<(ContentRow<'_, '_>, End<'_>)> {
        let current = self.current.as_mut()?;
        let State { encoding, history } = self.states.get_mut(pending.section)?;
        let decoding = Decoding {
            format: &self.format,
            data: self.container.bytes(&current.content),
            origin: current.origin,
            order: self.order,
            encoding,
            history,
            streams: &mut self.streams,
            source: &self.container,
            stopped: &mut self.stopped,
        };
        let row = decoding.row((pending.record, pending.first), (pending.start, current.position))?;
        Some((row, End { position: &mut current.position, next: &mut self.next }))
    }

    fn advance(&mut self) -> Result<Option<Event>> {
        if let Some(event) = self.found.take() {
            return Ok(Some(event));
        }
        self.skip()?;
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(Some(event));
            }
            if self.current.is_some() {
                if let Some(event) = self.next_in_part()? {
                    return Ok(Some(event));
                }
                continue;
            }
            if let Some((section, piece, shared)) = self.elements.pop_front() {
                self.open_elements(section, piece, shared);
                continue;
            }
            match self.next_part() {
                Ok(Some(part)) => self.open(part)?,
                // Elements that are whole come before what is wrong behind them.
                Err(error) if self.flush_elements() => self.deferred = Some(error),
                Ok(None) if self.flush_elements() => {}
                Ok(None) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// The next record in the current part; `None` when the part is over.
    fn next_in_part(&mut self) -> Result<Option<Event>> {
        let Some(current) = self.current.as_mut() else { return Ok(None) };
        let data = self.container.bytes(&current.content);
        let start = current.position;
        if start >= data.len() {
            return self.close_part().map(|()| None);
        }
        let section = current.section;
        let at = |record| At { section, record, offset: current.base + start as u64 };
        if current.is_element {
            let record = self.format.sections.get(section).and_then(|s| s.records.first()).copied().unwrap_or(0);
            current.found += 1;
            self.pending = Some(Pending { start, section, record, first: 0 });
            return Ok(Some(Event::Element(at(record), current.shared)));
        }
        let width = usize::from(self.format.tag_width);
        let Some(bytes) = data.get(start..start + width) else {
            return Err(self.fail(start, ErrorKind::Truncated("a tag")));
        };
        #[allow(clippy::cast_possible_truncation, reason = "at most 4 bytes")]
        let tag = self.order.read(bytes) as u32;
        let Some(listed) = self.states.get(section).and_then(|s| s.encoding.listed(tag)) else {
            return Err(self.fail(start, ErrorKind::UnknownTag(tag)));
        };
        let record = listed.record;
        let at = at(record);
        current.position = start + width;
        match record {
            METADATA => self.metadata(at, start).map(Some),
            SECTION => self.section_record(at, start).map(Some),
            _ => {
                self.pending = Some(Pending { start, section, record, first: listed.first as usize });
                if record == COMMENT {
                    return Ok(Some(Event::Comment(at)));
                }
                if let Some(current) = self.current.as_mut() {
                    current.found += 1;
                }
                Ok(Some(Event::Record(at)))
            }
        }
    }

    /// An error about the byte at `position` of the current part.
    #[cold]
    fn fail(&self, position: usize, kind: ErrorKind) -> Error {
        let Some(current) = &self.current else { return Error::at(0, kind) };
        let mut place = place(current.origin, position);
        place.section = self.format.sections.get(current.section).map(|s| s.number);
        Error { kind, place }
    }

    /// An unsigned integer of the current part at its position.
    fn take(&mut self, width: usize) -> Result<u64> {
        let Some(current) = self.current.as_mut() else { return Ok(0) };
        let data = self.container.bytes(&current.content);
        let at = current.position;
        match data.get(at..at + width) {
            Some(bytes) => {
                current.position = at + width;
                Ok(self.order.read(bytes))
            }
            None => Err(self.fail(at, ErrorKind::Truncated("a metadata or section record"))),
        }
    }

    fn position(&self) -> usize {
        self.current.as_ref().map_or(0, |c| c.position)
    }

    /// The part is read to its end.
    fn close_part(&mut self) -> Result<()> {
        self.records = self.records_read();
        let Some(current) = self.current.take() else { return Ok(()) };
        match current.declared {
            Some(declared) if u64::from(declared) != current.found => {
                let kind = ErrorKind::RecordCount { declared: declared.into(), found: current.found };
                let header = match current.origin {
                    Origin::Stored(offset) => offset.saturating_sub(metatf_container::CHUNK_HEADER_LEN),
                    Origin::Packed(offset) => offset,
                };
                let mut error = Error::at(header + 20, kind);
                error.place.section = self.format.sections.get(current.section).map(|s| s.number);
                Err(error)
            }
            _ => Ok(()),
        }
    }
}

impl Current {
    fn new(section: usize, part: &Part, is_element: bool) -> Self {
        Self {
            section,
            content: part.content.clone(),
            origin: part.origin,
            base: part.base,
            logical: part.base,
            position: 0,
            follow: part.follow,
            declared: part.records,
            found: 0,
            is_element,
            shared: part.shared,
        }
    }
}
