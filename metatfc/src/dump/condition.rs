//! Conditions on records.

use std::convert::Infallible;
use std::sync::Arc;

use metatf::container::{TimeLeaf, TimeRange};
use metatf::dynamic::{Item, OwnedRecord, Schema};
use metatf::format::{Format, Record, Steps};
use metatf::reader::At;
use metatf_parser::schema;
use metatf_tools::condition::{self, Fields, Kinds, Row, Value, integer, leaf_number};

use crate::failure::{Failure, Result};
use crate::fields;

/// A condition on the records of a trace.
#[derive(Clone)]
pub(crate) struct Condition {
    condition: Arc<condition::Condition<Field>>,
    format: Arc<Format>,
    schema: Arc<schema::Dtd>,
    /// The leaf of each value of the current record.
    leaves: Vec<u8>,
}

/// A field named in a condition.
enum Field {
    Section,
    Record,
    Offset,
    /// The leaves with this name in each record.
    Leaves(Vec<Vec<u8>>),
}

impl Condition {
    pub(crate) fn new(schema: &Schema, text: &str) -> Result<Self> {
        let condition = condition::Condition::parse(text, &RecordFields(&schema.dtd))
            .map_err(|error| Failure::Usage(format!("--where: {error}")))?;
        let (format, schema) = (Arc::clone(&schema.format), Arc::clone(&schema.dtd));
        Ok(Self { condition: Arc::new(condition), format, schema, leaves: Vec::new() })
    }

    /// Returns the times of the data records for which the condition can hold, or `None` if it does not limit the values
    /// of these leaves.
    pub(crate) fn times(&self, leaves: &[TimeLeaf]) -> Option<TimeRange> {
        let fields = RecordFields(&self.schema);
        let named = |field: &Field, text: &str| {
            let mut numbers = fields.leaves(field).map(|leaf| leaf_number(leaf, text));
            let first = numbers.next()??;
            numbers.all(|number| number == Some(first)).then_some(first)
        };
        let times = self.condition.times(&|field| fields.are_times(field, leaves), &named);
        (times != TimeRange::ALL).then_some(times)
    }

    /// Returns whether the condition holds for a record.
    pub(crate) fn holds(&mut self, at: At, owned: &OwnedRecord) -> bool {
        let Some(record) = self.format.records.get(usize::from(at.record)) else { return false };
        self.leaves.clear();
        order(record, owned, &mut self.leaves);
        self.condition.holds(&RecordRow { schema: &self.schema, leaves: &self.leaves, at, owned })
    }
}

/// The fields of the data records of a DTD.
struct RecordFields<'d>(&'d schema::Dtd);

impl RecordFields<'_> {
    fn leaves<'f>(&'f self, field: &'f Field) -> impl Iterator<Item = &'f schema::Leaf> {
        let records = if let Field::Leaves(records) = field { records.as_slice() } else { &[] };
        let records = records.iter().zip(&self.0.records);
        records.flat_map(|(ids, record)| ids.iter().filter_map(|&id| record.leaves.get(usize::from(id))))
    }
}

impl RecordFields<'_> {
    /// Returns whether all data records contain only times in these leaves under the name of the field.
    fn are_times(&self, field: &Field, times: &[TimeLeaf]) -> bool {
        let Field::Leaves(records) = field else { return false };
        let sections = self.0.sections.iter().filter(|section| section.stream.is_none());
        let mut listed = sections.flat_map(|section| section.records.iter().map(move |id| (section.number, *id)));
        listed.all(|(section, id)| {
            let tag = self.0.record(id).and_then(|record| record.tag);
            let leaves = records.get(id.0 as usize).map_or(&[][..], Vec::as_slice);
            let is_time = |&leaf: &u8| tag.is_some_and(|tag| times.contains(&TimeLeaf { section, tag, leaf }));
            leaves.iter().all(is_time)
        })
    }
}

