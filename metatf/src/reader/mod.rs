//! The record reader. It obtains the parts of a trace from the container, applies metadata to its state, and provides
//! rows for the caller to decode.
//!
//! Generated code decodes a [`ContentRow`] into its structs, and the dynamic reader decodes it into an owned record.
//! After an error, a reader returns nothing more.
//!
//! # Examples
//!
//! The DTD in this example declares the record `reading: (tag, time, vfield)`:
//!
//! ```
//! #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
//! mod readings {}
//! use metatf::container::Reader;
//! use metatf::reader::{FormatRef, RecordReader};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut writer = readings::Writer::new(Vec::new())?;
//! writer.reading(&readings::Reading { time: 42, vfield: b"x" })?;
//! let file = writer.finish()?;
//!
//! let format = FormatRef::Static(&readings::FORMAT);
//! let mut reader = RecordReader::new(format, Reader::from_slice(&file)?)?;
//! let record = reader.next_record()?.ok_or("no record")?;
//! // Section 0 is global, and records 0 to 2 are predefined.
//! assert_eq!((record.section(), record.record()), (1, 3));
//! // The leaves are the tag, the time, the length and the bytes.
//! assert_eq!((record.numbers()[1], record.bytes(3)), (42, &b"x"[..]));
//! # Ok(())
//! # }
//! ```

mod annotate;
mod batch;
mod columns;
mod element_table;
mod header;
mod metadata;
mod parts;
mod projection;
mod raw;
mod recognize;
mod rows;
mod run;
mod seek;
mod skip;
#[cfg(feature = "parallel")]
mod split;
mod times;
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
use projection::KeptPart;
use std::collections::VecDeque;
use views::Views;

/// The position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Index in [`Format::sections`](crate::format::Format::sections).
    pub section: usize,
    /// Index in [`Format::records`](crate::format::Format::records).
    pub record: u16,
    /// The `@offset` of spec 8: the offset in the file (version 0) or in the section's logical content (version 1).
    pub offset: u64,
}

/// The next event in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A data record. It is skipped unless the caller decodes it.
    Record(At),
    /// A comment record. It is skipped unless the caller decodes it.
    Comment(At),
    /// An element of a stream section. Returned only after [`RecordReader::set_all`].
    Element(At, /** Whether it belongs to a shared table. */ bool),
    /// A metadata record, already applied.
    Metadata(At, Metadata),
    /// A `section` record (version 0), which ends the section of `At` and starts the section with this number.
    Section(At, u8),
    /// The start of a group (version 1, from the second group on).
    Group(u32),
    /// A reset of the state of the section with this index inside a group.
    Reset(usize),
}

/// The part being read.
struct Current {
    section: usize,
    content: Content,
    origin: Origin,
    base: u64,
    /// For elements of any version, the number of bytes that precede the content in its section.
    logical: u64,
    position: usize,
    follow: bool,
    declared: Option<u32>,
    found: u64,
    is_element: bool,
    shared: bool,
}

/// Knowledge of the reader about the next item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Unknown,
    /// A little-endian record of a section other than a stream section, or the end of its part. This remains valid
    /// until something other than a record is requested, so it is the only check needed per record.
    Plain,
    /// Some decoded records have not been returned yet.
    Ahead,
    /// The end has been reached, or an error has stopped the reader.
    Finished,
}

/// A record that has been announced but not yet decoded.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    /// The start of the record within the part.
    start: usize,
    /// The index of the record's section in the format.
    pub(crate) section: usize,
    /// The index of the record in the format.
    pub(crate) record: u16,
    /// The index of the record's first plan.
    first: usize,
}

