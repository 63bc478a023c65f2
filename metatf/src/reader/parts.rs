//! Handles the parts of a trace, including groups, resets and stream sections, and determines the parts that salvage
//! can trust.

use super::{At, Current, Event, Next, RecordReader};
use crate::format::SECTION;
use crate::streams::{Piece, enter};
use metatf_container::{Content, Error, ErrorKind, Origin, Part, Result};

/// The point at which a part becomes invalid.
#[derive(Clone, Copy)]
struct Torn {
    /// The start of the invalid record or element in the part's content.
    position: usize,
    /// Number of records and elements before that position.
    found: u64,
    error: Error,
}

impl RecordReader<'_> {
    /// Returns the next part from the container or from a version 0 file's table.
    pub(super) fn next_part(&mut self) -> Result<Option<Part>> {
        match (self.parts.pop_front(), self.deferred.take()) {
            (Some(part), deferred) => {
                self.deferred = deferred;
                Ok(Some(part))
            }
            (None, Some(error)) => Err(error),
            (None, None) => {
                let part = self.container.next_part();
                self.records += self.container.take_skipped_records();
                part
            }
        }
    }

    /// Reads the list of all parts of a version 0 file in advance, because the extents of stream sections may be stored
    /// after the records that stride through them.
    pub(super) fn read_table(&mut self) {
        loop {
            match self.container.next_part() {
                Ok(Some(part)) => {
                    if let Some(index) = self.format.section_index(part.section).filter(|&i| self.is_stream(i)) {
                        self.add_piece(index, &part, false);
                    }
                    self.table.push(part.clone());
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

    pub(super) fn is_stream(&self, section: usize) -> bool {
        self.format.sections.get(section).is_some_and(|s| s.stream)
    }

    /// Returns whether this is a version 0 file with a section table, in which `section` records precede its parts.
    fn with_table(&self) -> bool {
        self.version_0() && !self.container.header().sections.is_empty()
    }

    pub(super) fn version_0(&self) -> bool {
        self.container.header().version == 0
    }

    /// Opens a part, handling its group, its reset and the kind of its section.
    pub(super) fn open(&mut self, part: Part) -> Result<()> {
        if part.group_start && self.flush_elements() {
            self.parts.push_front(part);
            return Ok(());
        }
        let Some(section) = self.format.section_index(part.section) else {
            return Err(self.part_error(&part, 4, ErrorKind::UnknownSection(part.section.into())));
        };
        let mut part = part;
        if self.is_stream(section) {
            self.container.assemble(&mut part)?;
        }
        if part.group_start || (part.damage_before && !part.shared && part.group != self.group) {
            self.start_group(&part);
        }
        if self.with_table() && part.section != 0 {
            let offset = part.base.saturating_sub(u64::from(self.format.tag_width) + 1);
            let at = At { section: self.last_section, record: SECTION, offset };
            self.queue.push_back(Event::Section(at, part.section));
        }
        self.last_section = section;
        let salvaged = self.salvage.then(|| part.clone());
        let opened =
            if self.is_stream(section) { self.open_stream(section, part) } else { self.open_tagged(section, part) };
        match (opened, salvaged) {
            (Err(error), Some(part)) => {
                self.container.report_bad_content(&part, error);
                Ok(())
            }
            (opened, _) => opened,
        }
    }

    fn start_group(&mut self, part: &Part) {
        if self.group_open && part.group > 0 {
            self.queue.push_back(Event::Group(part.group));
        }
        self.group_open = true;
        self.group = part.group;
        self.streams.start_group();
        self.clear_tables(|section| self.streams.streams.get(section).is_none_or(|stream| !stream.shared));
        self.seen.fill(false);
    }

    fn open_stream(&mut self, section: usize, part: Part) -> Result<()> {
        if part.follow {
            return Err(self.part_error(&part, 4, ErrorKind::UnknownSection(part.section.into())));
        }
        if !self.version_0() {
            self.check_stream(section, &part)?;
            let torn = if self.salvage { self.check_elements(section, &part).err() } else { None };
            let part = match torn {
                Some(torn) => self.tear(part, torn),
                None => part,
            };
            self.add_piece(section, &part, torn.is_some());
            if part.shared && self.all {
                let piece = self.streams.streams.get(section).and_then(|s| s.pieces.last().cloned());
                self.shared.extend(piece.map(|piece| (section, piece, true)));
            }
        }
        self.mark_seen(section);
        Ok(())
    }

    /// Checks the rules for a chunk of a stream section (spec 5.2). It must precede the chunks that stride through it,
    /// have the width of its leaf, and contain complete elements.
    fn check_stream(&self, section: usize, part: &Part) -> Result<()> {
        let strided = |i: usize| self.seen.get(i) == Some(&true) || part.shared;
        let late = self
            .states
            .iter()
            .enumerate()
            .any(|(i, s)| strided(i) && s.encoding.strides(&self.format).any(|n| n == part.section));
        if late {
            let expected = "a section that is not a shared table, whose chunks precede those that stride through it";
            let what = ErrorKind::Invalid { what: "the section", found: part.section.into(), expected };
            return Err(self.part_error(part, 4, what));
        }
        let element = self.format.sections.get(section).and_then(|s| s.records.first());
        let element = element.and_then(|&r| self.format.records.get(usize::from(r)));
        if element.is_none_or(|r| r.single_number().is_none_or(|l| l.width() == 0)) {
            self.check_no_width(part)?;
        } else {
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

    /// Checks that only a part of a stream section of single numbers, or a transposed part, has a width (spec 5.2).
    fn check_no_width(&self, part: &Part) -> Result<()> {
        if part.width == 0 || part.transposed {
            return Ok(());
        }
        let expected = "0, because it is neither a stream section of single numbers nor transposed";
        let what = ErrorKind::Invalid { what: "width", found: part.width.into(), expected };
        Err(self.part_error(part, 9, what))
    }

    pub(super) fn add_piece(&mut self, section: usize, part: &Part, cut: bool) {
        let length = self.container.bytes(&part.content).len() as u64;
        let version_0 = self.version_0();
        let Some(stream) = self.streams.streams.get_mut(section) else { return };
        let logical = if version_0 { stream.length } else { part.base };
        stream.length = logical + length;
        stream.shared = part.shared;
        let piece = Piece { cut, ..Piece::new(part, logical) };
        stream.pieces.push(piece.clone());
        self.add_to_table(section, piece);
    }

    fn mark_seen(&mut self, section: usize) -> bool {
        self.seen.get_mut(section).is_some_and(|seen| std::mem::replace(seen, true))
    }

    fn open_tagged(&mut self, section: usize, part: Part) -> Result<()> {
        self.check_no_width(&part)?;
        if part.shared {
            // The container has checked that bits 0 and 2 are set, and bit 1 is not.
            let expected = "bit 2 in stream sections only";
            let what = ErrorKind::Invalid { what: "the chunk's flags", found: 5, expected };
            return Err(self.part_error(&part, 8, what));
        }
        let before = self.mark_seen(section);
        if let Some(state) = self.states.get_mut(section).filter(|_| part.reset) {
            state.reset(&self.format);
        }
        // The listed parts of a raw stream are already known to be intact.
        let is_whole = !self.salvage || self.container.raw_section().is_some();
        let part = if is_whole { Some(part) } else { self.salvaged(section, part) };
        if let Some(part) = part {
            if part.reset && before && !self.version_0() {
                self.queue.push_back(Event::Reset(section));
            }
            match part.content {
                Content::Columns(_) => self.keep(section, part),
                _ => self.current = Some(Current::new(section, &part, false)),
            }
        }
        Ok(())
    }

    /// Reads a part once while salvaging to find its errors, and then restores the state. Returns the part, shortened
    /// to the content before the first error. Returns `None` for a part that strides through a stream section if an
    /// earlier chunk of its group is missing (spec 5.2). The container has already dropped parts whose state has not
    /// been reset since the corruption.
    fn salvaged(&mut self, section: usize, part: Part) -> Option<Part> {
        let saved = (self.states.clone(), self.streams.clone(), self.records);
        self.current = Some(Current::new(section, &part, false));
        let queue = std::mem::take(&mut self.queue);
        let result = self.read_part();
        let strided = self.streams.taken() != saved.1.taken();
        self.queue = queue;
        self.forget_part();
        (self.states, self.streams, self.records) = saved;
        // A part that strides through a stream section fails if elements are missing, but this is not an error in the
        // part itself.
        let strides =
            strided || self.states.get(section).is_some_and(|s| s.encoding.strides(&self.format).next().is_some());
        if strides && part.group_damaged {
            self.container.report_lost(&part);
            return None;
        }
        Some(match result {
            Ok(()) => part,
            Err(torn) => self.tear(part, torn),
        })
    }

    /// Reports the content from the first error on as lost, and returns the part shortened to the content before the
    /// error.
    fn tear(&mut self, mut part: Part, torn: Torn) -> Part {
        let found = u32::try_from(torn.found).unwrap_or(u32::MAX);
        let mut lost = part.clone();
        lost.records = lost.records.map(|declared| declared.saturating_sub(found));
        if self.format.section_index(part.section).is_some_and(|section| self.is_stream(section)) {
            self.container.report_bad_end(&lost, torn.error);
        } else {
            self.container.report_bad_content(&lost, torn.error);
        }
        part.content.truncate(torn.position);
        part.records = part.records.map(|_| found);
        part
    }

    /// Reads the elements of a part of a stream section while salvaging, to find its errors.
    fn check_elements(&mut self, section: usize, part: &Part) -> std::result::Result<(), Torn> {
        let piece = Piece::new(part, part.base);
        if let Some(state) = self.states.get_mut(section) {
            enter(state, &self.format, &piece);
        }
        self.current = Some(Current::new(section, part, true));
        let result = self.read_part();
        self.forget_part();
        result
    }

    fn forget_part(&mut self) {
        self.current = None;
        self.pending = None;
        self.next = Next::Unknown;
    }

    /// Reads the current part up to its end or an error.
    fn read_part(&mut self) -> std::result::Result<(), Torn> {
        while let Some(current) = &self.current {
            let (position, found) = (current.position, current.found);
            self.read_record().map_err(|error| Torn { position, found, error })?;
        }
        Ok(())
    }

    /// Reads a record of the current part, or closes the part.
    fn read_record(&mut self) -> Result<()> {
        if self.next_in_part()?.is_some() && self.pending.is_some() {
            self.decode(|row| Ok(row.walk(&mut ())?))?;
        }
        Ok(())
    }

    /// Queues the elements of the finished group. Returns false if there are no elements.
    pub(super) fn flush_elements(&mut self) -> bool {
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

    pub(super) fn open_elements(&mut self, section: usize, piece: Piece, shared: bool) {
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
            logical: piece.logical,
            position: 0,
            follow: false,
            declared: piece.records,
            found: 0,
            is_element: true,
            shared,
        });
    }

    /// Returns an error in a field of a chunk's header (version 1), or at the start of the part.
    fn part_error(&self, part: &Part, field: u64, kind: ErrorKind) -> Error {
        let offset = match part.origin {
            Origin::Stored(offset) if self.version_0() => offset,
            Origin::Stored(offset) => offset.saturating_sub(metatf_container::CHUNK_HEADER_LEN) + field,
            Origin::Packed(offset) => offset + field,
        };
        let mut error = Error::at(offset, kind);
        error.place.section = Some(part.section);
        error
    }
}
