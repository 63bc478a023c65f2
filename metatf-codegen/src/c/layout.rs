//! The layout of stored events: the width of each leaf in bytes, and the metadata at the start of a chunk that sets
//! these widths.

use metatf_parser::schema::{COMMENT, Dtd, Interpretation, Leaf, LeafId, METADATA, Record, RecordId, Width};

use super::nested::{Nested, Types};
use crate::docs;
use crate::emitters::{self, Argument, Emitters, Event, Given, Machine, Missing, first};
use crate::names::Scope;
use crate::options::{OptionError, Options};
use crate::uses::{Uses, leaf};

/// All events, grouped by section.
pub(crate) struct Layout {
    pub(crate) sections: Vec<Stored>,
    pub(crate) events: Vec<EventC>,
    pub(crate) dropped: Option<EventC>,
    pub(crate) clock_sync: Option<EventC>,
    pub(crate) intern: Option<EventC>,
    /// The elements of the tables to which events refer.
    pub(crate) tables: Vec<EventC>,
    /// The size of a tag.
    pub(crate) tag_width: u8,
    /// The tag of a comment.
    pub(crate) comment: u32,
    /// The records without an emitter.
    pub(crate) without: Vec<Missing>,
}

/// A section with events.
pub(crate) struct Stored {
    pub(crate) number: u8,
    /// The records at the start of each chunk.
    pub(crate) metadata: Vec<u8>,
    /// Whether this is a table, whose chunks any later group may refer to.
    pub(crate) is_table: bool,
    /// The width in the header of each chunk, which is 0 unless the elements are single numbers.
    pub(crate) width: u8,
}

/// An event in C.
pub(crate) struct EventC {
    pub(crate) name: String,
    pub(crate) docs: Vec<String>,
    pub(crate) kind: usize,
    pub(crate) compiled: bool,
    /// Index of the section, starting at 1.
    pub(crate) section: usize,
    pub(crate) tag: u32,
    pub(crate) arguments: Vec<(String, Machine, Vec<String>)>,
    pub(crate) leaves: Vec<Put>,
    /// The names of the leaves.
    pub(crate) names: Vec<String>,
    /// The name of the record.
    pub(crate) record: String,
    /// The layout of a record that is not plain.
    pub(crate) nested: Option<Nested>,
}

/// The data to write for a leaf.
#[derive(Clone, Copy)]
pub(crate) enum Put {
    /// A constant with this number of bytes.
    Constant(u64, u8),
    /// The length of the argument with this index.
    Length(usize),
    Argument(usize, Machine),
    Clock,
    Thread,
    Process,
    /// A value that the emitter provides: the number of dropped events, or the wall-clock time.
    Own,
    /// The ID of a string, its length, and the string itself.
    OwnId,
    OwnLength,
    OwnText,
    /// A computed count, which stores nothing.
    Computed,
    /// The argument with this index, which is the number of items of a repetition.
    Count(usize),
    /// The argument with this index, which is an offset in a table.
    Reference(usize),
    /// The argument with this index, which is a byte array whose length is computed from other values.
    Measured(usize),
    /// The argument with this index, which is a byte array that ends before this byte.
    Until(usize, u8),
    /// An element's argument with this index, in the encoding of the DTD.
    Encoded(usize, Encoding),
    /// The length of an element's argument with this index, in this number of bytes.
    EncodedLength(usize, u8),
}

/// The encoding of a number in an element. No metadata can change this encoding.
#[derive(Clone, Copy)]
pub(crate) struct Encoding {
    pub(crate) machine: Machine,
    pub(crate) base: u64,
    pub(crate) width: u8,
    pub(crate) is_signed: bool,
    /// Whether the number is an offset in a table.
    pub(crate) is_reference: bool,
}

/// Names used in the functions of all events.
const OWN_NAMES: &[&str] = &["emitter", "at"];

