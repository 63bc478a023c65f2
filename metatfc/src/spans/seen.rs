//! What records say of spans, by annotations of the DTD.

use crate::roles::{self, Place, Role};
use metatf::dynamic::{Item, OwnedRecord, Schema};
use metatf_parser::schema::{LeafId, Record};

/// What a record does to a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Begin,
    End,
    Enter,
    Leave,
}

/// Where a record has what: places in its owned records.
struct Kind {
    does: Option<Does>,
    /// What the annotation calls the span, or else the record's name.
    name: String,
    /// The annotation names it.
    is_named: bool,
    /// And the nanoseconds in its unit.
    time: Option<(Place, u64)>,
    process: Option<Place>,
    thread: Option<Place>,
    span: Option<Place>,
    string_id: Option<Place>,
    string: Option<(Place, LeafId)>,
}

/// The kinds of a schema's records.
pub(super) struct Kinds(Vec<Kind>);

/// What one record says.
pub(super) struct Seen<'a> {
    pub(super) does: Option<Does>,
    pub(super) name: &'a str,
    pub(super) is_named: bool,
    /// In nanoseconds.
    pub(super) time: Option<u64>,
    /// 1 where the DTD tells none apart.
    pub(super) process: u64,
    pub(super) thread: u64,
    pub(super) span: Option<u64>,
    pub(super) string_id: Option<u64>,
    pub(super) string: Option<String>,
}

impl Kinds {
    pub(super) fn new(schema: &Schema) -> Self {
        Self(schema.dtd.records.iter().map(Kind::new).collect())
    }

    /// Returns whether any record begins a span.
    pub(super) fn have_spans(&self) -> bool {
        self.0.iter().any(|kind| kind.does == Some(Does::Begin))
    }

    /// Reads a record; `None` of one that says nothing here.
    pub(super) fn seen(&self, schema: &Schema, record: u16, owned: &OwnedRecord) -> Option<Seen<'_>> {
        let kind = self.0.get(usize::from(record))?;
        let number = |place: Place| place.number(owned);
        let text = |(place, id): (Place, LeafId)| match place.value(owned)? {
            Item::Bytes(bytes) => {
                let tail = schema.record(record)?.leaf(id)?.format.tail_of_bytes(bytes).len();
                Some(String::from_utf8_lossy(bytes.get(..bytes.len() - tail)?).into_owned())
            }
            Item::Number(_) => None,
        };
        let time = kind.time.and_then(|(place, unit)| Some(number(place)?.saturating_mul(unit)));
        let string = kind.string.and_then(text);
        if kind.does.is_none() && time.is_none() && string.is_none() {
            return None;
        }
        Some(Seen {
            does: kind.does,
            name: &kind.name,
            is_named: kind.is_named,
            time,
            process: kind.process.and_then(number).unwrap_or(1),
            thread: kind.thread.and_then(number).unwrap_or(0),
            span: kind.span.and_then(number),
            string_id: kind.string_id.and_then(number),
            string,
        })
    }
}

impl Kind {
    fn new(record: &Record) -> Self {
        let place = |role| Place::of(record, roles::first(record, role)?);
        let tag = record.leaves.iter().find(|leaf| leaf.is_tag());
        let span = tag.and_then(|tag| tag.annotations.get("span")).map(|text| text.trim_matches('"'));
        let (does, named) = span.map_or((None, None), |text| {
            let (word, name) = text.split_once(' ').map_or((text, None), |(word, name)| (word, Some(name.trim())));
            let does = match word {
                "begin" => Some(Does::Begin),
                "end" => Some(Does::End),
                "enter" => Some(Does::Enter),
                "leave" => Some(Does::Leave),
                _ => None,
            };
            (does, name)
        });
        let time = roles::first(record, Role::Time).and_then(|id| {
            // One of no unit, or of one that is not known.
            Some((Place::of(record, id)?, record.leaf(id)?.nanoseconds().unwrap_or(1)))
        });
        let string = roles::first(record, Role::String).and_then(|id| Some((Place::of(record, id)?, id)));
        Self {
            does,
            name: named.unwrap_or(&record.name).to_owned(),
            is_named: named.is_some(),
            time,
            process: place(Role::Process),
            thread: place(Role::Thread),
            span: place(Role::Span),
            string_id: place(Role::StringId),
            string,
        }
    }
}