/// A reader for the records of a trace, in order. See the module documentation.
pub struct RecordReader<'a> {
    format: FormatRef,
    container: metatf_container::Reader<'a>,
    order: Order,
    states: Vec<State>,
    streams: Streams,
    parts: VecDeque<Part>,
    current: Option<Current>,
    /// The current part, if its columns are kept. There is no other current part then.
    kept: Option<Box<KeptPart>>,
    pending: Option<Pending>,
    queue: VecDeque<Event>,
    /// The elements of the finished group that are still to be delivered, with the section, the piece, and whether they
    /// belong to a shared table.
    elements: VecDeque<(usize, Piece, bool)>,
    /// The elements of shared tables, to be delivered before the next group starts.
    shared: VecDeque<(usize, Piece, bool)>,
    /// For each section, whether this group has contained a part of it.
    seen: Vec<bool>,
    group: u32,
    last_section: usize,
    /// Whether the elements of stream sections are delivered, too.
    all: bool,
    salvage: bool,
    next: Next,
    /// Number of data records in the parts before the current one.
    records: u64,
    /// An error to be returned after the data that precedes it.
    deferred: Option<Error>,
    /// Whether a group has begun.
    group_open: bool,
    /// Whether the elements of this group have been queued.
    flushed: bool,
    /// The parts of a version 0 file, kept so that reading can start over.
    table: Vec<Part>,
    /// An event that seeking found but that has not been delivered yet.
    found: Option<Event>,
    /// The error that stopped the last row.
    stopped: Option<Error>,
    /// An error to be reported after the records before the error have been returned. After the error, nothing more is
    /// returned.
    held: Option<Error>,
    /// Whether groups are skipped.
    skips: bool,
    /// The state for filling columns.
    filler: Option<Box<ColumnFiller>>,
    /// The element tables by section, if requested.
    tables: Vec<Option<SharedTable<'a>>>,
    /// The values of the leaves of a raw stream's header, if records take values from it.
    header: Vec<u64>,
    /// The state for record views.
    views: Views,
}

/// Returns the error that stopped a row.
#[cold]
#[inline(never)]
pub(crate) fn why<T>(stopped: Option<&mut Option<Error>>) -> Result<T> {
    Err(stopped.and_then(Option::take).unwrap_or(Stopped(()).into()))
}

/// The reader's state to update after a record was decoded.
struct End<'t> {
    position: &'t mut usize,
    next: &'t mut Next,
}

impl End<'_> {
    /// Ends a record that was decoded.
    fn complete(self, mut row: ContentRow<'_, '_>) -> Result<()> {
        match row.finish() {
            Ok(()) => {
                *self.position = row.position;
                Ok(())
            }
            Err(stopped) => Err(self.fail(row, stopped.into())),
        }
    }

    /// Ends a record that could not be decoded. The row's own error takes precedence over its placeholder.
    #[cold]
    fn fail(self, row: ContentRow<'_, '_>, error: Error) -> Error {
        (*self.position, *self.next) = (row.position, Next::Finished);
        row.decoding.stopped.take().unwrap_or(error)
    }
}

impl Bytes for metatf_container::Reader<'_> {
    fn bytes<'c>(&'c self, content: &'c Content) -> &'c [u8] {
        metatf_container::Reader::bytes(self, content)
    }
}

impl<'a> RecordReader<'a> {
    /// Creates a reader of the container's records in this format.
    ///
    /// # Errors
    /// Returns an error if the section table is invalid (version 0).
    pub fn new(format: FormatRef, container: metatf_container::Reader<'a>) -> Result<Self> {
        Self::with(format, container, Vec::new())
    }

