//! The layout of stored events: the width of each leaf in bytes, and the metadata at the start of a chunk that sets
//! these widths.

use metatf_parser::schema::{COMMENT, Dtd, Interpretation, Leaf, METADATA, Record, RecordId, Width};

use super::nested::Nested;
use super::put::{Put, most, puts, stored};
use super::types::Types;
use crate::docs;
use crate::emitters::{self, Argument, Emitters, Event, Machine, Missing, first};
use crate::names::Scope;
use crate::options::{OptionError, Options};

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

/// Names used in the functions of all events.
const OWN_NAMES: &[&str] = &["emitter", "at"];

impl Layout {
    /// Lays out the events. `parts` are the parts of the code whose names are in use.
    pub(crate) fn of(dtd: &Dtd, emitters: &Emitters, options: &Options, parts: &[&str]) -> Result<Self, OptionError> {
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
        let mut types = Types::of(emitters, parts);
        for element in &emitters.tables {
            let made = layout.event(dtd, element, metadata, &mut types);
            if made.is_none() {
                types.tables.retain(|(section, _)| *section != element.section);
            }
            layout.tables.extend(made);
        }
        for event in &emitters.events {
            let made = layout.event(dtd, event, metadata, &mut types);
            layout.events.extend(made);
        }
        let mut own =
            |event: &Option<Event>| event.as_ref().and_then(|event| layout.event(dtd, event, metadata, &mut types));
        let (dropped, clock_sync, intern) = (own(&emitters.dropped), own(&emitters.clock_sync), own(&emitters.intern));
        (layout.dropped, layout.clock_sync, layout.intern) = (dropped, clock_sync, intern);
        if !layout.without.is_empty() && !options.allow_missing {
            let all: Vec<_> = layout.without.iter().map(ToString::to_string).collect();
            return Err(OptionError(format!(
                "cannot generate an emitter for {}; to omit such records, set `allow_missing` (--allow-missing)",
                all.join(", ")
            )));
        }
        if layout.events.is_empty() {
            return Err(OptionError("the DTD has no record that a program can emit".to_owned()));
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
