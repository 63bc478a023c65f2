//! The layout of stored events: the width of each leaf in bytes, and the metadata at the start of a chunk that sets
//! these widths.

use metatf_parser::schema::{COMMENT, Dtd, Interpretation, Leaf, METADATA, Record, RecordId, Width};

use crate::docs;
use crate::emitters::{self, Argument, Emitters, Event, Given, Machine, Missing};
use crate::names::Scope;
use crate::options::{OptionError, Options};
use crate::uses::leaf;

/// All events, grouped by section.
pub(crate) struct Layout {
    pub(crate) sections: Vec<Stored>,
    pub(crate) events: Vec<EventC>,
    pub(crate) dropped: Option<EventC>,
    pub(crate) clock_sync: Option<EventC>,
    pub(crate) intern: Option<EventC>,
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
            tag_width: dtd.tag_width,
            comment,
            without: emitters.without.clone(),
        };
        for event in &emitters.events {
            let made = layout.event(dtd, event, metadata);
            layout.events.extend(made);
        }
        layout.dropped = emitters.dropped.as_ref().and_then(|event| layout.event(dtd, event, metadata));
        layout.clock_sync = emitters.clock_sync.as_ref().and_then(|event| layout.event(dtd, event, metadata));
        layout.intern = emitters.intern.as_ref().and_then(|event| layout.event(dtd, event, metadata));
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

    fn event(&mut self, dtd: &Dtd, event: &Event, metadata: u32) -> Option<EventC> {
        let section = dtd.sections.iter().find(|section| section.number == event.section)?;
        let (_, record) = dtd.tagged(section, event.tag)?;
        let mut bytes = Vec::new();
        let mut leaves = Vec::new();
        for (index, (l, given)) in (1..=u8::MAX).zip(record.leaves.iter().skip(1).zip(&event.given)) {
            let Some(put) = put(record, l, *given, event) else {
                let name = emitters::named(l);
                let reason = match given {
                    Given::Constant(_) => {
                        format!("the stored value of the constant `{name}` depends on the previous record")
                    }
                    _ => format!("`{name}` is the length of a field that is neither a string nor bytes"),
                };
                self.without.push(Missing { record: record.name.clone(), reason });
                return None;
            };
            leaves.push(put);
            if let Some((width, is_signed)) = stored(put) {
                let setting = Setting { tag_width: dtd.tag_width, metadata, record: event.tag, leaf: index };
                setting.write(l, width, is_signed, &mut bytes);
            }
        }
        let section = self.sections.iter().position(|known| known.number == event.section).unwrap_or_else(|| {
            self.sections.push(Stored { number: event.section, metadata: Vec::new() });
            self.sections.len() - 1
        });
        if let Some(stored) = self.sections.get_mut(section) {
            stored.metadata.extend(bytes);
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
            names: record.leaves.iter().skip(1).map(emitters::named).collect(),
            record: record.name.clone(),
        })
    }

    /// Returns the maximum size of an event.
    pub(crate) fn most(&self, event: &EventC) -> usize {
        usize::from(self.tag_width) + event.leaves.iter().map(|put| most(*put)).sum::<usize>()
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

fn put(record: &Record, l: &Leaf, given: Given, event: &Event) -> Option<Put> {
    Some(match given {
        Given::Constant(value) => match (&l.interpretation, &l.width) {
            (Interpretation::None, Width::Number(width)) => Put::Constant(value, *width),
            (Interpretation::BaseOffset(base), Width::Number(width)) => {
                Put::Constant(value.wrapping_sub(*base), *width)
            }
            (Interpretation::Default(_) | Interpretation::Stride { .. }, _) => Put::Constant(0, 0),
            // The stored value depends on the previous record.
            _ => return None,
        },
        Given::Length(data) => match event.given.get(usize::from(data.0).checked_sub(1)?)? {
            Given::Argument(index) if !leaf(record, data)?.is_numeric() => Put::Length(*index),
            Given::OwnText => Put::OwnLength,
            _ => return None,
        },
        Given::Argument(index) => Put::Argument(index, event.fields.get(index)?.machine),
        Given::Clock => Put::Clock,
        Given::Thread => Put::Thread,
        Given::Process => Put::Process,
        Given::Own => Put::Own,
        Given::OwnId => Put::OwnId,
        Given::OwnText => Put::OwnText,
    })
}

/// Returns the number of bytes in which a number is stored, and whether the number is signed. The base of signed
/// numbers is 0.
pub(crate) fn stored(put: Put) -> Option<(u8, bool)> {
    Some(match put {
        Put::Argument(_, Machine::Unsigned(bits)) => (bits / 8, false),
        Put::Argument(_, Machine::Signed(bits)) => (bits / 8, bits < 64),
        Put::Argument(_, Machine::Bool) => (1, false),
        Put::Argument(_, Machine::F32 | Machine::F64) | Put::Clock | Put::Own => (8, false),
        Put::Argument(_, Machine::Text | Machine::Bytes | Machine::Array(_)) | Put::Constant(..) | Put::OwnText => {
            return None;
        }
        Put::Length(_) | Put::OwnLength => (2, false),
        Put::Argument(_, Machine::Id) | Put::Thread | Put::Process | Put::OwnId => (4, false),
    })
}

fn most(put: Put) -> usize {
    match put {
        Put::Constant(_, width) => usize::from(width),
        Put::Argument(_, Machine::Text) | Put::OwnText => 255,
        Put::Argument(_, Machine::Bytes) => 1024,
        Put::Argument(_, Machine::Array(bytes)) => usize::from(bytes),
        other => stored(other).map_or(0, |(width, _)| usize::from(width)),
    }
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
    fn write(&self, l: &Leaf, width: u8, is_signed: bool, out: &mut Vec<u8>) {
        let wanted = if is_signed { Interpretation::BaseOffset(0) } else { Interpretation::None };
        if l.width != Width::Number(width) {
            self.record(0x10, &[width], out);
        }
        if l.interpretation != wanted {
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