    /// Creates a reader like [`new`](Self::new), reusing the memory of another reader's states. The states must belong
    /// to the same format or be empty.
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
            kept: None,
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
            skips: false,
            filler: None,
            tables: Vec::new(),
            header: Vec::new(),
            views: Views::default(),
            format,
            container,
        };
        if reader.version_0() {
            reader.group_open = true;
            reader.read_table();
            reader.read_header();
        }
        Ok(reader)
    }

    /// Sets whether the elements of stream sections are delivered, too (spec 8, `--all`).
    pub fn set_all(&mut self, all: bool) {
        self.all = all;
    }

    /// Sets whether reading continues after corruption (spec 5.2), delivering intact data and reporting the rest. A raw
    /// stream is searched for intact records immediately, before its first record is read (spec 5.4).
    pub fn set_salvage(&mut self, salvage: bool) {
        self.salvage = salvage;
        self.container.set_salvage(salvage);
        if salvage {
            self.find_whole_parts();
        }
    }

    /// Returns whether reading continues after corruption.
    #[must_use]
    pub fn salvages(&self) -> bool {
        self.salvage
    }

    /// Returns the byte order of the records.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// Returns the format used to read the trace.
    #[must_use]
    pub fn format(&self) -> &FormatRef {
        &self.format
    }

    /// Returns the container, which provides the header, the DTD, the user metadata and the losses.
    #[must_use]
    pub fn container(&self) -> &metatf_container::Reader<'a> {
        &self.container
    }

    /// Returns the number of data records announced so far.
    #[must_use]
    pub fn records_read(&self) -> u64 {
        let here = self.current.as_ref().filter(|current| !current.is_element).map_or(0, |current| current.found);
        self.records + here + self.projected() + self.given_ahead()
    }

    /// Returns the offset by which `sectionOffset` leaves refer to the most recently announced element. The offset is
    /// relative to the content of the element's section, so it differs from the offset in [`At`] in a version 0 file.
    #[must_use]
    pub fn element_offset(&self, at: At) -> Option<u64> {
        let current = self.current.as_ref().filter(|current| current.is_element)?;
        at.offset.checked_sub(current.base)?.checked_add(current.logical)
    }

    /// Returns the next event, or `None` at the end and after an error.
    ///
    /// # Errors
    /// Returns the first error in the trace. After the error, the reader returns nothing more.
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

    /// Stops reading because of an error found after a record was decoded.
    #[cfg(feature = "dynamic")]
    pub(crate) fn stop(&mut self) {
        self.commit();
        self.next = Next::Finished;
    }

    /// Decodes the most recently announced record. The row borrows from the reader, so byte arrays are not copied.
    ///
    /// # Errors
    /// Returns any error from `decode`, or an error if the complete record violates a rule.
    pub fn decode<'t, T>(&'t mut self, decode: impl FnOnce(&mut ContentRow<'t, 't>) -> Result<T>) -> Result<T> {
        let (mut row, end) = self.pending_row()?;
        match decode(&mut row) {
            Ok(value) => end.complete(row).map(|()| value),
            Err(error) => Err(end.fail(row, error)),
        }
    }

    /// Returns the row of the most recently announced record and the state to update at its end.
    fn pending_row(&mut self) -> Result<(ContentRow<'_, '_>, End<'_>)> {
        let pending = self.pending.take();
        let pending = pending.ok_or(Error::at(0, ErrorKind::Usage("no record is waiting to be decoded")))?;
        self.row(pending).ok_or(Error::at(0, ErrorKind::Usage("the section has no such record")))
    }

    /// Returns the row of a record and the state to update at its end.
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
            if self.kept.is_some() {
                self.assemble_kept()?;
                continue;
            }
            if let Some((section, piece, shared)) = self.elements.pop_front() {
                self.open_elements(section, piece, shared);
                continue;
            }
            if !self.open_next()? {
                return Ok(None);
            }
        }
    }

    /// Opens the next part, or queues the elements of the last group. Returns false at the end.
    fn open_next(&mut self) -> Result<bool> {
        match self.next_part() {
            Ok(Some(part)) => self.open(part)?,
            // Complete elements are delivered before an error that follows them.
            Err(error) if self.flush_elements() => self.deferred = Some(error),
            Ok(None) if self.flush_elements() => {}
            Ok(None) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Returns the next record in the current part, or `None` at its end.
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

    /// Returns an error at `position` in the current part.
    #[cold]
    fn fail(&self, position: usize, kind: ErrorKind) -> Error {
        let Some(current) = &self.current else { return Error::at(0, kind) };
        let mut place = place(current.origin, position);
        place.section = self.format.sections.get(current.section).map(|s| s.number);
        Error { kind, place }
    }

    /// Reads an unsigned integer at the current position in the current part.
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

    /// Finishes a part that has been read completely.
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