impl Layout {
    pub(crate) fn of(dtd: &Dtd, emitters: &Emitters, options: &Options) -> Result<Self, OptionError> {
        let predefined = |id: RecordId| dtd.record(id).and_then(|record| record.tag);
        let comment = predefined(COMMENT).unwrap_or(1);
        let metadata = predefined(METADATA).unwrap_or(3);
        let mut layout = Self {
            sections: Vec::new(),
            events: Vec::new(),
            dropped: None,
            clock_sync: None,
            intern: None,
            tables: Vec::new(),
            tag_width: dtd.tag_width,
            comment,
            without: emitters.without.clone(),
        };
        let mut types = Types::of(emitters);
        for event in &emitters.events {
            let made = layout.event(dtd, event, metadata, &mut types);
            layout.events.extend(made);
        }
        let mut own =
            |event: &Option<Event>| event.as_ref().and_then(|event| layout.event(dtd, event, metadata, &mut types));
        let (dropped, clock_sync, intern) = (own(&emitters.dropped), own(&emitters.clock_sync), own(&emitters.intern));
        (layout.dropped, layout.clock_sync, layout.intern) = (dropped, clock_sync, intern);
        for element in &emitters.tables {
            let made = layout.event(dtd, element, metadata, &mut types);
            layout.tables.extend(made);
        }
        if layout.events.is_empty() {
            return Err(OptionError("the DTD has no record that a program can emit".to_owned()));
        }
        if !layout.without.is_empty() && !options.allow_missing {
            let all: Vec<_> = layout.without.iter().map(ToString::to_string).collect();
            return Err(OptionError(format!(
                "cannot generate an emitter for {}; to omit such records, set `allow_missing` (--allow-missing)",
                all.join(", ")
            )));
        }
        Ok(layout)
    }

    /// Adds an event, or the element of a table.
    fn event(&mut self, dtd: &Dtd, event: &Event, metadata: u32, types: &mut Types) -> Option<EventC> {
        let section = dtd.sections.iter().find(|section| section.number == event.section)?;
        let element = section.stream.and_then(|id| dtd.record(id));
        let record = match element {
            Some(element) => element,
            None => dtd.tagged(section, event.tag)?.1,
        };
        let others = section.records.iter().filter_map(|id| dtd.record(*id)).filter(|other| !other.catch_all);
        let taken: Vec<u32> = others.filter_map(|other| other.tag).collect();
        let made = puts(record, event).and_then(|leaves| {
            let nested = (!event.plain).then(|| Nested::of((record, &taken), event, &leaves, types)).transpose()?;
            Ok((leaves, nested))
        });
        let (leaves, nested) = match made {
            Ok(made) => made,
            Err(reason) => {
                self.without.push(Missing { record: record.name.clone(), reason });
                return None;
            }
        };
        let single = match &record.leaves[..] {
            [l] if element.is_some() && !l.repeated && l.interpretation.stores() => &l.width,
            _ => &Width::Unset,
        };
        let width = if let Width::Number(width) = single { *width } else { 0 };
        let section = self.sections.iter().position(|known| known.number == event.section).unwrap_or_else(|| {
            let (number, is_table) = (event.section, element.is_some());
            self.sections.push(Stored { number, metadata: Vec::new(), is_table, width });
            self.sections.len() - 1
        });
        if let Some(stored) = self.sections.get_mut(section) {
            stored.metadata.extend(settings(dtd, metadata, record, event.tag, &leaves));
        }
        let mut names = Scope::with(OWN_NAMES);
        let arguments = event.fields.iter().map(|argument| named(argument, &mut names)).collect();
        let Event { name, docs, kind, compiled, tag, .. } = event;
        Some(EventC {
            name: name.trim_start_matches('_').to_owned(),
            docs: docs.iter().map(|line| docs::plain(line)).collect(),
            kind: *kind,
            compiled: *compiled,
            section: section + 1,
            tag: *tag,
            arguments,
            leaves,
            names: record.leaves.iter().skip(first(record)).map(emitters::named).collect(),
            record: record.name.clone(),
            nested,
        })
    }

    /// Returns the maximum size of an event.
    pub(crate) fn most(&self, event: &EventC) -> usize {
        let fixed = || event.leaves.iter().map(|put| most(*put)).sum::<usize>();
        usize::from(self.tag_width) + event.nested.as_ref().map_or_else(fixed, |nested| nested.body.size)
    }

    /// Returns the size of a chunk with one string, and the index of the chunk's section, or `None` if strings have no
    /// IDs.
    pub(crate) fn string_chunk(&self) -> Option<(usize, usize)> {
        let event = self.intern.as_ref()?;
        let metadata = self.sections.get(event.section.checked_sub(1)?).map_or(0, |section| section.metadata.len());
        Some((48 + metadata + self.most(event), event.section))
    }

    /// Returns the minimum size of a buffer, which must have room for telemetry's own records and the longest event.
    pub(crate) fn buffer_least(&self) -> usize {
        self.own_chunk() + self.events.iter().map(|event| self.most(event)).max().unwrap_or(0)
    }

