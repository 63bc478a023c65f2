//! The types of a description: one for each section, record, nested record and repeated group.

use std::collections::BTreeMap;

use metatf_parser::schema::{
    Bits, Dtd, Expr, ExprOp, Format, Item, Leaf, LeafId, NameList, Names, Record, Repeated, Width,
};

use super::expression::Text;
use super::leaf::{self, Number};
use super::names::{Of, original, take};
use super::yaml::{Map, Yaml};
use crate::docs;
use crate::names::Scope;

/// All types and enumerations, in the order of the description.
pub(super) struct Types<'d> {
    pub(super) dtd: &'d Dtd,
    pub(super) types: Vec<(String, Map)>,
    pub(super) enums: Vec<(String, Map)>,
    names: Scope,
    /// The types of the sections by number.
    pub(super) sections: BTreeMap<u8, String>,
    /// The reasons why fields cannot be described.
    pub(super) errors: Vec<String>,
    /// The condition under which a file is little-endian.
    is_little: String,
    /// The types and enumerations that do not depend on their place, by name and content.
    shared: BTreeMap<(String, String), String>,
    /// The types in progress, outermost first.
    open: Vec<Body>,
}

/// The paths of fields, as seen from a type.
pub(super) type Paths = BTreeMap<LeafId, String>;

/// A type in progress.
#[derive(Default)]
struct Body {
    seq: Vec<Map>,
    instances: Map,
    ids: Scope,
    paths: Paths,
    /// The index of the type among the types.
    at: usize,
}

/// The number of times that a field occurs in a record.
#[derive(Clone, Debug)]
pub(super) enum Presence {
    Once,
    If(String),
    Times(String),
    ToEnd,
    /// Items up to this number of bytes before the end.
    ToBefore(u64),
    /// Items up to the first item that meets a condition, whose paths depend on the type of the items.
    Until(Expr),
    /// The same, with the text of the condition.
    UntilText(String),
}

impl Presence {
    fn is_repeated(&self) -> bool {
        !matches!(self, Presence::Once | Presence::If(_))
    }

    pub(super) fn map(&self) -> Map {
        match self {
            Presence::Once => Map::new(),
            Presence::If(condition) => Map::new().scalar("if", condition),
            Presence::Times(count) => Map::new().scalar("repeat", "expr").scalar("repeat-expr", count),
            Presence::ToEnd => Map::new().scalar("repeat", "eos"),
            Presence::ToBefore(tail) => Map::new()
                .scalar("repeat", "until")
                .scalar("repeat-until", format!("_io.size - _io.pos <= {tail}"))
                .scalar("if", format!("_io.size - _io.pos > {tail}")),
            Presence::Until(_) => Map::new(),
            Presence::UntilText(condition) => Map::new().scalar("repeat", "until").scalar("repeat-until", condition),
        }
    }
}

impl<'d> Types<'d> {
    /// Creates an empty list for a DTD. No type has one of the reserved names.
    pub(super) fn new(dtd: &'d Dtd, reserved: &[&str], is_little: String) -> Self {
        let mut names = Scope::with(reserved);
        let sections = dtd
            .sections
            .iter()
            .filter_map(|section| Some((section.number, take(&mut names, &[section.name.as_deref()?], Of::Type))));
        let sections = sections.collect();
        Self {
            dtd,
            types: Vec::new(),
            enums: Vec::new(),
            names,
            sections,
            errors: Vec::new(),
            is_little,
            shared: BTreeMap::new(),
            open: Vec::new(),
        }
    }

    /// Begins a type.
    pub(super) fn open(&mut self) {
        self.open.push(Body { at: self.types.len(), ..Body::default() });
    }

    /// Ends a type that may have any of these names. Returns its name and the paths of its fields.
    pub(super) fn close(&mut self, names: &[&str], doc: Option<&str>) -> (String, Paths) {
        let (at, body, paths) = self.end(doc);
        let name = names.first().copied().unwrap_or_default();
        let key = (name.to_owned(), body.render(0));
        if let Some(same) = self.shared.get(&key) {
            return (same.clone(), paths);
        }
        let id = take(&mut self.names, names, Of::Type);
        self.types.insert(at, (id.clone(), original(&id, name).and(body)));
        if !key.1.contains("_parent") {
            self.shared.insert(key, id.clone());
        }
        (id, paths)
    }

