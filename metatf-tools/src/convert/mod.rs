//! Converts a trace to a different DTD, matching fields by name. Records may move to another section, values may move
//! into or out of stream sections, and fields may be dropped or set to their default values.
//!
//! | part | content |
//! | --- | --- |
//! | `fields` | the source of each field of a target record |
//! | `records` | the target record of each source record |
//! | `values` | the converted values of a record |
//! | `copy` | conversion of an entire trace, from reader to writer |
//!
//! Records are matched by name, first in the target's section of the same name and then in any section. Fields are
//! matched by their path in the record. An offset is converted to the offset of the same element in the target's table.
//!
//! ```
//! use metatf::container::WriteOptions;
//! use metatf::dynamic::{JsonOptions, Trace, Writer};
//! use metatf_tools::convert::{ConvertOptions, Converter};
//!
//! # use metatf::dynamic::{OwnedRecord, Schema};
//! # let old = Schema::parse("old.dtd", b"section heap 1 {
//! #     malloc: (tag, line, size) { tag.value = 4; line.width = 2; line.interpretation = none;
//! #                                 size.width = 4; size.interpretation = none; }
//! # }")?;
//! # let new = Schema::parse("new.dtd", b"section blocks 7 {
//! #     malloc: (tag, size) { tag.value = 9; size.width = 1; size.interpretation = none; }
//! # }")?;
//! # let mut writer = Writer::new(Vec::new(), &old, &WriteOptions::default())?;
//! # let mut owned = OwnedRecord::default();
//! # let line = old.read_json(br#"{"@section":"heap","@record":"malloc","line":7,"size":24}"#, &mut owned)?;
//! # writer.write(&line, &owned)?;
//! # let file = writer.finish()?;
//! // The DTD `old` declares `malloc: (tag, line, size)`, and the DTD `new` declares `malloc: (tag, size)`.
//! let unconvertible = Converter::new(&old, &new, &ConvertOptions::default()).err().unwrap_or_default();
//! assert_eq!(unconvertible.fields, ["malloc.line"]);
//!
//! let options = ConvertOptions { drop: vec!["line".to_owned()], ..ConvertOptions::default() };
//! let mut converter = Converter::new(&old, &new, &options)?;
//! let mut writer = Writer::new(Vec::new(), &new, &WriteOptions::default())?;
//! let copied = converter.copy(&mut Trace::from_slice(&file)?, &mut writer, true, &mut || {});
//! assert_eq!(copied, Ok(()));
//!
//! let (file, mut lines) = (writer.finish()?, Vec::new());
//! Trace::from_slice(&file)?.next_json(&mut lines, JsonOptions::default())?;
//! assert_eq!(lines, b"{\"@section\":\"blocks\",\"@record\":\"malloc\",\"size\":24}\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod copy;
mod fields;
mod records;
mod values;

pub use copy::ConvertedSink;

use crate::value_indices::ValueIndices;
use fields::FieldSources;
use metatf::container::{Error, ErrorKind};
use metatf::dynamic::{OwnedRecord, Schema, Trace};
use metatf::format::Record;
use metatf::reader::{At, Event};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use values::Seen;

/// The data that may be lost in a conversion.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// Fields to omit, such as `time` or `alloc.time`.
    pub drop: Vec<String>,
    /// Names of records to omit, including elements of stream sections.
    pub drop_records: Vec<String>,
}

/// All reasons why the records of one DTD cannot be converted to another.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Unconvertible {
    /// Fields without a counterpart in the target, such as `alloc.time`.
    pub fields: Vec<String>,
    /// Records without a counterpart in the target.
    pub records: Vec<String>,
    /// Names to drop that match no field or record.
    pub unknown: Vec<String>,
    /// Descriptions of all other mismatches.
    pub others: Vec<String>,
}