    /// Returns the size of a chunk that contains only telemetry's own records: a header, metadata, dropped events and
    /// clocks.
    pub(crate) fn own_chunk(&self) -> usize {
        let metadata = self.sections.iter().map(|section| section.metadata.len()).max().unwrap_or(0);
        // If the DTD defines no record for dropped events, a comment reports them.
        let dropped = self.dropped.as_ref().map_or(usize::from(self.tag_width) + 80, |event| self.most(event));
        let clock_sync = self.clock_sync.as_ref().map_or(0, |event| self.most(event));
        48 + metadata + dropped + clock_sync
    }
}

fn named(argument: &Argument, names: &mut Scope) -> (String, Machine, Vec<String>) {
    let name = names.take(&[super::names::argument(&argument.name)]);
    if argument.machine == Machine::Bytes {
        // The length is also an argument.
        names.take(&[format!("{name}_length")]);
    }
    (name, argument.machine, argument.docs.iter().map(|line| docs::plain(line)).collect())
}

/// Returns the data to write for each leaf after the tag. An error is the reason why the record cannot be emitted.
fn puts(record: &Record, event: &Event) -> Result<Vec<Put>, String> {
    let uses = Uses::of(record);
    let leaves = (0..=u8::MAX).map(LeafId).zip(&record.leaves).skip(first(record));
    let all = leaves.zip(&event.given).map(|((id, l), given)| {
        let put = put(record, l, *given, event, uses.is_count(id))?;
        if record.tag.is_some() { Ok(put) } else { element(l, put) }
    });
    all.collect()
}

fn put(record: &Record, l: &Leaf, given: Given, event: &Event, is_count: bool) -> Result<Put, String> {
    let name = emitters::named(l);
    Ok(match given {
        Given::Constant(value) => match (&l.interpretation, &l.width) {
            (Interpretation::None, Width::Number(width)) => Put::Constant(value, *width),
            (Interpretation::BaseOffset(base), Width::Number(width)) => {
                Put::Constant(value.wrapping_sub(*base), *width)
            }
            (Interpretation::Default(_) | Interpretation::Stride { .. }, _) => Put::Constant(0, 0),
            _ => return Err(format!("the stored value of the constant `{name}` depends on the previous record")),
        },
        Given::Length(data) => {
            let given = usize::from(data.0).checked_sub(first(record)).and_then(|at| event.given.get(at));
            match given {
                Some(Given::Argument(index)) if leaf(record, data).is_some_and(|l| !l.is_numeric()) => {
                    Put::Length(*index)
                }
                Some(Given::OwnText) => Put::OwnLength,
                _ => return Err(format!("`{name}` is the length of a field that is neither a string nor bytes")),
            }
        }
        Given::Computed => Put::Computed,
        Given::Argument(index) => match (&l.width, l.interpretation) {
            (Width::Until(end), _) => Put::Until(index, *end),
            (Width::Variable(_), _) if !has_length(event, record, l) => Put::Measured(index),
            (_, Interpretation::SectionOffset(_)) => Put::Reference(index),
            _ => match event.fields.get(index).map_or(Machine::Bool, |argument| argument.machine) {
                Machine::Unsigned(_) if is_count => Put::Count(index),
                machine => Put::Argument(index, machine),
            },
        },
        Given::Clock => Put::Clock,
        Given::Thread => Put::Thread,
        Given::Process => Put::Process,
        Given::Own => Put::Own,
        Given::OwnId => Put::OwnId,
        Given::OwnText => Put::OwnText,
    })
}

/// Returns whether a leaf stores only the length of this byte array.
fn has_length(event: &Event, record: &Record, data: &Leaf) -> bool {
    let is_data = |id: LeafId| leaf(record, id).is_some_and(|l| std::ptr::eq(l, data));
    event.given.iter().any(|given| matches!(given, Given::Length(id) if is_data(*id)))
}

