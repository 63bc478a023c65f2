//! The effect of records on spans, as defined by annotations in the DTD.

use super::values::{self, Value, Values};
use crate::fields;
use crate::roles::{self, Place, Role};
use metatf::dynamic::{Item, OwnedRecord, Schema};
use metatf_parser::schema::{ExprOp, Leaf, LeafId, Record, Width};
use std::collections::HashSet;
use std::sync::Arc;

/// The effect of a record on spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Begins a span.
    Begin,
    /// Ends a span.
    End,
    /// Makes its thread enter a span.
    Enter,
    /// Makes its thread leave a span.
    Leave,
    /// Adds its values, and the values in the records after it, to a span that has begun.
    More,
    /// Is an event; the values in the records after it belong to the event.
    Event,
    /// Adds a value to the last item that its thread wrote.
    Value,
    /// Makes a span follow from another span, which is stored as the parent.
    Follows,
}

/// The words of the `span` annotation.
const WORDS: [(&str, Does); 8] = [
    ("begin", Does::Begin),
    ("end", Does::End),
    ("enter", Does::Enter),
    ("leave", Does::Leave),
    ("values", Does::More),
    ("event", Does::Event),
    ("value", Does::Value),
    ("follows", Does::Follows),
];

/// The positions of a record type's fields in its owned records.
#[derive(Debug)]
struct Kind {
    does: Option<Does>,
    /// The span's name in the annotation, or else the record's name.
    name: Arc<str>,
    /// Whether the annotation contains the name.
    is_named: bool,
    /// Whether spans of this kind are numbered separately.
    has_own_numbers: bool,
    /// The position of the time, and the number of nanoseconds per unit.
    time: Option<(Place, u64)>,
    process: Option<Place>,
    thread: Option<Place>,
    span: Option<Place>,
    parent: Option<Place>,
    string_id: Option<Place>,
    string: Option<(Place, LeafId)>,
    thread_name: Option<(Place, LeafId)>,
    level: Option<(Place, LeafId)>,
    target: Option<(Place, LeafId)>,
    file: Option<(Place, LeafId)>,
    line: Option<Place>,
    fields: Option<(Place, LeafId)>,
    field: Option<Place>,
    value: Option<(Place, LeafId)>,
    /// The fields without a role.
    values: Vec<(Arc<str>, Place, LeafId)>,
}

/// The kinds of a schema's records. See the [module](crate::spans) for an example.
#[derive(Debug)]
pub struct Kinds {
    kinds: Vec<Kind>,
    /// Whether values are requested.
    with_values: bool,
}

/// A severity level; a smaller number is more severe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The number in the trace.
    pub number: u64,
    /// The level's name, or else its number.
    pub name: String,
}

/// The origin of a span or an event in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The severity.
    pub level: Option<Level>,
    /// The part of the program.
    pub target: Option<String>,
    /// The source file.
    pub file: Option<String>,
    /// The line in the source file.
    pub line: Option<u64>,
    /// The field names, by number.
    pub fields: Vec<Arc<str>>,
}

/// The information in one record.
#[derive(Debug)]
pub struct Seen<'a> {
    pub(super) does: Option<Does>,
    pub(super) name: &'a Arc<str>,
    pub(super) is_named: bool,
    /// The kind of span that the number counts; `None` if all kinds share their numbers, or if the record does not name
    /// a kind.
    pub(super) kind: Option<&'a Arc<str>>,
    /// The time in nanoseconds.
    pub(super) time: Option<u64>,
    /// The process number, or 1 if the DTD does not identify processes.
    pub(super) process: u64,
    pub(super) thread: u64,
    pub(super) span: Option<u64>,
    /// The parent span. 0 denotes the span that the thread is in, and a number with all bits set denotes no parent.
    pub(super) parent: Option<u64>,
    pub(super) string_id: Option<u64>,
    pub(super) string: Option<String>,
    pub(super) thread_name: Option<String>,
    pub(super) place: Option<Arc<Origin>>,
    /// The number of a field, and its value.
    pub(super) value: Option<(u64, Value)>,
    pub(super) values: Values,
}

