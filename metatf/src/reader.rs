//! Walks a trace record by record: parts from the container, state from metadata, rows for the caller to decode.
//!
//! Both faces read through this: generated code decodes a [`ContentRow`] into its structs, the universal reader into a
//! tape. After an error nothing more comes.

use crate::container::{self, Content, Order, Origin, Part};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{COMMENT, Format, Interpretation, METADATA, SECTION};
use crate::row::{Bytes, ContentRow, place};
use crate::state::{Change, State};
use crate::streams::{Piece, Streams, enter};
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

/// A format that lives as long as the program (generated code), or as long as its users (parsed at run time).
#[derive(Clone, Debug)]
pub enum FormatRef {
    /// Generated.
    Static(&'static Format),
    /// Parsed.
    Shared(Arc<Format>),
}

impl Deref for FormatRef {
    type Target = Format;
    fn deref(&self) -> &Format {
        match self {
            Self::Static(format) => format,
            Self::Shared(format) => format,
        }
    }
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Index in [`Format::sections`].
    pub section: usize,
    /// Index in [`Format::records`].
    pub record: u16,
    /// Spec 8's `@offset`: in the file (version 0), or in the section's logical content (version 1).
    pub offset: u64,
}

/// A metadata record (spec 4.1), as it stands in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Tag of the record it changes.
    pub record: u32,
    /// Index of the leaf it changes.
    pub field: u8,
    /// Property byte.
    pub property: u8,
    /// Values, 64 bits each; a stride is sign-extended.
    pub values: [u64; 2],
    /// How many of `values` there are: 0 to 2.
    pub count: u8,
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
    position: usize,
    follow: bool,
    declared: Option<u32>,
    found: u64,
    is_element: bool,
    shared: bool,
}

/// A record that was announced and not yet decoded.
#[derive(Clone, Copy)]
struct Pending {
    start: usize,
    position: usize,
    record: u16,
}

/// Reads the records of a trace in order. See the module's head.
pub struct RecordReader<'a> {
    format: FormatRef,
    container: container::Reader<'a>,
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
    /// Salvage: sections whose state is not known since the last damage.
    tainted: Vec<bool>,
    /// Salvage: a part of this group had bad content.
    group_bad: bool,
    finished: bool,
    records: u64,
    /// An error of a version 0 file's table, due after the parts before it.
    deferred: Option<Error>,
    /// A group has begun.
    group_open: bool,
    /// The elements of this group were queued.
    flushed: bool,
}

impl Bytes for container::Reader<'_> {
    fn bytes<'c>(&'c self, content: &'c Content) -> &'c [u8] {
        container::Reader::bytes(self, content)
    }
}

