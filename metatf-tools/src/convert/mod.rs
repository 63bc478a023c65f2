//! Converter the fields of a trace by name into another DTD: other sections, values that go to a stream section or come back
//! from one, fields dropped or with their default value.
//!
//! | part | what it answers |
//! | --- | --- |
//! | `fields` | where each field of a target record takes its values from |
//! | `records` | which record of the target a record becomes |
//! | `values` | the values of one record, converted |
//! | `copy` | all of a trace, from reader to writer |
//!
//! Records are matched by name: first in the target's section of the same name, then in any. Fields are matched by their
//! path in the record. A field that is an offset becomes an offset to the same element in the target's table.

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

/// What may get lost.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// Fields (`time`, `alloc.time`) that are not converted.
    pub drop: Vec<String>,
    /// Records that are not converted, by name; elements of stream sections, too.
    pub drop_records: Vec<String>,
}

/// Why the records of one DTD do not fit into another. Everything that is wrong.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Unconvertible {
    /// Fields that the target lacks: `alloc.time`.
    pub fields: Vec<String>,
    /// Records that the target lacks.
    pub records: Vec<String>,
    /// Names to be dropped that nothing has.
    pub unknown: Vec<String>,
    /// What else does not go together, in words.
    pub others: Vec<String>,
}

impl Unconvertible {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Prints as `Display`, so that a `main` that returns the error prints a sentence.
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
            list("the trace's DTD has no", &self.unknown),
            (!self.others.is_empty()).then(|| self.others.join("; ")),
        ];
        f.write_str(&all.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

impl std::error::Error for Unconvertible {}

/// Why a record was not converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvertError {
    /// The trace, or a value of it that does not fit the target.
    Read(Error),
    /// What is written.
    Write(Error),
}

/// What a record has become; its values are on the [owned record](Converter::owned_record).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Converted {
    /// A record or comment: indices of the section and of the record.
    Record(usize, u16),
    /// An element of a stream section: the section's index, and whether it is a shared table.
    Element(usize, bool),
    /// An element that is to be interned in a table, by the index of the section.
    Interned(usize),
}

/// What becomes of a record.
#[derive(Clone, Debug)]
enum Destination {
    /// Nothing.
    Dropped,
    /// It may become a record of several sections: none of them is known to be meant.
    Unclear,
    /// A record of the target: section, record.
    Record(usize, u16, FieldSources),
}

/// What becomes of the elements of a stream section.
#[derive(Clone, Debug)]
enum ElementTarget {
    /// Nothing: records took them, or they are dropped.
    Dropped,
    /// They are elements of this section.
    Given(Arc<ElementSection>),
    /// They stand in these tables.
    Tables(Arc<[usize]>),
}

/// A stream section of the target that takes the elements of one of the source.
#[derive(Debug)]
struct ElementSection {
    section: usize,
    element: u16,
    /// Offsets lead to them.
    table: bool,
    fields: FieldSources,
}

/// From one DTD to another.
pub struct Converter {
    source: Schema,
    target: Schema,
    /// By index of the source's section and record.
    records: Vec<Vec<Destination>>,
    /// By index of the source's section: the section its comments go to.
    comments: Vec<usize>,
    /// By index of the source's section.
    elements: Vec<ElementTarget>,
    /// The elements of tables: section of the source, of the target.
    tables: HashMap<(usize, usize), Arc<FieldSources>>,
    /// Offsets that are known.
    offsets: HashMap<ElementKey, u64>,
    /// By section of the target: the least offset at which the trace has no element.
    kept: BTreeMap<usize, u64>,
    /// Elements that are being converted, each led to by the one before it; whether it has an offset to itself.
    under_way: Vec<(ElementKey, bool)>,
    read: OwnedRecord,
    indices: ValueIndices,
    seen: Seen,
    owned: OwnedRecord,
}

/// Section and offset of the source, section of the target.
type ElementKey = (usize, u64, usize);

impl Converter {
    /// Matches the records of two DTDs.
    ///
    /// # Errors
    /// All that does not fit.
    pub fn new(source: &Schema, target: &Schema, options: &ConvertOptions) -> Result<Self, Unconvertible> {
        records::resolve(source, target, options)
    }

    /// What a record, comment or element that the trace announced becomes; `None` where it becomes nothing.
    ///
    /// # Errors
    /// What is wrong with the trace; a value that cannot be converted; what `to` returns.
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

    /// What the fields are converted to.
    #[must_use]
    pub fn target(&self) -> &Schema {
        &self.target
    }

    /// The values of what was converted last.
    #[must_use]
    pub fn owned_record(&self) -> &OwnedRecord {
        &self.owned
    }

    /// Exchanges the values of what was converted last for others.
    pub(crate) fn swap_record(&mut self, owned: &mut OwnedRecord) {
        std::mem::swap(&mut self.owned, owned);
    }

    /// Offsets that were kept as they are, as no element of the trace stands there: of each section of the target the least. Where
    /// the target's table has grown past it, an element of another trace may stand there.
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
        // Taken out while it is used, so that tables can be asked for.
        let destination = std::mem::replace(destination, Destination::Dropped);
        let converted = match &destination {
            Destination::Dropped => Ok(None),
            Destination::Unclear => {
                let why = "several sections of the target have a record of this name";
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

    /// The offset in the target of the element at an offset of the source. Where there is no element the number stays: as a
    /// rule it is a 0 that says so.
    fn offset(
        &mut self,
        trace: &mut Trace<'_>,
        at: At,
        key: ElementKey,
        to: &mut impl ConvertedSink,
    ) -> Result<u64, ConvertError> {
        /// Offsets that are kept; others are found again.
        const KEPT: usize = 1 << 20;
        /// Elements that lead to elements.
        const DEEPEST: usize = 250;
        if let Some(&known) = self.offsets.get(&key) {
            return Ok(known);
        }
        if let Some((_, leads_to_itself)) = self.under_way.last_mut().filter(|(last, _)| *last == key) {
            *leads_to_itself = true;
            return Ok(to.next_offset(key.2));
        }
        if self.under_way.len() > DEEPEST || self.under_way.iter().any(|(other, _)| *other == key) {
            let why = "elements that lead to each other in a circle, or over 250 deep, cannot be moved";
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
            // What the element leads to is in the table now: this time the next offset is the element's own.
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

    /// The values of an element of a table for one of the target.
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

/// The element of a stream section.
fn element_of(schema: &Schema, section: usize) -> Option<u16> {
    schema.format.sections.get(section).filter(|s| s.stream)?.records.first().copied()
}

fn element_record(schema: &Schema, section: usize) -> Option<&Record> {
    schema.format.records.get(usize::from(element_of(schema, section)?))
}

/// An error about a record that is read already.
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
