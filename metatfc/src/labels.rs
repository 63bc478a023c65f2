//! Labels of addresses and strings with numbers, as defined by field roles, for `dump --resolve` and `postmortem`.

use metatf::dynamic::{Entry, Item, JsonOptions, Nested, OwnedRecord, Schema, Trace, print_json};
use metatf::reader::{At, Event};
use metatf_parser::schema::Leaf;
use metatf_tools::roles::{self, Place, Role};
use std::collections::HashMap;

/// The strings and labels defined by earlier records.
pub(crate) struct Labels {
    /// The positions of strings and labels in each record type.
    kinds: Vec<Kind>,
    /// The strings, by process and number.
    strings: HashMap<(u64, u64), String>,
    /// The number of the string that labels each address, by process and address.
    labels: HashMap<(u64, u64), u64>,
}

/// The labels that apply to a record, which depend on its process.
#[derive(Clone, Copy)]
pub(crate) struct OfRecord<'l> {
    labels: &'l Labels,
    process: u64,
}

/// The positions of a string or label in the values of a record.
#[derive(Clone, Default)]
struct Kind {
    process: Option<Place>,
    id: Option<Place>,
    string: Option<Place>,
    labelled: Option<Place>,
}

impl Labels {
    /// Returns an empty label table for a schema, or `None` if none of its records define strings or labels.
    pub(crate) fn new(schema: &Schema) -> Option<Self> {
        let kinds: Vec<Kind> = schema.dtd.records.iter().map(Kind::new).collect();
        let labels = Self { kinds, strings: HashMap::new(), labels: HashMap::new() };
        labels.kinds.iter().any(|kind| kind.learns()).then_some(labels)
    }

    /// Returns whether records of this type define strings or labels.
    pub(crate) fn needs(&self, record: u16) -> bool {
        self.kinds.get(usize::from(record)).is_some_and(Kind::learns)
    }

    /// Stores the string or label that a record defines.
    pub(crate) fn learn(&mut self, schema: &Schema, record: u16, owned: &OwnedRecord) {
        let Some(kind) = self.kinds.get(usize::from(record)).filter(|kind| kind.learns()) else { return };
        let number = |place: &Option<Place>| place.as_ref()?.number(owned);
        let Some(id) = number(&kind.id) else { return };
        let process = number(&kind.process).unwrap_or(0);
        if let Some(address) = number(&kind.labelled) {
            self.labels.insert((process, address), id);
        }
        if let Some(Item::Bytes(bytes)) = kind.string.as_ref().and_then(|place| place.value(owned)) {
            let leaf = schema.record(record).and_then(|r| r.leaf(roles::first(r, Role::String)?));
            let tail = leaf.map_or(0, |leaf| leaf.format.tail_of_bytes(bytes).len());
            let text = bytes.get(..bytes.len() - tail).unwrap_or_default();
            self.strings.insert((process, id), String::from_utf8_lossy(text).into_owned());
        }
    }

    /// Returns the labels and strings that may apply to the numbers in a record.
    pub(crate) fn of_record(&self, record: u16, owned: &OwnedRecord) -> OfRecord<'_> {
        let place = self.kinds.get(usize::from(record)).and_then(|kind| kind.process.as_ref());
        OfRecord { labels: self, process: place.and_then(|place| place.number(owned)).unwrap_or(0) }
    }

    /// Prints a record as JSON, including its strings and labels, and the elements that it refers to by offset.
    pub(crate) fn print_json(
        &self,
        trace: &mut Trace<'_>,
        at: At,
        out: &mut Vec<u8>,
        options: JsonOptions,
    ) -> metatf::Result<()> {
        let (schema, owned, start) = (trace.schema().clone(), trace.record().clone(), out.len());
        let (record, labels) = (schema.record(at.record), self.of_record(at.record, &owned));
        let entry = Entry { event: Event::Record(at), record: &owned };
        let mut nested = Nested::new(trace.reader().order());
        let printed = print_json(out, &schema, entry, options, &mut nested, &mut |id, number, out| {
            let leaf = record.and_then(|record| record.leaf(id));
            let Some((key, text)) = leaf.and_then(|leaf| labels.of(at.record, leaf, number)) else {
                return trace.resolve(at, id, number, out);
            };
            let text = serde_json::to_string(text).unwrap_or_default();
            out.extend_from_slice(format!("{{\"value\":{number},\"{key}\":{text}}}").as_bytes());
            Ok(true)
        });
        if printed.is_err() {
            out.truncate(start);
        }
        printed
    }
}

impl<'l> OfRecord<'l> {
    /// Returns the label of an address or the string of a number, with its key in JSON lines. Returns `None` if there
    /// is no label or string, or if the record itself contains the string.
    pub(crate) fn of(self, record: u16, leaf: &Leaf, number: u64) -> Option<(&'static str, &'l str)> {
        let Self { labels: Labels { labels, strings, kinds }, process } = self;
        let (key, id) = match roles::of(leaf)? {
            Role::Address | Role::Labelled => ("label", *labels.get(&(process, number))?),
            Role::StringId if kinds.get(usize::from(record))?.string.is_none() => ("string", number),
            _ => return None,
        };
        strings.get(&(process, id)).map(|text| (key, text.as_str()))
    }
}

impl Kind {
    fn new(record: &metatf_parser::schema::Record) -> Self {
        let place = |role| Place::of(record, roles::first(record, role)?);
        let (process, id) = (place(Role::Process), place(Role::StringId));
        Self { process, id, string: place(Role::String), labelled: place(Role::Labelled) }
    }

    fn learns(&self) -> bool {
        self.id.is_some() && (self.string.is_some() || self.labelled.is_some())
    }
}