impl<'a> RecordReader<'a> {
    /// Reads the container's records by this format.
    ///
    /// # Errors
    /// A section table that does not hold (version 0).
    pub fn new(format: FormatRef, mut container: container::Reader<'a>) -> Result<Self> {
        container.set_tag_width(format.tag_width);
        let states = (0..format.sections.len()).map(|i| State::new(&format, i)).collect();
        let sections = format.sections.len();
        let with_table = container.header().version == 0 && !container.header().sections.is_empty();
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
            tainted: vec![false; sections],
            group_bad: false,
            finished: false,
            records: 0,
            deferred: None,
            group_open: false,
            flushed: false,
            format,
            container,
        };
        if with_table {
            reader.read_table();
        }
        Ok(reader)
    }

    /// Also delivers the elements of stream sections (spec 8, `--all`).
    pub fn set_all(&mut self, all: bool) {
        self.all = all;
    }

    /// Reads on after damage (spec 5.2): delivers what is whole and reports what is not.
    pub fn set_salvage(&mut self, salvage: bool) {
        self.salvage = salvage;
        self.container.set_salvage(salvage);
    }

    /// Whether it reads on after damage.
    #[must_use]
    pub fn salvages(&self) -> bool {
        self.salvage
    }

    /// The format the trace is read by.
    #[must_use]
    pub fn format(&self) -> &FormatRef {
        &self.format
    }

    /// The container: header, DTD, user metadata, losses.
    #[must_use]
    pub fn container(&self) -> &container::Reader<'a> {
        &self.container
    }

    /// Data records announced so far.
    #[must_use]
    pub fn records_read(&self) -> u64 {
        self.records
    }

    /// What comes next; `None` at the end, and after an error.
    ///
    /// # Errors
    /// The first thing that is wrong with the trace; nothing comes after it.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        if self.finished {
            return Ok(None);
        }
        let event = self.advance();
        if !matches!(event, Ok(Some(_))) {
            self.finished = true;
        }
        event
    }

    /// Decodes the record that was announced last. The row borrows from the reader, so that byte arrays need no copy.
    ///
    /// # Errors
    /// What `decode` returns, or the rules a record has to keep as a whole.
    pub fn decode<'t, T>(&'t mut self, decode: impl FnOnce(&mut ContentRow<'t>) -> Result<T>) -> Result<T> {
        let (Some(pending), Some(current)) = (self.pending.take(), self.current.as_mut()) else {
            return Err(Error::at(0, ErrorKind::Usage("no record is waiting to be decoded")));
        };
        let (format, container): (&'t Format, &'t container::Reader<'a>) = (&self.format, &self.container);
        let Some((record, state)) =
            format.records.get(usize::from(pending.record)).zip(self.states.get_mut(current.section))
        else {
            return Err(Error::at(0, ErrorKind::Usage("no such record")));
        };
        let mut row = ContentRow {
            format,
            record,
            data: container.bytes(&current.content),
            position: &mut current.position,
            start: pending.start,
            origin: current.origin,
            order: self.order,
            first: state.plans_of(pending.position),
            state,
            streams: &mut self.streams,
            source: container,
            items: 0,
        };
        let decoded = decode(&mut row).and_then(|value| row.finish().map(|()| value));
        if decoded.is_err() {
            self.finished = true;
        }
        decoded
    }

    /// The interpretation now in force of a leaf of a record.
    #[must_use]
    pub fn interpretation(&self, at: At, leaf: u8) -> Option<Interpretation> {
        let position = self.format.sections.get(at.section)?.records.iter().position(|&r| r == at.record)?;
        let state = self.states.get(at.section)?;
        Some(state.interpretation(state.plans_of(position) + usize::from(leaf)))
    }

    /// Decodes the element at an offset into the content of a stream section (spec 4, sectionOffset): of the group in
    /// progress, or of a shared table as far as it was read.
    ///
    /// # Errors
    /// [`ErrorKind::NoOffset`] where no element starts; what `decode` returns.
    pub fn element_at<T>(
        &mut self,
        section: usize,
        offset: u64,
        decode: impl FnOnce(&mut ContentRow<'_>) -> Result<T>,
    ) -> Result<T> {
        let number = self.format.sections.get(section).map_or(0, |s| s.number);
        let none = Error::at(0, ErrorKind::NoOffset { section: number, offset });
        let pieces = self.streams.streams.get(section).map_or(&[][..], |s| &s.pieces);
        let record = self.format.sections.get(section).filter(|s| s.stream).and_then(|s| s.records.first());
        let record = record.and_then(|&r| self.format.records.get(usize::from(r))).ok_or(none)?;
        // Pieces lie in ascending order; an element may depend on those before it in its piece, and in earlier ones
        // back to a reset.
        let at = pieces.partition_point(|p| p.logical <= offset).checked_sub(1).ok_or(none)?;
        let piece = pieces.get(at).cloned().ok_or(none)?;
        let wanted = usize::try_from(offset - piece.logical).map_err(|_| none)?;
        let from = if record.is_stateless() { at } else { pieces.iter().take(at + 1).rposition(|p| p.reset).unwrap_or(0) };
        let pieces: Vec<Piece> = pieces.get(from..=at).unwrap_or_default().to_vec();
        let mut state = State::new(&self.format, section);
        let mut decode = Some(decode);
        for (i, piece) in pieces.iter().enumerate() {
            enter(&mut state, &self.format, piece);
            let last = i + 1 == pieces.len();
            let data = self.container.bytes(&piece.content);
            let mut position = if last && record.is_stateless() { wanted } else { 0 };
            while position < data.len() && !(last && position > wanted) {
                let found = last && position == wanted;
                let mut row = ContentRow {
                    format: &self.format,
                    record,
                    data,
                    start: position,
                    position: &mut position,
                    origin: piece.origin,
                    order: self.order,
                    first: 0,
                    state: &mut state,
                    streams: &mut self.streams,
                    source: &self.container,
                    items: 0,
                };
                if let Some(decode) = decode.take_if(|_| found) {
                    return decode(&mut row);
                }
                row.walk(&mut ())?;
            }
        }
        Err(none)
    }

    fn advance(&mut self) -> Result<Option<Event>> {
        if self.pending.is_some() {
            self.decode(|row| row.walk(&mut ()))?;
        }
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
            match self.next_part()? {
                Some(part) => self.open(part)?,
                None if self.flush_elements() => {}
                None => return Ok(None),
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
            self.pending = Some(Pending { start, position: 0, record });
            return Ok(Some(Event::Element(at(record), current.shared)));
        }
        let width = usize::from(self.format.tag_width);
        let Some(bytes) = data.get(start..start + width) else {
            return Err(self.fail(start, ErrorKind::Truncated("a tag")));
        };
        #[allow(clippy::cast_possible_truncation, reason = "at most 4 bytes")]
        let tag = self.order.read(bytes) as u32;
        let Some(position) = self.states.get(section).and_then(|s| s.position(tag)) else {
            return Err(self.fail(start, ErrorKind::UnknownTag(tag)));
        };
        let records = self.format.sections.get(section).map_or(&[][..], |s| &s.records);
        let record = records.get(position).copied().unwrap_or(0);
        let at = at(record);
        current.position = start + width;
        match record {
            METADATA => self.metadata(at, start).map(Some),
            SECTION => self.section_record(at, start).map(Some),
            _ => {
                self.pending = Some(Pending { start, position, record });
                if record == COMMENT {
                    return Ok(Some(Event::Comment(at)));
                }
                if let Some(current) = self.current.as_mut() {
                    current.found += 1;
                }
                self.records += 1;
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

    /// Reads and applies a metadata record (spec 4.1); errors are placed at the field at fault.
    #[allow(clippy::cast_possible_truncation, reason = "each value is as wide as it was read")]
    fn metadata(&mut self, at: At, start: usize) -> Result<Event> {
        let record_at = self.position();
        let record = self.take(usize::from(self.format.tag_width))? as u32;
        let field_at = self.position();
        let field = self.take(1)? as u8;
        let property_at = self.position();
        let property = self.take(1)? as u8;
        let mut metadata = Metadata { record, field, property, values: [0; 2], count: 0 };
        let width = match property >> 4 {
            0 if self.container.header().class.is_64() => 8,
            0 => 4,
            n @ 1..=8 => usize::from(n),
            n => {
                let found = u64::from(n);
                let what = ErrorKind::Invalid { what: "the width of metadata values", found, expected: "0 to 8" };
                return Err(self.tagged(property_at, start, what));
            }
        };
        let values_at = self.position();
        metadata.count = [1, 0, 1, 1, 1, 1, 2, 2][usize::from(property & 7)];
        for i in 0..usize::from(metadata.count) {
            let mut value = self.take(width)?;
            // A stride is sign-extended, all else zero-extended.
            if i == 1 {
                let unused = 64 - 8 * width as u32;
                value = ((value << unused) as i64 >> unused) as u64;
            }
            if let Some(slot) = metadata.values.get_mut(i) {
                *slot = value;
            }
        }
        let change = match metadata.change() {
            Ok(change) => change,
            Err(kind) => return Err(self.tagged(values_at, start, kind)),
        };
        let section = at.section;
        let Some(position) = self.states.get(section).and_then(|s| s.position(record)) else {
            return Err(self.tagged(record_at, start, ErrorKind::Metadata("it names a tag that is not declared here")));
        };
        let Some(state) = self.states.get_mut(section) else { return Err(self.fail(start, ErrorKind::Usage(""))) };
        let applied = state.apply(&self.format, position, field, property & 8 != 0, change);
        applied.map_err(|kind| {
            let at = match kind {
                ErrorKind::Metadata(why) if why.contains("cannot change") => record_at,
                ErrorKind::Metadata(why) if why.contains("under 1") => values_at + width,
                ErrorKind::Metadata(why) if why.contains("to a section") => values_at,
                ErrorKind::Metadata(why) if why.contains("stores bytes") => property_at,
                _ => field_at,
            };
            self.tagged(at, start, kind)
        })?;
        Ok(Event::Metadata(at, metadata))
    }

    /// An error in a metadata or section record that began at `start`.
    fn tagged(&self, position: usize, start: usize, kind: ErrorKind) -> Error {
        let mut error = self.fail(position, kind);
        let start = place(self.current.as_ref().map_or(Origin::Stored(0), |c| c.origin), start);
        error.place.record_start = Some(start.content.unwrap_or(start.offset));
        error.place.tag = Some(if matches!(kind, ErrorKind::UnknownSection(_)) { 2 } else { 3 });
        error
    }

    /// A `section` record inside content: only in a version 0 file without a table (spec 5.1).
    fn section_record(&mut self, at: At, start: usize) -> Result<Event> {
        if !self.current.as_ref().is_some_and(|c| c.follow) {
            let kind = ErrorKind::Invalid { what: "the tag", found: 2, expected: "no section record inside a section" };
            return Err(self.fail(start, kind));
        }
        let number_at = self.position();
        let number = self.take(1)?;
        let index = u8::try_from(number).ok().filter(|&n| n != 0).and_then(|n| self.format.section_index(n));
        let Some(index) = index else {
            return Err(self.tagged(number_at, start, ErrorKind::UnknownSection(number)));
        };
        if self.format.sections.get(index).is_some_and(|s| s.stream) {
            let expected = "no stream section in a file without a section table";
            return Err(self.tagged(number_at, start, ErrorKind::Invalid { what: "the section", found: number, expected }));
        }
        if let Some(current) = self.current.as_mut() {
            current.section = index;
        }
        #[allow(clippy::cast_possible_truncation, reason = "one byte was read")]
        Ok(Event::Section(at, number as u8))
    }

    /// The part is read to its end.
    fn close_part(&mut self) -> Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        match current.declared {
            Some(declared) if u64::from(declared) != current.found => {
                let kind = ErrorKind::RecordCount { declared: declared.into(), found: current.found };
                let header = match current.origin {
                    Origin::Stored(offset) => offset.saturating_sub(container::CHUNK_HEADER_LEN),
                    Origin::Packed(offset) => offset,
                };
                let mut error = Error::at(header + 20, kind);
                error.place.section = self.format.sections.get(current.section).map(|s| s.number);
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// The next part of the container, or of a version 0 file's table.
    fn next_part(&mut self) -> Result<Option<Part>> {
        match (self.parts.pop_front(), self.deferred.take()) {
            (Some(part), deferred) => {
                self.deferred = deferred;
                Ok(Some(part))
            }
            (None, Some(error)) => Err(error),
            (None, None) => self.container.next_part(),
        }
    }

    /// A version 0 file's stream extents may lie behind what strides through them: its table is read first.
    fn read_table(&mut self) {
        loop {
            match self.container.next_part() {
                Ok(Some(part)) => {
                    if let Some(index) = self.format.section_index(part.section).filter(|&i| self.is_stream(i)) {
                        self.add_piece(index, &part);
                    }
                    self.parts.push_back(part);
                }
                Ok(None) => return,
                Err(error) => {
                    self.deferred = Some(error);
                    return;
                }
            }
        }
    }

    fn is_stream(&self, section: usize) -> bool {
        self.format.sections.get(section).is_some_and(|s| s.stream)
    }

    fn version_0(&self) -> bool {
        self.container.header().version == 0
    }

    /// Takes a part up: group, reset, and what kind of section it belongs to.
    fn open(&mut self, part: Part) -> Result<()> {
        if part.group_start && self.flush_elements() {
            self.parts.push_front(part);
            return Ok(());
        }
        let Some(section) = self.format.section_index(part.section) else {
            return Err(self.part_error(&part, 4, ErrorKind::UnknownSection(part.section.into())));
        };
        if part.group_start || (part.damage_before && !part.shared && part.group != self.group) {
            self.start_group(&part);
        }
        if self.version_0() && !part.follow && part.section != 0 {
            let offset = part.base.saturating_sub(u64::from(self.format.tag_width) + 1);
            let at = At { section: self.last_section, record: SECTION, offset };
            self.queue.push_back(Event::Section(at, part.section));
        }
        self.last_section = section;
        if self.salvage && !self.trusted(section, &part) {
            self.container.report_lost(&part);
            return Ok(());
        }
        if self.is_stream(section) { self.open_stream(section, part) } else { self.open_tagged(section, part) }
    }

    fn start_group(&mut self, part: &Part) {
        if self.group_open && part.group > 0 {
            self.queue.push_back(Event::Group(part.group));
        }
        self.group_open = true;
        self.group = part.group;
        self.group_bad = false;
        self.streams.start_group();
        self.seen.fill(false);
    }

    /// Spec 5.2, salvage: a chunk counts only if its section's state was reset since the damage within the same group,
    /// and if it strides, only if no chunk of the group before it is missing.
    fn trusted(&mut self, section: usize, part: &Part) -> bool {
        if part.damage_before {
            self.tainted.fill(true);
        }
        if part.shared {
            return true;
        }
        if part.reset
            && let Some(tainted) = self.tainted.get_mut(section)
        {
            *tainted = false;
        }
        let strides = self.states.get(section).is_some_and(|s| s.strides().next().is_some());
        let tainted = self.tainted.get(section).copied().unwrap_or(false);
        !tainted && !(strides && (part.group_damaged || self.group_bad))
    }

    fn open_stream(&mut self, section: usize, part: Part) -> Result<()> {
        if part.follow {
            return Err(self.part_error(&part, 4, ErrorKind::UnknownSection(part.section.into())));
        }
        if !self.version_0() {
            self.check_stream(section, &part)?;
            self.add_piece(section, &part);
            if part.shared && self.all {
                let piece = self.streams.streams.get(section).and_then(|s| s.pieces.last().cloned());
                self.shared.extend(piece.map(|piece| (section, piece, true)));
            }
        }
        self.mark_seen(section);
        Ok(())
    }

    /// What a chunk of a stream section has to keep (spec 5.2): before those that stride through it, with its leaf's
    /// width, with whole elements.
    fn check_stream(&self, section: usize, part: &Part) -> Result<()> {
        let strided = |i: usize| self.seen.get(i) == Some(&true) || part.shared;
        let late = self.states.iter().enumerate().any(|(i, s)| strided(i) && s.strides().any(|n| n == part.section));
        if late {
            let expected = "its chunks before those of the sections that stride through it, and not a shared table";
            let what = ErrorKind::Invalid { what: "the section", found: part.section.into(), expected };
            return Err(self.part_error(part, 4, what));
        }
        let element = self.format.sections.get(section).and_then(|s| s.records.first());
        let element = element.and_then(|&r| self.format.records.get(usize::from(r)));
        if element.is_some_and(|r| r.single_number().is_some_and(|l| l.width() > 0)) {
            if !(1..=8).contains(&part.width) {
                let expected = "1 to 8, the width of the section's leaf in this chunk";
                let what = ErrorKind::Invalid { what: "width", found: part.width.into(), expected };
                return Err(self.part_error(part, 9, what));
            }
            let length = self.container.bytes(&part.content).len() as u64;
            let found = length / u64::from(part.width);
            if let Some(declared) = part.records.map(u64::from)
                && declared != found
            {
                return Err(self.part_error(part, 20, ErrorKind::RecordCount { declared, found }));
            }
        }
        Ok(())
    }

    fn add_piece(&mut self, section: usize, part: &Part) {
        let length = self.container.bytes(&part.content).len() as u64;
        let version_0 = self.version_0();
        let Some(stream) = self.streams.streams.get_mut(section) else { return };
        let logical = if version_0 { stream.length } else { part.base };
        stream.length = logical + length;
        stream.shared = part.shared;
        stream.pieces.push(Piece {
            content: part.content.clone(),
            origin: part.origin,
            base: part.base,
            logical,
            reset: part.reset,
            first: false,
            width: part.width,
            records: part.records,
        });
    }

    fn mark_seen(&mut self, section: usize) -> bool {
        self.seen.get_mut(section).is_some_and(|seen| std::mem::replace(seen, true))
    }

    fn open_tagged(&mut self, section: usize, part: Part) -> Result<()> {
        let before = self.mark_seen(section);
        if part.reset {
            if let Some(state) = self.states.get_mut(section) {
                state.reset(&self.format);
            }
            if before && !self.version_0() {
                self.queue.push_back(Event::Reset(section));
            }
        }
        if self.salvage && !self.whole(section, &part) {
            return Ok(());
        }
        self.current = Some(Current::new(section, &part, false));
        Ok(())
    }

    /// Salvage: reads a part once for its errors and puts the state back, so that nothing of a bad part is delivered.
    fn whole(&mut self, section: usize, part: &Part) -> bool {
        let saved = (self.states.clone(), self.streams.clone(), self.records);
        self.current = Some(Current::new(section, part, false));
        let queue = std::mem::take(&mut self.queue);
        let result = self.read_part();
        let strided = self.streams.taken != saved.1.taken;
        self.queue = queue;
        self.current = None;
        self.pending = None;
        self.finished = false;
        (self.states, self.streams, self.records) = saved;
        if let Err(error) = result {
            self.container.report_bad_content(part, error);
            self.tainted.fill(true);
            self.group_bad = true;
            return false;
        }
        if strided && (part.group_damaged || self.group_bad) {
            self.container.report_lost(part);
            return false;
        }
        true
    }

    fn read_part(&mut self) -> Result<()> {
        while self.current.is_some() {
            if self.next_in_part()?.is_some() && self.pending.is_some() {
                self.decode(|row| row.walk(&mut ()))?;
            }
        }
        Ok(())
    }

    /// Queues the elements of the group that ends; false where there are none.
    fn flush_elements(&mut self) -> bool {
        if !self.all || std::mem::replace(&mut self.flushed, true) {
            self.flushed = false;
            return false;
        }
        if !self.group_open {
            self.elements.append(&mut self.shared);
            return true;
        }
        let mut order: Vec<usize> = (0..self.format.sections.len()).filter(|&i| self.is_stream(i)).collect();
        order.sort_by_key(|&i| self.format.sections.get(i).map_or(0, |s| s.number));
        for section in order {
            let stream = self.streams.streams.get(section).filter(|s| !s.shared);
            for (i, piece) in stream.into_iter().flat_map(|s| &s.pieces).enumerate() {
                let mut piece = piece.clone();
                piece.first = i == 0;
                self.elements.push_back((section, piece, false));
            }
        }
        self.elements.append(&mut self.shared);
        true
    }

    fn open_elements(&mut self, section: usize, piece: Piece, shared: bool) {
        let version_0 = self.version_0();
        if let Some(state) = self.states.get_mut(section) {
            if piece.first || shared {
                state.reset(&self.format);
            } else if piece.reset && !shared && !version_0 {
                self.queue.push_back(Event::Reset(section));
            }
            enter(state, &self.format, &piece);
        }
        self.current = Some(Current {
            section,
            content: piece.content,
            origin: piece.origin,
            base: piece.base,
            position: 0,
            follow: false,
            declared: piece.records,
            found: 0,
            is_element: true,
            shared,
        });
    }

    /// An error about a field of a chunk's header (version 1), or about where the part begins.
    fn part_error(&self, part: &Part, field: u64, kind: ErrorKind) -> Error {
        let offset = match part.origin {
            Origin::Stored(offset) if self.version_0() => offset,
            Origin::Stored(offset) => offset.saturating_sub(container::CHUNK_HEADER_LEN) + field,
            Origin::Packed(offset) => offset + field,
        };
        let mut error = Error::at(offset, kind);
        error.place.section = Some(part.section);
        error
    }
}

impl Current {
    fn new(section: usize, part: &Part, is_element: bool) -> Self {
        Self {
            section,
            content: part.content.clone(),
            origin: part.origin,
            base: part.base,
            position: 0,
            follow: part.follow,
            declared: part.records,
            found: 0,
            is_element,
            shared: part.shared,
        }
    }
}

impl Metadata {
    /// What the record changes.
    ///
    /// # Errors
    /// A width over 8, or a section number over 255.
    pub fn change(&self) -> Result<Change, ErrorKind> {
        let [first, second] = self.values;
        let section = || u8::try_from(first).map_err(|_| ErrorKind::Metadata("it refers to a section over 255"));
        Ok(match self.property & 7 {
            0 => match u8::try_from(first) {
                Ok(width @ 0..=8) => Change::Width(width),
                _ => return Err(ErrorKind::Metadata("a width over 8")),
            },
            1 => Change::Interpretation(Interpretation::None),
            2 => Change::Interpretation(Interpretation::BaseOffset(first)),
            3 => Change::Interpretation(Interpretation::Delta(first)),
            4 => Change::Interpretation(Interpretation::Default(first)),
            5 => Change::Interpretation(Interpretation::SectionOffset(section()?)),
            6 => Change::Interpretation(Interpretation::Stride(first, second)),
            _ => Change::Interpretation(Interpretation::SectionStride(section()?, second)),
        })
    }

    /// Whether it changes all leaves of the field's name (bit 3).
    #[must_use]
    pub fn all(&self) -> bool {
        self.property & 8 != 0
    }
}