impl Kinds {
    /// Reads the annotations of a schema. Field values are read only if `with_values` is set.
    #[must_use]
    pub fn new(schema: &Schema, with_values: bool) -> Self {
        let mut kinds: Vec<_> = schema.dtd.records.iter().map(Kind::new).collect();
        // If an end names a kind of span, this kind is numbered separately.
        let does = |kind: &Kind, what: Does| kind.does == Some(what) && kind.span.is_some();
        let begun: HashSet<_> = kinds.iter().filter(|kind| does(kind, Does::Begin)).map(|kind| &kind.name).collect();
        let ends = kinds.iter().filter(|kind| kind.is_named && does(kind, Does::End) && begun.contains(&kind.name));
        let ended: HashSet<_> = ends.map(|kind| Arc::clone(&kind.name)).collect();
        for kind in &mut kinds {
            let names_a_kind = kind.is_named || kind.does == Some(Does::Begin);
            kind.has_own_numbers = names_a_kind && ended.contains(&kind.name);
        }
        Self { kinds, with_values }
    }

    /// Returns whether any record begins a span.
    #[must_use]
    pub fn have_spans(&self) -> bool {
        self.have(Does::Begin)
    }

    /// Returns whether any record has this effect.
    #[must_use]
    pub fn have(&self, does: Does) -> bool {
        self.kinds.iter().any(|kind| kind.does == Some(does))
    }

    /// Returns whether any record contains a field with this role.
    #[must_use]
    pub fn have_role(&self, schema: &Schema, role: Role) -> bool {
        let mut kinds = self.kinds.iter().zip(&schema.dtd.records).filter(|(kind, _)| kind.says_something());
        kinds.any(|(_, record)| roles::first(record, role).is_some())
    }

    /// Returns whether records with this index affect spans. Other records need not be decoded.
    #[must_use]
    pub fn need(&self, record: u16) -> bool {
        let is_wanted = |kind: &Kind| match kind.does {
            Some(Does::Value) => self.with_values || kind.string.is_some() || kind.thread_name.is_some(),
            _ => kind.says_something(),
        };
        self.kinds.get(usize::from(record)).is_some_and(is_wanted)
    }

    /// Reads a record. Returns `None` if the record does not affect spans.
    #[must_use]
    pub fn seen(&self, schema: &Schema, record: u16, owned: &OwnedRecord) -> Option<Seen<'_>> {
        let kind = self.kinds.get(usize::from(record))?;
        let leaf = |id: LeafId| schema.record(record)?.leaf(id);
        let number = |place: &Place| place.number(owned);
        let text = |(place, id): &(Place, LeafId)| match place.value(owned)? {
            Item::Bytes(bytes) => {
                let tail = leaf(*id)?.format.tail_of_bytes(bytes).len();
                Some(String::from_utf8_lossy(bytes.get(..bytes.len() - tail)?).into_owned())
            }
            Item::Number(_) => None,
        };
        let time = kind.time.as_ref().and_then(|(place, unit)| Some(number(place)?.saturating_mul(*unit)));
        let string = kind.string.as_ref().and_then(text);
        let thread_name = kind.thread_name.as_ref().and_then(text);
        if kind.does.is_none() && time.is_none() && string.is_none() && thread_name.is_none() {
            return None;
        }
        let value = |place: &Place, id: LeafId| Some(values::value(leaf(id)?, place.value(owned)?));
        let with_values = self.with_values;
        let values = kind.values.iter().filter(|_| with_values);
        Some(Seen {
            does: kind.does,
            name: &kind.name,
            is_named: kind.is_named,
            kind: kind.has_own_numbers.then_some(&kind.name),
            time,
            process: kind.process.as_ref().and_then(number).unwrap_or(1),
            thread: kind.thread.as_ref().and_then(number).unwrap_or(0),
            span: kind.span.as_ref().and_then(number),
            parent: kind.parent.as_ref().and_then(number),
            string_id: kind.string_id.as_ref().and_then(number),
            string,
            thread_name,
            place: kind.has_origin().then(|| {
                let level = kind.level.as_ref().and_then(|(place, id)| Some(Level::new(leaf(*id)?, number(place)?)));
                let fields = kind.fields.as_ref().and_then(text).unwrap_or_default();
                Arc::new(Origin {
                    level,
                    target: kind.target.as_ref().and_then(text),
                    file: kind.file.as_ref().and_then(text).filter(|file| !file.is_empty()),
                    line: kind.line.as_ref().and_then(number),
                    fields: fields.split(',').map(Arc::from).collect(),
                })
            }),
            value: kind
                .value
                .as_ref()
                .filter(|_| with_values)
                .and_then(|(place, id)| Some((kind.field.as_ref().and_then(number).unwrap_or(0), value(place, *id)?))),
            values: Values::new(
                values.filter_map(|(name, place, id)| Some((name.clone(), value(place, *id)?))).collect(),
            ),
        })
    }
}