    /// Ends a type whose identifier is reserved. Returns the paths of its fields.
    pub(super) fn close_as(&mut self, id: String, name: &str, doc: Option<&str>) -> Paths {
        let (at, body, paths) = self.end(doc);
        let body = original(&id, name).and(body);
        self.types.insert(at, (id, body));
        paths
    }

    fn end(&mut self, doc: Option<&str>) -> (usize, Map, Paths) {
        let Body { seq, instances, paths, at, .. } = self.open.pop().unwrap_or_default();
        let mut lines = docs::lines(doc);
        if seq.is_empty() && instances.is_empty() && lines.is_empty() {
            lines.push("A record without fields.".to_owned());
        }
        let body = Map::new()
            .entry("doc", Yaml::Lines(lines))
            .entry("seq", Yaml::List(seq))
            .entry("instances", Yaml::Map(instances));
        (at.min(self.types.len()), body, paths)
    }

    /// Adds an attribute to the type in progress, and returns its identifier.
    pub(super) fn attribute(&mut self, name: &str, rest: Map) -> String {
        let Some(body) = self.open.last_mut() else { return String::new() };
        let id = take(&mut body.ids, &[name], Of::Field);
        body.seq.push(Map::new().scalar("id", &id).and(original(&id, name)).and(rest));
        id
    }

    fn instance(&mut self, name: &str, rest: Map) -> String {
        let Some(body) = self.open.last_mut() else { return String::new() };
        let id = take(&mut body.ids, &[name], Of::Field);
        let instances = std::mem::take(&mut body.instances);
        body.instances = instances.entry(id.clone(), Yaml::Map(original(&id, name).and(rest)));
        id
    }

    /// Makes a field of the type in progress available to expressions.
    pub(super) fn reach(&mut self, leaf: LeafId, path: String) {
        if let Some(body) = self.open.last_mut() {
            body.paths.insert(leaf, path);
        }
    }

    /// Returns the path of a field from the type in progress.
    fn path(&self, leaf: LeafId) -> Option<String> {
        let found = self.open.iter().rev().enumerate().find_map(|(up, body)| Some((up, body.paths.get(&leaf)?)));
        found.map(|(up, path)| format!("{}{path}", "_parent.".repeat(up)))
    }

    fn expression(&mut self, record: &Record, expression: &Expr) -> Text {
        let text = Text::of(expression, |leaf| self.path(leaf));
        text.unwrap_or_else(|| {
            self.errors
                .push(format!("`{}`: an expression refers to a field that Kaitai Struct cannot reach", record.name));
            Text::atom("0")
        })
    }

    /// Replaces a condition by its text. `path` returns the path of a field of the items.
    fn settle(&mut self, record: &Record, presence: &Presence, path: impl Fn(LeafId) -> Option<String>) -> Presence {
        let Presence::Until(condition) = presence else { return presence.clone() };
        let text = Text::of(condition, |leaf| path(leaf).or_else(|| self.path(leaf)));
        Presence::UntilText(text.map_or_else(
            || {
                self.errors.push(format!(
                    "`{}`: a condition after `until` refers to a field that Kaitai Struct cannot reach",
                    record.name
                ));
                String::new()
            },
            Text::condition,
        ))
    }

    pub(super) fn items(&mut self, record: &Record, items: &[Item]) {
        for item in items {
            match item {
                Item::Leaf(leaf) => self.leaf(record, *leaf, &Presence::Once),
                Item::Nested { key, record: name, doc, items } => {
                    self.open();
                    self.items(record, items);
                    self.nested(record, key, name, doc.as_deref(), &Presence::Once);
                }
                Item::Repeat { count, key, body } => {
                    let presence = self.presence(record, *count);
                    let (name, doc, items) = match body {
                        Repeated::Leaf(leaf) => {
                            let item = self.plain_item(record, *leaf);
                            let presence = self.settle(record, &presence, |id| item.clone().filter(|_| id == *leaf));
                            self.leaf(record, *leaf, &presence);
                            continue;
                        }
                        Repeated::Group(items) => (key, None, items),
                        Repeated::Record { record, doc, items } => (record, doc.as_deref(), items),
                    };
                    self.open();
                    self.items(record, items);
                    self.nested(record, key, name, doc, &presence);
                }
            }
        }
    }

