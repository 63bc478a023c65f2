//! The names of a record's fields, and the values in their order.
//!
//! ```
//! use metatf::dynamic::{Item, OwnedRecord, Schema};
//! use metatf_tools::fields::{Cursor, names};
//!
//! let dtd = b"section heap 1 { malloc: (tag, size) { tag.value = 4; size.width = 4; size.interpretation = none; } }";
//! let schema = Schema::parse("heap.dtd", dtd)?;
//! let mut owned = OwnedRecord::default();
//! schema.read_json(br#"{"@section":"heap","@record":"malloc","size":24}"#, &mut owned)?;
//!
//! // Records 0 to 2 are predefined.
//! let record = schema.record(3).ok_or("no such record")?;
//! let mut cursor = Cursor::new(record, &owned);
//! let values = names(record).into_iter().map(|(id, name)| (name, cursor.take(id).map(|(_, value)| value)));
//! let values: Vec<_> = values.collect();
//! assert_eq!(values, [("tag".to_owned(), Some(Item::Number(4))), ("size".to_owned(), Some(Item::Number(24)))]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use metatf::dynamic::{Item as Value, OwnedRecord};
use metatf_parser::schema::{Item, Leaf, LeafId, Record, Repeated};

/// Returns the length leaf and the data leaf of a `vfield`. The data leaf represents the entire `vfield` (spec 8).
#[must_use]
pub fn vfield(record: &str, items: &[Item]) -> Option<(LeafId, LeafId)> {
    match items {
        [Item::Leaf(length), Item::Leaf(data)] if record == "vfield" => Some((*length, *data)),
        _ => None,
    }
}

/// Returns the name of each leaf of a record, including the tag. The name consists of JSON keys joined by dots.
#[must_use]
pub fn names(record: &Record) -> Vec<(LeafId, String)> {
    let mut names = Vec::new();
    collect(record, &record.items, "", &mut names);
    names
}

/// Collects the names of items. Items nest at most 32 levels deep (spec 3.5), which bounds the recursion.
fn collect(record: &Record, items: &[Item], prefix: &str, names: &mut Vec<(LeafId, String)>) {
    for item in items {
        match item {
            Item::Leaf(id) => {
                if let Some(leaf) = leaf(record, *id) {
                    names.push((*id, format!("{prefix}{}", leaf.key)));
                }
            }
            Item::Nested { key, record: nested, items, .. } => {
                collect_nested(record, nested, items, format!("{prefix}{key}"), names);
            }
            Item::Repeat { key, body, .. } => {
                let path = format!("{prefix}{key}");
                match body {
                    Repeated::Leaf(id) => names.push((*id, path)),
                    Repeated::Group(items) => collect(record, items, &format!("{path}."), names),
                    Repeated::Record { record: nested, items, .. } => {
                        collect_nested(record, nested, items, path, names);
                    }
                }
            }
        }
    }
}

fn collect_nested(record: &Record, nested: &str, items: &[Item], path: String, names: &mut Vec<(LeafId, String)>) {
    match vfield(nested, items) {
        Some((length, data)) => {
            names.push((length, format!("{path}.length")));
            names.push((data, path));
        }
        None => collect(record, items, &format!("{path}."), names),
    }
}

/// Returns the leaf with this index.
#[must_use]
pub fn leaf(record: &Record, id: LeafId) -> Option<&Leaf> {
    record.leaves.get(usize::from(id.0))
}

/// Returns whether a leaf is shown (spec 8). Tags and constants are shown only if `all` is set; computed counts are
/// never shown.
#[must_use]
pub fn is_shown(leaf: &Leaf, all: bool) -> bool {
    !leaf.is_implied() || all && leaf.computed.is_none()
}

/// A cursor over the values of an owned record, in the order of its leaves. See the [module](crate::fields) for an
/// example.
#[derive(Debug)]
pub struct Cursor<'t> {
    /// The record that the values belong to.
    pub record: &'t Record,
    /// The values.
    pub owned: &'t OwnedRecord,
    next: usize,
    /// The last number of each leaf, used as counts.
    last: Vec<u64>,
}

impl<'t> Cursor<'t> {
    /// Creates a cursor at the first value.
    #[must_use]
    pub fn new(record: &'t Record, owned: &'t OwnedRecord) -> Self {
        // Only repetitions need counts.
        let counts = record.leaves.iter().any(|leaf| leaf.repeated);
        Self { record, owned, next: 0, last: vec![0; if counts { record.leaves.len() } else { 0 }] }
    }

    /// Returns the next value. A tag with a fixed value is not stored.
    pub fn take(&mut self, id: LeafId) -> Option<(&'t Leaf, Value<'t>)> {
        let leaf = leaf(self.record, id)?;
        if leaf.is_tag() {
            return Some((leaf, Value::Number(self.record.tag.unwrap_or(0).into())));
        }
        let value = self.owned.get(self.next)?;
        self.next += 1;
        if let (Value::Number(n), Some(last)) = (value, self.last.get_mut(usize::from(id.0))) {
            *last = n;
        }
        Some((leaf, value))
    }

    /// Moves to the value of a leaf that [occurs once](Record::occurrence), and returns the index of the value. Returns
    /// `None` if the values do not belong to the record.
    #[must_use]
    pub fn index_of(mut self, id: LeafId) -> Option<usize> {
        let record = self.record;
        self.find(&record.items, id)?.then_some(self.next)
    }

    /// Skips items up to a leaf. Returns whether the leaf was found, or `None` if values are missing. Items nest at most
    /// 32 levels deep (spec 3.5), which bounds the recursion.
    fn find(&mut self, items: &[Item], id: LeafId) -> Option<bool> {
        for item in items {
            let is_found = match item {
                Item::Leaf(leaf) if *leaf == id => true,
                Item::Leaf(leaf) => {
                    self.take(*leaf)?;
                    false
                }
                Item::Nested { items, .. } => self.find(items, id)?,
                Item::Repeat { count, body, .. } => {
                    for _ in 0..self.count(*count) {
                        match body {
                            Repeated::Leaf(leaf) => drop(self.take(*leaf)?),
                            Repeated::Group(items) | Repeated::Record { items, .. } => drop(self.find(items, id)?),
                        }
                    }
                    false
                }
            };
            if is_found {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Returns the last value of a leaf that stores a count.
    #[must_use]
    pub fn count(&self, id: LeafId) -> u64 {
        self.last.get(usize::from(id.0)).copied().unwrap_or(0)
    }
}
