//! Metadata records (spec 4.1) and `section` records (spec 5.1) as a reader meets them.

use super::{At, Event, RecordReader};
use crate::container::Origin;
use crate::error::{Error, ErrorKind, Result};
use crate::format::Interpretation;
use crate::row::place;
use crate::state::Change;

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

impl RecordReader<'_> {
    /// Reads and applies a metadata record (spec 4.1); errors are placed at the field at fault.
    pub(super) fn metadata(&mut self, at: At, start: usize) -> Result<Event> {
        let record_at = self.position();
        let field_at = record_at + usize::from(self.format.tag_width);
        let (property_at, values_at) = (field_at + 1, field_at + 2);
        let (metadata, width) = match self.metadata_fields(record_at) {
            Ok((metadata, width, end)) => {
                if let Some(current) = self.current.as_mut() {
                    current.position = end;
                }
                (metadata, width)
            }
            Err((place, kind @ ErrorKind::Truncated(_))) => return Err(self.fail(place, kind)),
            Err((place, kind)) => return Err(self.tagged(place, start, kind)),
        };
        let change = match metadata.change() {
            Ok(change) => change,
            Err(kind) => return Err(self.tagged(values_at, start, kind)),
        };
        let section = at.section;
        let Some(position) = self.states.get(section).and_then(|s| s.position(metadata.record)) else {
            return Err(self.tagged(record_at, start, ErrorKind::Metadata("it names a tag that is not declared here")));
        };
        let Some(state) = self.states.get_mut(section) else { return Err(self.fail(start, ErrorKind::Usage(""))) };
        let applied = state.apply(&self.format, position, metadata.field, metadata.all(), change);
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

    /// The fields of the metadata record from the byte at `at` on, the width of its values, and where it ends; or what is
    /// wrong, and where.
    #[allow(clippy::cast_possible_truncation, reason = "each value is as wide as it was read")]
    fn metadata_fields(&self, mut at: usize) -> Result<(Metadata, usize, usize), (usize, ErrorKind)> {
        let data = self.current.as_ref().map_or(&[][..], |current| self.container.bytes(&current.content));
        let (order, tag_width) = (self.order, usize::from(self.format.tag_width));
        let property_at = at + tag_width + 1;
        let mut take = |width: usize| {
            let short = (at, ErrorKind::Truncated("a metadata or section record"));
            let bytes = data.get(at..).and_then(|rest| rest.get(..width)).ok_or(short)?;
            at += width;
            Ok(order.read(bytes))
        };
        let record = take(tag_width)? as u32;
        let (field, property) = (take(1)? as u8, take(1)? as u8);
        let mut metadata = Metadata { record, field, property, values: [0; 2], count: 0 };
        let width = match property >> 4 {
            0 if self.container.header().class.is_64() => 8,
            0 => 4,
            n @ 1..=8 => usize::from(n),
            n => {
                let found = u64::from(n);
                let kind = ErrorKind::Invalid { what: "the width of metadata values", found, expected: "0 to 8" };
                return Err((property_at, kind));
            }
        };
        metadata.count = [1, 0, 1, 1, 1, 1, 2, 2][usize::from(property & 7)];
        for (i, slot) in metadata.values.iter_mut().enumerate().take(metadata.count.into()) {
            *slot = take(width)?;
            // A stride is sign-extended, all else zero-extended.
            if i == 1 {
                let unused = 64 - 8 * width as u32;
                *slot = ((*slot << unused) as i64 >> unused) as u64;
            }
        }
        Ok((metadata, width, at))
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
    pub(super) fn section_record(&mut self, at: At, start: usize) -> Result<Event> {
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