/// Returns the data to write for a leaf of an element, whose encoding no metadata can change.
fn element(l: &Leaf, put: Put) -> Result<Put, String> {
    let name = emitters::named(l);
    let width = match l.width {
        Width::Number(width) => width,
        _ => 0,
    };
    let encoded = |index, machine, base, width| {
        let is_signed = matches!(l.interpretation, Interpretation::BaseOffset(_));
        Put::Encoded(
            index,
            Encoding { machine, base, width, is_signed, is_reference: matches!(put, Put::Reference(_)) },
        )
    };
    match (put, l.interpretation) {
        (Put::Clock | Put::Thread | Put::Process, _) => {
            Err(format!("`{name}` has a `source`, but an element does not belong to an event"))
        }
        (Put::Length(index), Interpretation::None) => Ok(Put::EncodedLength(index, width)),
        (Put::Argument(_, machine), _) if !machine.is_number() => Ok(put),
        (Put::Argument(index, machine), Interpretation::None) => Ok(encoded(index, machine, 0, width)),
        (Put::Argument(index, machine), Interpretation::BaseOffset(base)) => Ok(encoded(index, machine, base, width)),
        (Put::Argument(index, machine), Interpretation::Default(value)) => Ok(encoded(index, machine, value, 0)),
        (Put::Count(index), Interpretation::None) => Ok(encoded(index, Machine::Unsigned(64), 0, width)),
        (Put::Reference(index), _) => Ok(encoded(index, Machine::Id, 0, width)),
        (Put::Argument(..) | Put::Count(_) | Put::Length(_), _) => {
            Err(format!("the stored value of `{name}` depends on the previous element"))
        }
        _ => Ok(put),
    }
}

/// Returns the number of bytes in which a number is stored, and whether the number is signed. The base of signed
/// numbers is 0.
pub(crate) fn stored(put: Put) -> Option<(u8, bool)> {
    Some(match put {
        Put::Argument(_, Machine::Unsigned(bits)) => (bits / 8, false),
        Put::Argument(_, Machine::Signed(bits)) => (bits / 8, bits < 64),
        Put::Argument(_, Machine::Bool) => (1, false),
        Put::Argument(_, Machine::F32 | Machine::F64) | Put::Clock | Put::Own => (8, false),
        Put::Argument(_, Machine::Text | Machine::Bytes | Machine::Array(_))
        | Put::Constant(..)
        | Put::OwnText
        | Put::Computed
        | Put::Measured(_)
        | Put::Until(..)
        | Put::Encoded(..)
        | Put::EncodedLength(..) => return None,
        Put::Length(_) | Put::OwnLength => (2, false),
        Put::Argument(_, Machine::Id) | Put::Thread | Put::Process | Put::OwnId | Put::Count(_) | Put::Reference(_) => {
            (4, false)
        }
    })
}

/// Returns the maximum number of bytes of a leaf of a plain record.
fn most(put: Put) -> usize {
    match put {
        Put::Constant(_, width) => usize::from(width),
        Put::Argument(_, Machine::Text) | Put::OwnText => 255,
        Put::Argument(_, Machine::Bytes) => 1024,
        Put::Argument(_, Machine::Array(bytes)) => usize::try_from(bytes).unwrap_or(usize::MAX),
        other => stored(other).map_or(0, |(width, _)| usize::from(width)),
    }
}

/// Returns the metadata records that set the widths of a record's leaves.
fn settings(dtd: &Dtd, metadata: u32, record: &Record, tag: u32, leaves: &[Put]) -> Vec<u8> {
    let mut out = Vec::new();
    for ((leaf, l), put) in (0..=u8::MAX).zip(&record.leaves).skip(first(record)).zip(leaves) {
        let Some((width, is_signed)) = stored(*put) else { continue };
        let wanted = match put {
            Put::Reference(_) => l.interpretation,
            _ if is_signed => Interpretation::BaseOffset(0),
            _ => Interpretation::None,
        };
        Setting { tag_width: dtd.tag_width, metadata, record: tag, leaf }.write(l, width, wanted, &mut out);
    }
    out
}

/// A leaf whose width and interpretation are set (section 4.1 of the specification).
struct Setting {
    tag_width: u8,
    metadata: u32,
    record: u32,
    leaf: u8,
}

impl Setting {
    /// Writes the metadata records that set a leaf's width and then its interpretation. Settings that equal the DTD's
    /// settings are not written.
    fn write(&self, l: &Leaf, width: u8, wanted: Interpretation, out: &mut Vec<u8>) {
        if l.width != Width::Number(width) {
            self.record(0x10, &[width], out);
        }
        if l.interpretation != wanted {
            let is_signed = wanted == Interpretation::BaseOffset(0);
            if is_signed { self.record(0x12, &[0], out) } else { self.record(1, &[], out) }
        }
    }

    fn record(&self, property: u8, value: &[u8], out: &mut Vec<u8>) {
        for tag in [self.metadata, self.record] {
            out.extend(tag.to_le_bytes().iter().take(usize::from(self.tag_width)));
        }
        out.extend([self.leaf, property]);
        out.extend(value);
    }
}
