//! Names of fields and records as written by users, such as `size`, `alloc.size`, `vfield` and `comment`.

use metatf::dynamic::{OwnedRecord, Schema};
use metatf::format::COMMENT;
use metatf::reader;
use metatf_parser::schema::{Item, LeafId, Record, Repeated};

/// Names specified by a user. Any contiguous part of the path from the record down to a field, such as `size`,
/// `alloc.size` or `box.point`, denotes the field. A record is denoted by its name alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldNames {
    names: Vec<(String, Vec<String>)>,
}

impl FieldNames {
    pub(crate) fn new(names: &[String]) -> Self {
        let split = |name: &String| (name.clone(), name.split('.').map(str::to_owned).collect());
        Self { names: names.iter().map(split).collect() }
    }

    /// Returns whether any name denotes this leaf.
    pub(crate) fn mean(&self, record: &Record, index: u16, path: &[String]) -> bool {
        self.names.iter().any(|(_, parts)| means(parts, record, index, path))
    }

    /// Returns whether any name denotes this record.
    pub(crate) fn mean_record(&self, record: &Record) -> bool {
        self.names.iter().any(|(name, _)| *name == record.name)
    }

    /// Returns the names that match nothing in any of the schemas.
    pub(crate) fn unknown(&self, schemas: &[&Schema]) -> Vec<String> {
        let records = |schema: &&Schema| {
            let records: Vec<(u16, Record)> = (0..).zip(schema.dtd.records.iter().cloned()).collect();
            records.into_iter().filter(|(index, _)| *index == COMMENT || *index > 2)
        };
        let records: Vec<(u16, Record)> = schemas.iter().flat_map(records).collect();
        let known = |name: &str, parts: &[String]| {
            records.iter().any(|(index, record)| {
                name == record.name || record.leaves.iter().any(|leaf| means(parts, record, *index, &leaf.path))
            })
        };
        let unknown = self.names.iter().filter(|(name, parts)| !known(name, parts));
        unknown.map(|(name, _)| name.clone()).collect()
    }
}

/// Returns whether a name denotes a leaf. The only field of a comment is denoted by the record's name.
fn means(parts: &[String], record: &Record, index: u16, path: &[String]) -> bool {
    let full: Vec<&str> = std::iter::once(record.name.as_str()).chain(path.iter().map(String::as_str)).collect();
    match index {
        COMMENT => matches!(parts, [only] if *only == record.name),
        _ => full.windows(parts.len()).any(|run| run == parts),
    }
}

/// Returns the name of the value at an index of an owned record. The name includes the indices of repeated items, as in
/// `n_items[2].x`.
pub(crate) fn name_at(record: &Record, owned: &OwnedRecord, index: usize) -> String {
    let mut finder = Finder { record, owned, next: 0, wanted: index, last: [0; 256] };
    finder.items(&record.items, "").unwrap_or_default()
}

struct Finder<'f> {
    record: &'f Record,
    owned: &'f OwnedRecord,
    next: usize,
    wanted: usize,
    last: [u64; 256],
}

impl Finder<'_> {
    /// Visits items. They nest at most 32 levels deep (spec 3.5), which bounds the recursion.
    fn items(&mut self, items: &[Item], prefix: &str) -> Option<String> {
        for item in items {
            let found = match item {
                Item::Leaf(id) => self.leaf(*id, prefix),
                Item::Nested { key, record, items, .. } => self.nested(record, items, format!("{prefix}{key}")),
                Item::Repeat { count, key, body } => self.repeat(*count, body, &format!("{prefix}{key}")),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn repeat(&mut self, count: LeafId, body: &Repeated, path: &str) -> Option<String> {
        for i in 0..self.last[usize::from(count.0)] {
            if self.next > self.wanted {
                break;
            }
            let path = if self.record.is_optional(count) { path.to_owned() } else { format!("{path}[{i}]") };
            let found = match body {
                Repeated::Leaf(id) => self.take(*id).then_some(path),
                Repeated::Group(items) => self.items(items, &format!("{path}.")),
                Repeated::Record { record, items, .. } => self.nested(record, items, path),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Visits a nested record. A `vfield` is represented by its data.
    fn nested(&mut self, record: &str, items: &[Item], path: String) -> Option<String> {
        match items {
            [Item::Leaf(length), Item::Leaf(data)] if record == "vfield" => {
                if self.take(*length) {
                    return Some(format!("{path}.length"));
                }
                self.take(*data).then_some(path)
            }
            _ => self.items(items, &format!("{path}.")),
        }
    }

    fn leaf(&mut self, id: LeafId, prefix: &str) -> Option<String> {
        let leaf = self.record.leaf(id)?;
        (!leaf.is_tag() && self.take(id)).then(|| format!("{prefix}{}", leaf.key))
    }

    /// Advances by one value. Returns true at the wanted value.
    fn take(&mut self, id: LeafId) -> bool {
        if let Some(reader::Item::Number(n)) = self.owned.get(self.next) {
            self.last[usize::from(id.0)] = n;
        }
        self.next += 1;
        self.next == self.wanted + 1
    }
}
