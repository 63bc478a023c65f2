//! The start of a file, from which its byte order and header follow (spec 5.4).

use std::collections::BTreeMap;

use metatf_parser::schema::{Item, LeafId, RawFile, RawStart, Record, Width};

use super::names::{Of, original, take};
use super::yaml::{Map, Yaml};
use crate::names::Scope;

/// The instances that recognize the start of a file.
pub(super) struct Starts {
    /// The instance that numbers the starts: 1 for the first in little-endian byte order, 2 in big-endian byte order, 3
    /// for the second start, and so on.
    pub(super) number: String,
    pub(super) instances: Map,
    count: usize,
}

impl Starts {
    /// Creates the instances for all starts. `names` contains the identifiers of the description's root.
    pub(super) fn new(records: &[&Record], raw: &RawFile, names: &mut Scope) -> Result<Starts, String> {
        let number = take(names, &["start"], Of::Field);
        let mut fields = Fields::default();
        let mut tests = Map::new();
        let mut value = String::new();
        let mut docs = vec!["The first bytes of a file select its byte order:".to_owned()];
        let orders = [("little", false), ("big", true)];
        let count = raw.starts.len();
        for (index, (start, record)) in raw.starts.iter().zip(records).enumerate() {
            let magic = magic(start, record)?;
            magic.iter().for_each(|field| fields.add(field, record, names));
            for ((order, is_big), number) in orders.into_iter().zip(2 * index + 1..) {
                let id = take(names, &[&format!("is_{}_{order}_endian", record.name)], Of::Field);
                let test = Map::new().scalar("value", fields.test(&magic, is_big, count > 1));
                tests = tests.entry(id.clone(), Yaml::Map(test));
                value += &format!("{id} ? {number} : ");
                docs.push(format!("{number} is `{}`, {order}-endian.", record.name));
            }
        }
        let start = Map::new().scalar("value", value + "0").entry("doc", Yaml::Lines(docs));
        let instances = fields.instances.and(tests).entry(number.clone(), Yaml::Map(start));
        Ok(Starts { number, instances, count })
    }

    /// Returns the byte order of a file by the number of its start.
    pub(super) fn endian(&self) -> Map {
        let order = |number: usize| if number % 2 == 1 { "le" } else { "be" };
        let cases = (1..=2 * self.count).fold(Map::new(), |cases, n| cases.scalar(n.to_string(), order(n)));
        Map::new().scalar("switch-on", format!("_root.{}", self.number)).entry("cases", Yaml::Map(cases))
    }

    /// Returns the condition under which a file is little-endian.
    pub(super) fn is_little(&self) -> String {
        format!("_root.{} % 2 == 1", self.number)
    }

    /// Returns the condition under which a file begins with this start, or `None` if all files do.
    pub(super) fn condition(&self, start: usize) -> Option<String> {
        let (little, big) = (2 * start + 1, 2 * start + 2);
        (self.count > 1).then(|| format!("_root.{0} == {little} or _root.{0} == {big}", self.number))
    }
}

/// The instances that contain the bytes of magic fields, each by its position and width.
#[derive(Default)]
struct Fields {
    ids: BTreeMap<(u64, u8), String>,
    instances: Map,
}

impl Fields {
    /// Adds the instance of a field, unless there is one with the same bytes.
    fn add(&mut self, field: &Magic<'_>, record: &Record, names: &mut Scope) {
        if self.ids.contains_key(&(field.at, field.width)) {
            return;
        }
        let id = take(names, &[field.name, &format!("{}_{}", record.name, field.name)], Of::Field);
        let bytes = original(&id, field.name).scalar("pos", field.at).scalar("size", field.width);
        self.instances = std::mem::take(&mut self.instances).entry(id.clone(), Yaml::Map(bytes));
        self.ids.insert((field.at, field.width), id);
    }

    /// Returns the condition under which a file begins with these fields.
    fn test(&self, magic: &[Magic<'_>], is_big: bool, may_be_short: bool) -> String {
        let end = magic.iter().map(|field| field.at + u64::from(field.width)).max().unwrap_or_default();
        let size = may_be_short.then(|| format!("_io.size >= {end}"));
        let tests = magic.iter().map(|field| {
            let id = self.ids.get(&(field.at, field.width)).map_or("", String::as_str);
            let is_value = |value: &u64| format!("{id} == {}", bytes(*value, field.width, is_big));
            let tests: Vec<String> = field.values.iter().map(is_value).collect();
            if tests.len() == 1 { tests.concat() } else { format!("({})", tests.join(" or ")) }
        });
        size.into_iter().chain(tests).collect::<Vec<_>>().join(" and ")
    }
}

/// A field that identifies a format.
struct Magic<'r> {
    name: &'r str,
    at: u64,
    width: u8,
    values: Vec<u64>,
}

/// Returns the fields that identify a start: its tag and its magic fields.
fn magic<'r>(start: &RawStart, record: &'r Record) -> Result<Vec<Magic<'r>>, String> {
    let mut places = BTreeMap::new();
    fixed_places(record, &record.items, &mut 0, &mut places);
    let tag = record.tag.filter(|_| !record.catch_all).map(|tag| (LeafId(0), vec![u64::from(tag)]));
    let fields = tag.into_iter().chain(start.magic.iter().cloned());
    let magic = fields.filter_map(|(id, values)| Some((id, record.leaf(id)?, values))).map(
        |(id, leaf, values)| match (places.get(&id), &leaf.width) {
            (Some(at), Width::Number(width)) => Ok(Magic { name: &leaf.key, at: *at, width: *width, values }),
            _ => Err(format!(
                "`{}.{}`: no field of variable size may precede a field with the role `magic`, because Kaitai Struct \
                 selects the byte order before it reads any field",
                record.name,
                leaf.path.join(".")
            )),
        },
    );
    magic.collect()
}

/// Adds the positions of all leaves before the first item of variable size. Returns whether there is no such item.
fn fixed_places(record: &Record, items: &[Item], at: &mut u64, places: &mut BTreeMap<LeafId, u64>) -> bool {
    items.iter().all(|item| match item {
        Item::Leaf(id) => {
            places.insert(*id, *at);
            let size = record.leaf(*id).and_then(|leaf| match leaf.width {
                _ if !leaf.interpretation.stores() => Some(0),
                Width::Number(width) => Some(u64::from(width)),
                Width::Array(width) => Some(u64::from(width)),
                Width::Unset | Width::Variable(_) | Width::Until(_) | Width::Rest => None,
            });
            *at += size.unwrap_or_default();
            size.is_some()
        }
        Item::Nested { items, .. } => fixed_places(record, items, at, places),
        Item::Repeat { .. } => false,
    })
}

/// Returns the literal of a number's bytes.
fn bytes(value: u64, width: u8, is_big: bool) -> String {
    let mut bytes = value.to_le_bytes()[..usize::from(width.min(8))].to_vec();
    if is_big {
        bytes.reverse();
    }
    format!("[{}]", bytes.iter().map(|byte| format!("{byte:#04x}")).collect::<Vec<_>>().join(", "))
}