impl Level {
    fn new(leaf: &Leaf, number: u64) -> Self {
        let name = leaf.names.text(number).map_or_else(|| number.to_string(), std::borrow::Cow::into_owned);
        Self { number, name }
    }
}

impl Kind {
    fn new(record: &Record) -> Self {
        let place = |role| Place::of(record, roles::first(record, role)?);
        let with_leaf = |role| {
            let id = roles::first(record, role)?;
            Some((Place::of(record, id)?, id))
        };
        let tag = record.leaves.iter().find(|leaf| leaf.is_tag());
        let span = tag.and_then(|tag| roles::annotation(tag, "span"));
        let (does, named) = span.map_or((None, None), |text| {
            let (word, name) = text.split_once(' ').map_or((text, None), |(word, name)| (word, Some(name.trim())));
            (WORDS.iter().find(|(known, _)| *known == word).map(|(_, does)| *does), name)
        });
        // This record relates clocks to each other and is not an event.
        let is_clock = tag.and_then(|tag| roles::annotation(tag, "source")) == Some("clock_sync");
        let time = with_leaf(Role::Time).filter(|_| !is_clock).and_then(|(place, id)| {
            // If the unit is missing or unknown, assume nanoseconds.
            Some((place, record.leaf(id)?.nanoseconds().unwrap_or(1)))
        });
        Self {
            does,
            name: named.unwrap_or(&record.name).into(),
            is_named: named.is_some(),
            has_own_numbers: false,
            time,
            process: place(Role::Process),
            thread: place(Role::Thread),
            span: place(Role::Span),
            parent: place(Role::Parent),
            string_id: place(Role::StringId),
            string: with_leaf(Role::String),
            thread_name: with_leaf(Role::ThreadName),
            level: with_leaf(Role::Level),
            target: with_leaf(Role::Target),
            file: with_leaf(Role::File),
            line: place(Role::Line),
            fields: with_leaf(Role::Fields),
            field: place(Role::Field),
            value: with_leaf(Role::Value),
            values: values_of(record),
        }
    }

    /// Returns whether records of this kind have any effect.
    fn says_something(&self) -> bool {
        self.does.is_some() || self.time.is_some() || self.string.is_some() || self.thread_name.is_some()
    }

    fn has_origin(&self) -> bool {
        self.level.is_some() || self.target.is_some() || self.file.is_some()
    }
}

/// Returns the fields to show with a record. These fields have no role and are neither constant nor the length of
/// another field.
fn values_of(record: &Record) -> Vec<(Arc<str>, Place, LeafId)> {
    let is_length = |id: LeafId| {
        record.leaves.iter().any(|leaf| {
            matches!(&leaf.width, Width::Variable(expr) if expr.0.iter().any(|op| matches!(op, ExprOp::Leaf(of) if *of == id)))
        })
    };
    fields::names(record)
        .into_iter()
        .filter_map(|(id, name)| {
            let leaf = record.leaf(id)?;
            // An address that another record labels is shown as a value.
            let has_role = !matches!(roles::of(leaf), None | Some(Role::Address | Role::Labelled));
            (!has_role && fields::is_shown(leaf, false) && !is_length(id)).then_some(())?;
            Some((name.into(), Place::of(record, id)?, id))
        })
        .collect()
}