impl Unconvertible {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Formats like `Display`, so that a `main` function that returns the error prints a sentence.
impl fmt::Debug for Unconvertible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Unconvertible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")));
        let all = [
            list("the target has no field for", &self.fields),
            list("the target has no record for", &self.records),
            list("the DTD of the trace does not define", &self.unknown),
            (!self.others.is_empty()).then(|| self.others.join("; ")),
        ];
        f.write_str(&all.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

impl std::error::Error for Unconvertible {}

/// The reason why a record was not converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvertError {
    /// The trace is malformed, or one of its values does not fit in the target.
    Read(Error),
    /// The output cannot be written.
    Write(Error),
}

/// The result of converting a record. The values are stored in the [owned record](Converter::owned_record).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Converted {
    /// A record or comment, with the section index and the record index.
    Record(usize, u16),
    /// An element of a stream section, with the section index and whether the section is a shared table.
    Element(usize, bool),
    /// An element to intern in a table, with the section index.
    Interned(usize),
}

/// The target of a source record.
#[derive(Clone, Debug)]
enum Destination {
    /// The record is dropped.
    Dropped,
    /// The record could go to several sections, and the choice is ambiguous.
    Unclear,
    /// A record of the target, with the section index, the record index and the sources of its fields.
    Record(usize, u16, FieldSources),
}

/// The destination of a stream section's elements.
#[derive(Clone, Debug)]
enum ElementTarget {
    /// The elements are dropped, either on request or because records have absorbed their values.
    Dropped,
    /// The elements become elements of this section.
    Given(Arc<ElementSection>),
    /// The elements become elements of these tables.
    Tables(Arc<[usize]>),
}

/// A stream section of the target that receives the elements of a source section.
#[derive(Debug)]
struct ElementSection {
    section: usize,
    element: u16,
    /// Whether offsets in records refer to the elements.
    table: bool,
    fields: FieldSources,
}

/// A converter from one DTD to another. See the [module](crate::convert) for an example.
pub struct Converter {
    source: Schema,
    target: Schema,
    /// The destinations of records, indexed by the section and record of the source.
    records: Vec<Vec<Destination>>,
    /// The target section for the comments of each source section.
    comments: Vec<usize>,
    /// The destinations of elements, indexed by source section.
    elements: Vec<ElementTarget>,
    /// The field sources of table elements, keyed by source section and target section.
    tables: HashMap<(usize, usize), Arc<FieldSources>>,
    /// Target offsets of the elements converted so far.
    offsets: HashMap<ElementKey, u64>,
    /// For each section of the target, the lowest offset that was kept unchanged because the trace contains no element
    /// there.
    kept: BTreeMap<usize, u64>,
    /// The chain of elements being converted, in which each element refers to the next. The flag is set if an element
    /// refers to itself.
    under_way: Vec<(ElementKey, bool)>,
    read: OwnedRecord,
    indices: ValueIndices,
    seen: Seen,
    owned: OwnedRecord,
}

/// The section and offset in the source, and the section in the target.
type ElementKey = (usize, u64, usize);

impl Converter {
    /// Matches the records of two DTDs.
    ///
    /// # Errors
    /// Returns all mismatches.
    pub fn new(source: &Schema, target: &Schema, options: &ConvertOptions) -> Result<Self, Unconvertible> {
        records::resolve(source, target, options)
    }

    /// Converts the record, comment or element announced by the trace. Returns `None` if it is dropped.
    ///
    /// # Errors
    /// Returns an error if the trace is malformed, a value cannot be converted, or `to` fails.
    pub fn apply(
        &mut self,
        trace: &mut Trace<'_>,
        event: Event,
        to: &mut impl ConvertedSink,
    ) -> Result<Option<Converted>, ConvertError> {
        let (at, shared) = match event {
            Event::Record(at) | Event::Comment(at) => (at, None),
            Event::Element(at, shared) => (at, Some(shared)),
            _ => return Ok(None),
        };
        trace.reader_mut().decode(|row| self.read.decode(row)).map_err(ConvertError::Read)?;
        match shared {
            None if matches!(event, Event::Comment(_)) => {
                std::mem::swap(&mut self.owned, &mut self.read);
                Ok(self.comments.get(at.section).map(|&section| Converted::Record(section, at.record)))
            }
            None => self.record(trace, at, to),
            Some(shared) => self.element(trace, at, shared, to),
        }
    }