    fn presence(&mut self, record: &Record, count: LeafId) -> Presence {
        match record.leaf(count).and_then(|leaf| leaf.computed.as_ref()) {
            Some(Expr(steps)) if steps.as_slice() == [ExprOp::Rest] => match tail(record, count) {
                0 => Presence::ToEnd,
                tail => Presence::ToBefore(tail),
            },
            Some(condition) if condition.0.last() == Some(&ExprOp::Until) => Presence::Until(condition.clone()),
            Some(expression) if record.is_optional(count) => {
                Presence::If(self.expression(record, expression).condition())
            }
            Some(expression) => Presence::Times(self.expression(record, expression).number()),
            None => Presence::Times(self.path(count).unwrap_or_else(|| "0".to_owned())),
        }
    }

    /// Returns the path of a leaf that is itself the item of a repetition, or `None` if its value is not the item.
    fn plain_item(&self, record: &Record, id: LeafId) -> Option<String> {
        let leaf = record.leaf(id)?;
        let number = Number::of(self.dtd, record, leaf).ok().filter(|_| leaf.is_numeric())?;
        let is_plain = number.value("").is_none() && !matches!(leaf.names, Names::Flags(_));
        let has_enum = matches!(leaf.names, Names::Values(_)) && leaf.constant.is_none();
        is_plain.then(|| if has_enum { "_.to_i".to_owned() } else { "_".to_owned() })
    }

    /// Ends the type of a nested record, and adds the attribute that contains it.
    fn nested(&mut self, record: &Record, key: &str, name: &str, doc: Option<&str>, presence: &Presence) {
        let longer = format!("{}_{name}", record.name);
        let (name, paths) = self.close(&[name, &longer], doc);
        let presence = &self.settle(record, presence, |leaf| paths.get(&leaf).map(|path| format!("_.{path}")));
        let id = self.attribute(key, Map::new().scalar("type", name).and(presence.map()));
        if matches!(presence, Presence::Once) {
            paths.into_iter().for_each(|(leaf, path)| self.reach(leaf, format!("{id}.{path}")));
        }
    }

    /// Adds the attributes of a leaf. Tags belong to the type that selects the record, and computed counts are not
    /// stored.
    pub(super) fn leaf(&mut self, record: &Record, id: LeafId, presence: &Presence) {
        let Some(leaf) = record.leaf(id) else { return };
        if leaf.computed.is_some() || (record.tag.is_some() && id == LeafId(0)) {
            return;
        }
        if !leaf.is_numeric() {
            let size = self.size(record, leaf);
            self.attribute(&leaf.key, size.and(presence.map()).and(leaf::doc(leaf, false)));
            return;
        }
        match Number::of(self.dtd, record, leaf) {
            Ok(number) => self.number(record, leaf, id, &number, presence),
            Err(reason) => {
                self.errors.push(format!("`{}.{}`: {reason}", record.name, leaf.path.join(".")));
                // Expressions that refer to the field are not errors, too.
                self.reach(id, String::new());
            }
        }
    }

    fn number(&mut self, record: &Record, leaf: &Leaf, id: LeafId, number: &Number, presence: &Presence) {
        let raw = format!("raw_{}", leaf.key);
        let needs_instance = number.value(&raw).is_some() || matches!(leaf.names, Names::Flags(_));
        if presence.is_repeated() && needs_instance {
            // The items of an array cannot have instances, so each item becomes a type.
            self.open();
            self.number(record, leaf, id, number, &Presence::Once);
            let name = format!("{}_item", leaf.name);
            let longer = format!("{}_{name}", record.name);
            let (name, _) = self.close(&[&name, &longer], None);
            self.attribute(&leaf.key, Map::new().scalar("type", name).and(presence.map()));
            return;
        }
        let names = self.enumeration(record, leaf, number);
        let doc = leaf::doc(leaf, names.is_some());
        let of_enum = names.iter().fold(Map::new(), |map, name| map.scalar("enum", name));
        let stored = self.stored(number);
        let valid = leaf.constant.map(|constant| number.valid(constant)).unwrap_or_default();
        let key = &leaf.key;
        let made = match number.value(&raw) {
            None => self.attribute(key, stored.and(of_enum).and(valid).and(presence.map()).and(doc)),
            Some(_) => {
                let raw = if number.width == 0 {
                    String::new()
                } else {
                    self.attribute(&raw, stored.and(valid).and(presence.map()))
                };
                let value = Map::new().scalar("value", number.value(&raw).unwrap_or_default());
                self.instance(key, value.and(presence.map()).and(of_enum).and(doc))
            }
        };
        let path = if names.is_some() { format!("{made}.to_i") } else { made.clone() };
        if let Names::Flags(list) = &leaf.names {
            self.flags(&made, list, presence);
        }
        self.reach(id, path);
    }