impl Fields for RecordFields<'_> {
    type Field = Field;

    fn find(&self, name: &str) -> Option<Field> {
        match name {
            "@section" => return Some(Field::Section),
            "@record" => return Some(Field::Record),
            "@offset" => return Some(Field::Offset),
            _ => {}
        }
        let of_record = |record: &schema::Record| -> Vec<u8> {
            let names = fields::names(record).into_iter();
            let is_meant = |(id, path): &(_, String)| condition::names_field(name, path) && is_field(record, *id);
            names.filter(is_meant).map(|(id, _)| id.0).collect()
        };
        // The predefined records have no data fields.
        let records = self.0.records.iter().enumerate();
        let records: Vec<Vec<u8>> = records.map(|(i, r)| if i < 3 { Vec::new() } else { of_record(r) }).collect();
        records.iter().any(|leaves| !leaves.is_empty()).then_some(Field::Leaves(records))
    }

    fn kinds(&self, field: &Field) -> Kinds {
        match field {
            Field::Offset => Kinds { numbers: true, bytes: false },
            Field::Section | Field::Record => Kinds { numbers: false, bytes: true },
            Field::Leaves(_) => Kinds {
                numbers: self.leaves(field).any(schema::Leaf::is_numeric),
                bytes: self.leaves(field).any(|leaf| !leaf.is_numeric()),
            },
        }
    }

    fn has_name(&self, field: &Field, text: &str) -> bool {
        self.leaves(field).any(|leaf| leaf_number(leaf, text).is_some())
    }

    fn names(&self) -> Vec<String> {
        let mut known: Vec<String> = Vec::new();
        for record in self.0.records.iter().skip(3) {
            for (id, path) in fields::names(record) {
                if is_field(record, id) && !known.contains(&path) {
                    known.push(path);
                }
            }
        }
        known
    }
}

/// Returns whether a condition can refer to a leaf. Tags and the expressions of counts have no names.
fn is_field(record: &schema::Record, id: schema::LeafId) -> bool {
    fields::leaf(record, id).is_some_and(|leaf| !leaf.is_tag() && leaf.computed.is_none())
}

/// The values of a record.
struct RecordRow<'r> {
    schema: &'r schema::Dtd,
    leaves: &'r [u8],
    at: At,
    owned: &'r OwnedRecord,
}

impl Row<Field> for RecordRow<'_> {
    fn any(&self, field: &Field, test: &mut dyn FnMut(Value<'_>) -> bool) -> bool {
        let record = self.schema.records.get(usize::from(self.at.record));
        match field {
            Field::Offset => test(Value::Integer(self.at.offset.into())),
            Field::Section => {
                let section = self.schema.sections.get(self.at.section).and_then(|s| s.name.as_deref());
                test(Value::Bytes(section.unwrap_or_default().as_bytes()))
            }
            Field::Record => test(Value::Bytes(record.map_or("", |r| r.name.as_str()).as_bytes())),
            Field::Leaves(records) => {
                let wanted = records.get(usize::from(self.at.record)).map_or(&[][..], Vec::as_slice);
                let mut values = self.leaves.iter().zip(self.owned.iter()).filter(|(leaf, _)| wanted.contains(leaf));
                let leaf = |id: u8| record.and_then(|r| r.leaves.get(usize::from(id)));
                !wanted.is_empty()
                    && values.any(|(id, item)| leaf(*id).is_some_and(|leaf| test_value(leaf, item, &mut *test)))
            }
        }
    }
}

fn test_value(leaf: &schema::Leaf, item: Item<'_>, test: &mut dyn FnMut(Value<'_>) -> bool) -> bool {
    match item {
        Item::Number(n) if let Some(float) = leaf.format.float(n) => test(Value::Float(float)),
        Item::Number(n) => test(Value::Named(integer(leaf, n), &|text| leaf_number(leaf, text))),
        Item::Bytes(bytes) => match leaf.format.word_of_bytes(bytes) {
            Some(word) => test(Value::Bytes(word.as_bytes())),
            None => {
                let tail = leaf.format.tail_of_bytes(bytes).len();
                test(Value::Bytes(bytes.get(..bytes.len() - tail).unwrap_or_default()))
            }
        },
    }
}

/// Lists the leaf of each value in an owned record.
fn order(record: &Record, owned: &OwnedRecord, leaves: &mut Vec<u8>) {
    let Ok(()) = record.walk(record.first_value(), &mut Named { owned, leaves, last: [0; 256] });
}

/// A walk over an owned record that collects the leaf of each value.
struct Named<'o> {
    owned: &'o OwnedRecord,
    leaves: &'o mut Vec<u8>,
    /// The last number of each leaf.
    last: [u64; 256],
}

impl Steps for Named<'_> {
    type Error = Infallible;

    fn number(&mut self, leaf: u8) -> Result<(), Infallible> {
        if let Some(Item::Number(n)) = self.owned.get(self.leaves.len()) {
            self.last[usize::from(leaf)] = n;
        }
        self.bytes(leaf)
    }

    fn bytes(&mut self, leaf: u8) -> Result<(), Infallible> {
        self.leaves.push(leaf);
        Ok(())
    }

    fn items(&mut self, count: u8) -> Result<u64, Infallible> {
        Ok(self.last[usize::from(count)])
    }
}
