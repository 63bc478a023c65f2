//! Reading metadata records (spec 4.1) and `section` records (spec 5.1).

use super::{At, Event, RecordReader};
use crate::decode::{Run, tag};
use crate::format::METADATA;
use crate::state::{Metadata, Parsed};
use crate::streams::place;
use metatf_container::{Error, ErrorKind, MetadataRule, Origin, Result};

impl RecordReader<'_> {
    /// Reads and applies a metadata record (spec 4.1). Errors contain the position of the invalid field.
    pub(super) fn metadata(&mut self, at: At, start: usize) -> Result<Event> {
        let record_at = self.position();
        let tag_width = usize::from(self.format.tag_width);
        let bytes = self.current.as_ref().map_or(&[][..], |current| self.container.bytes(&current.content));
        let parsed = Parsed::new(bytes.get(record_at..).unwrap_or_default(), tag_width, self.word(), self.order);
        let Parsed { metadata, length, values, width } = match parsed {
            Ok(parsed) => parsed,
            Err((at, kind @ ErrorKind::Truncated(_))) => return Err(self.fail(record_at + at, kind)),
            Err((at, kind)) => return Err(self.tagged(record_at + at, start, kind)),
        };
        let change = match metadata.change() {
            Ok(change) => change,
            Err(kind) => return Err(self.tagged(record_at + values, start, kind)),
        };
        let section = at.section;
        let Some(position) = self.states.get(section).and_then(|s| s.encoding.position(metadata.record)) else {
            return Err(self.tagged(record_at, start, ErrorKind::Metadata(MetadataRule::UnknownTag)));
        };
        let Some(state) = self.states.get_mut(section) else { return Err(self.fail(start, ErrorKind::Usage(""))) };
        let applied = state.apply(&self.format, position, metadata.field, metadata.all(), change);
        applied.map_err(|kind| {
            let at = match kind {
                ErrorKind::Metadata(MetadataRule::NotChangeable) => 0,
                ErrorKind::Metadata(MetadataRule::Stride) => values + width,
                ErrorKind::Metadata(MetadataRule::OffsetTarget | MetadataRule::StrideTarget) => values,
                ErrorKind::Metadata(MetadataRule::NoWidth) => tag_width + 1,
                _ => tag_width,
            };
            self.tagged(record_at + at, start, kind)
        })?;
        if let Some(current) = self.current.as_mut() {
            current.position = record_at + length;
        }
        Ok(Event::Metadata(at, metadata))
    }

    /// Returns the size of a metadata value that does not specify its own size, in bytes.
    pub(super) fn word(&self) -> usize {
        if self.container.header().class.is_64() { 8 } else { 4 }
    }

    /// Returns an error in a metadata or section record that began at `start`.
    fn tagged(&self, position: usize, start: usize, kind: ErrorKind) -> Error {
        let mut error = self.fail(position, kind);
        let start = place(self.current.as_ref().map_or(Origin::Stored(0), |c| c.origin), start);
        error.place.record_start = Some(start.content.unwrap_or(start.offset));
        error.place.tag = Some(if matches!(kind, ErrorKind::UnknownSection(_)) { 2 } else { 3 });
        error
    }

    /// Processes a `section` record inside content. Such a record may occur only in a version 0 file without a table
    /// (spec 5.1).
    pub(super) fn section_record(&mut self, at: At, start: usize) -> Result<Event> {
        if !self.current.as_ref().is_some_and(|c| c.follow) {
            let kind =
                ErrorKind::Invalid { what: "the tag", found: 2, expected: "a tag other than the section record's" };
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
            return Err(self.tagged(
                number_at,
                start,
                ErrorKind::Invalid { what: "the section", found: number, expected },
            ));
        }
        if let Some(current) = self.current.as_mut() {
            current.section = index;
        }
        #[allow(clippy::cast_possible_truncation, reason = "one byte was read")]
        Ok(Event::Section(at, number as u8))
    }
}

impl Run<'_> {
    /// Applies the next record and returns it if it is a valid metadata record. Otherwise, returns `None` and changes
    /// nothing.
    #[inline(never)]
    pub(super) fn apply_metadata(&mut self) -> Option<Metadata> {
        let width = usize::from(self.format.tag_width);
        let listed = tag(self.data, self.position, width, self.order).and_then(|tag| self.state.encoding.listed(tag));
        if listed.is_none_or(|listed| listed.record != METADATA) {
            return None;
        }
        let bytes = self.data.get(self.position + width..).unwrap_or_default();
        let Parsed { metadata, length, .. } = Parsed::new(bytes, width, self.word, self.order).ok()?;
        let (change, position) = (metadata.change().ok()?, self.state.encoding.position(metadata.record)?);
        self.state.apply(self.format, position, metadata.field, metadata.all(), change).ok()?;
        self.position += width + length;
        Some(metadata)
    }
}