    /// Adds an instance for each named bit.
    fn flags(&mut self, field: &str, list: &NameList, presence: &Presence) {
        for (bits, name) in list.iter().map(|(number, name)| (Bits::of(*number), name)) {
            let text = Text::atom(field).bits(bits.first, bits.last - bits.first + 1);
            let value = if bits.is_flag() { text.condition() } else { text.number() };
            self.instance(&format!("{field}_{name}"), Map::new().scalar("value", value).and(presence.map()));
        }
    }

    /// Returns the type of a stored number.
    fn stored(&mut self, number: &Number) -> Map {
        let (name, is_known) = number.stored();
        if is_known || number.width == 0 {
            return Map::new().scalar("type", name);
        }
        let body = leaf::odd_number(number.width, number.signed, &self.is_little);
        let key = (name.clone(), body.render(0));
        let id = match self.shared.get(&key) {
            Some(id) => id.clone(),
            None => {
                let id = take(&mut self.names, &[&name], Of::Type);
                self.types.push((id.clone(), body));
                self.shared.insert(key, id.clone());
                id
            }
        };
        Map::new().scalar("type", id)
    }

    /// Returns the enumeration of a leaf's named values.
    fn enumeration(&mut self, record: &Record, leaf: &Leaf, number: &Number) -> Option<String> {
        let Names::Values(list) = &leaf.names else { return None };
        if leaf.constant.is_some() {
            return None;
        }
        let values: Option<Vec<_>> = list.iter().map(|(value, name)| Some((number.key(*value)?, &**name))).collect();
        Some(self.values(&leaf.name, &format!("{}_{}", record.name, leaf.name), &values?))
    }

    /// Returns an enumeration of these values, which is new unless there is one of the same name and content.
    pub(super) fn values(&mut self, name: &str, longer: &str, values: &[(String, &str)]) -> String {
        let mut ids = Scope::default();
        let map = values.iter().fold(Map::new(), |map, (key, name)| {
            let id = take(&mut ids, &[name], Of::Value);
            match original(&id, name) {
                original if original.is_empty() => map.scalar(key, id),
                original => map.entry(key, Yaml::Map(Map::new().scalar("id", id).and(original))),
            }
        });
        let key = (format!("enum {name}"), map.render(0));
        if let Some(same) = self.shared.get(&key) {
            return same.clone();
        }
        let id = take(&mut self.names, &[name, longer], Of::Type);
        self.enums.push((id.clone(), map));
        self.shared.insert(key, id.clone());
        id
    }

    /// Returns the size, and the type of the content, of a byte array.
    fn size(&mut self, record: &Record, leaf: &Leaf) -> Map {
        let size = match &leaf.width {
            Width::Array(bytes) => Map::new().scalar("size", bytes),
            Width::Variable(expression) => Map::new().scalar("size", self.expression(record, expression).number()),
            Width::Until(end) => Map::new().scalar("terminator", end),
            Width::Rest => {
                let id = record.leaves.iter().zip(0..=u8::MAX).find(|(own, _)| own.width == Width::Rest);
                match id.map_or(0, |(_, id)| tail(record, LeafId(id))) {
                    0 => Map::new().scalar("size-eos", true),
                    tail => Map::new().scalar("size", format!("_io.size - _io.pos - {tail}")),
                }
            }
            Width::Unset | Width::Number(_) => Map::new(),
        };
        let content = match (leaf.section.and_then(|section| self.sections.get(&section)), leaf.format) {
            (Some(section), _) => Map::new().scalar("type", section),
            (None, Format::CString) if !matches!(leaf.width, Width::Until(_)) => string("strz"),
            (None, Format::Utf8 | Format::CString) => string("str"),
            _ => Map::new(),
        };
        content.and(size)
    }
}

/// Returns the size of the fields after a byte array, or after the items of a count, that extends to the end.
fn tail(record: &Record, first: LeafId) -> u64 {
    let after = record.leaves.iter().skip(usize::from(first.0) + 1).filter(|leaf| !leaf.repeated);
    let size = |leaf: &Leaf| match leaf.width {
        Width::Number(width) if leaf.interpretation.stores() => width.into(),
        Width::Array(bytes) => bytes.into(),
        _ => 0,
    };
    after.map(size).sum::<u64>()
}

fn string(name: &str) -> Map {
    Map::new().scalar("type", name).scalar("encoding", "UTF-8")
}