    /// Returns the schema of the target.
    #[must_use]
    pub fn target(&self) -> &Schema {
        &self.target
    }

    /// Returns the values of the last converted record.
    #[must_use]
    pub fn owned_record(&self) -> &OwnedRecord {
        &self.owned
    }

    /// Swaps the values of the last converted record with `owned`.
    pub(crate) fn swap_record(&mut self, owned: &mut OwnedRecord) {
        std::mem::swap(&mut self.owned, owned);
    }

    /// Returns, for each section of the target, the lowest offset that was kept unchanged because the trace contains no
    /// element there. If the target's table grows past a kept offset, that offset may refer to an element of another
    /// trace.
    pub fn kept_offsets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.kept.iter().map(|(&section, &offset)| (section, offset))
    }

    fn record(
        &mut self,
        trace: &mut Trace<'_>,
        at: At,
        to: &mut impl ConvertedSink,
    ) -> Result<Option<Converted>, ConvertError> {
        let records = self.records.get_mut(at.section).and_then(|s| s.get_mut(usize::from(at.record)));
        let Some(destination) = records else { return Ok(None) };
        // Move the destination out while it is in use, because converting an offset borrows all of `self`.
        let destination = std::mem::replace(destination, Destination::Dropped);
        let converted = match &destination {
            Destination::Dropped => Ok(None),
            Destination::Unclear => {
                let why = "several sections of the target contain a record of this name";
                Err(ConvertError::Read(at_record(trace, at, ErrorKind::Usage(why))))
            }
            Destination::Record(section, record, fields) => {
                let converted = Converted::Record(*section, *record);
                self.convert_values(trace, at, fields, *record, to).map(|()| Some(converted))
            }
        };
        if let Some(slot) = self.records.get_mut(at.section).and_then(|s| s.get_mut(usize::from(at.record))) {
            *slot = destination;
        }
        converted
    }

    fn element(
        &mut self,
        trace: &mut Trace<'_>,
        at: At,
        shared: bool,
        to: &mut impl ConvertedSink,
    ) -> Result<Option<Converted>, ConvertError> {
        let Some(elements) = self.elements.get(at.section).cloned() else { return Ok(None) };
        match elements {
            ElementTarget::Dropped => Ok(None),
            ElementTarget::Given(given) => {
                self.convert_values(trace, at, &given.fields, given.element, to)?;
                let section = given.section;
                Ok(Some(if given.table { Converted::Interned(section) } else { Converted::Element(section, shared) }))
            }
            ElementTarget::Tables(sections) => {
                let read = std::mem::take(&mut self.read);
                let converted = sections.iter().try_for_each(|&section| {
                    let element = self.table_element(trace, at, (at.section, section), &read, to)?;
                    to.intern(section, &element).map(drop).map_err(ConvertError::Write)
                });
                self.read = read;
                converted.map(|()| None)
            }
        }
    }

    fn convert_values(
        &mut self,
        trace: &mut Trace<'_>,
        at: At,
        fields: &FieldSources,
        record: u16,
        to: &mut impl ConvertedSink,
    ) -> Result<(), ConvertError> {
        let mut indices = std::mem::take(&mut self.indices);
        let read = std::mem::take(&mut self.read);
        let mut out = std::mem::take(&mut self.owned);
        if let Some(source) = self.source.format.records.get(usize::from(at.record)).filter(|_| fields.fixed.is_none())
        {
            indices.fill(source, &read);
        }
        let target = self.target.clone();
        let converted = match target.format.records.get(usize::from(record)) {
            Some(r) => {
                let mut seen = std::mem::take(&mut self.seen);
                let offset = &mut |trace: &mut Trace<'_>, key| self.offset(trace, at, key, to);
                let filled = values::fill(
                    &mut out,
                    r,
                    fields,
                    (&read, fields.fixed.as_ref().unwrap_or(&indices)),
                    &mut seen,
                    trace,
                    offset,
                );
                self.seen = seen;
                filled
            }
            None => Ok(()),
        };
        (self.indices, self.read, self.owned) = (indices, read, out);
        converted.map_err(|problem| problem.at(trace, at))
    }

    /// Returns the target's offset of the element at a source offset. If no element exists there, the number is kept;
    /// usually, it is a 0 that means "no element".
    fn offset(
        &mut self,
        trace: &mut Trace<'_>,
        at: At,
        key: ElementKey,
        to: &mut impl ConvertedSink,
    ) -> Result<u64, ConvertError> {
        /// Maximum number of offsets to cache; further offsets are recomputed.
        const KEPT: usize = 1 << 20;
        /// Maximum length of a chain of elements.
        const DEEPEST: usize = 250;
        if let Some(&known) = self.offsets.get(&key) {
            return Ok(known);
        }
        if let Some((_, leads_to_itself)) = self.under_way.last_mut().filter(|(last, _)| *last == key) {
            *leads_to_itself = true;
            return Ok(to.next_offset(key.2));
        }
        if self.under_way.len() > DEEPEST || self.under_way.iter().any(|(other, _)| *other == key) {
            let why = "cannot convert elements that refer to each other in a cycle or more than 250 levels deep";
            return Err(ConvertError::Read(at_record(trace, at, ErrorKind::Limit(why))));
        }
        let mut read = OwnedRecord::default();
        match trace.reader_mut().element_at(key.0, key.1, |row| read.decode(row)) {
            Ok(()) => {}
            Err(error) if matches!(error.kind, ErrorKind::NoOffset { .. }) => {
                let least = self.kept.entry(key.2).or_insert(key.1);
                *least = key.1.min(*least);
                return Ok(key.1);
            }
            Err(error) => return Err(ConvertError::Read(error)),
        }
        self.under_way.push((key, false));
        let mut converted = self.table_element(trace, at, (key.0, key.2), &read, to);
        if matches!(self.under_way.pop(), Some((_, true))) {
            // The elements that this element refers to are in the table now, so this element will get the next offset.
            self.under_way.push((key, false));
            converted = self.table_element(trace, at, (key.0, key.2), &read, to);
            self.under_way.pop();
        }
        let new = to.intern(key.2, &converted?).map_err(ConvertError::Write)?;
        if self.offsets.len() >= KEPT {
            self.offsets.clear();
        }
        self.offsets.insert(key, new);
        Ok(new)
    }

    /// Converts the values of a table element for the target.
    fn table_element(
        &mut self,
        trace: &mut Trace<'_>,
        at: At,
        (from, into): (usize, usize),
        read: &OwnedRecord,
        to: &mut impl ConvertedSink,
    ) -> Result<OwnedRecord, ConvertError> {
        let (source, target) = (self.source.clone(), self.target.clone());
        let mut converted = OwnedRecord::default();
        let (Some(a), Some(b)) = (element_record(&source, from), element_record(&target, into)) else {
            return Ok(converted);
        };
        let Some(fields) = self.tables.get(&(from, into)).cloned() else { return Ok(converted) };
        let (mut indices, mut seen) = (ValueIndices::default(), Seen::default());
        indices.fill(a, read);
        let next = &mut |trace: &mut Trace<'_>, key| self.offset(trace, at, key, to);
        let filled = values::fill(&mut converted, b, &fields, (read, &indices), &mut seen, trace, next);
        filled.map_err(|problem| problem.at(trace, at))?;
        Ok(converted)
    }
}

/// Returns the element of a stream section.
fn element_of(schema: &Schema, section: usize) -> Option<u16> {
    schema.format.sections.get(section).filter(|s| s.stream)?.records.first().copied()
}

fn element_record(schema: &Schema, section: usize) -> Option<&Record> {
    schema.format.records.get(usize::from(element_of(schema, section)?))
}

/// Returns an error located at a record that has already been read.
pub(crate) fn at_record(trace: &Trace<'_>, at: At, kind: ErrorKind) -> Error {
    let mut error = Error::at(at.offset, kind);
    if let Some((place, _)) = trace.reader().bytes_of(at) {
        error.place = place;
        error.place.record_start = Some(place.content.unwrap_or(place.offset));
    }
    error.place.section = trace.schema().section(at.section).map(|s| s.number);
    error.place.tag = trace.schema().record(at.record).and_then(|r| r.tag);
    error
}
