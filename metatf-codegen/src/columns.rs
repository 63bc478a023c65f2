//! The column fields of a record, with one field for each leaf at any nesting depth.

use metatf_parser::schema::{ExprOp, Format, Item, Leaf, LeafId, Record, Repeated, Width};

use crate::model::{Column, ColumnKind};
use crate::names::{Scope, ident, snake};
use crate::options::Lookup;
use crate::uses::{Uses, leaf, vfield};

/// Returns the fields in the order of the leaves. Tags, constants, and lengths that directly precede their byte arrays
/// have no field.
pub(crate) fn columns(record: &Record, paths: &[String], lookup: &Lookup<'_>) -> Vec<Column> {
    let mut namer = Namer {
        record,
        uses: Uses::of(record),
        lookup,
        names: Scope::with(&["records", "columns"]),
        columns: Vec::new(),
    };
    namer.items(&record.items, paths, "");
    namer.columns
}

struct Namer<'d> {
    record: &'d Record,
    uses: Uses,
    lookup: &'d Lookup<'d>,
    names: Scope,
    columns: Vec<Column>,
}

impl Namer<'_> {
    /// Adds the fields of these items. `paths` are the names of the items' struct in options, and `prefix` is the
    /// prefix of the column names. The parser bounds the nesting depth (spec 3.5).
    fn items(&mut self, items: &[Item], paths: &[String], prefix: &str) {
        for (at, item) in items.iter().enumerate() {
            match (item, items.get(at + 1)) {
                // A computed count needs a column, which tells users how many items each record contains.
                (Item::Leaf(id), Some(Item::Repeat { count, key, .. }))
                    if id == count && leaf(self.record, *id).is_some_and(|l| l.computed.is_some()) =>
                {
                    self.leaf(*id, &format!("{key}_count"), paths, prefix);
                }
                (Item::Leaf(id), _) => {
                    if let Some(key) = leaf(self.record, *id).map(|l| l.key.clone()) {
                        self.leaf(*id, &key, paths, prefix);
                    }
                }
                (Item::Nested { key, record, items, .. }, _) => self.nested(key, record, items, paths, prefix),
                (Item::Repeat { key, body: Repeated::Leaf(id), .. }, _) => self.leaf(*id, key, paths, prefix),
                (Item::Repeat { key, body: Repeated::Record { record, items, .. }, .. }, _) => {
                    self.nested(key, record, items, paths, prefix);
                }
                (Item::Repeat { key, body: Repeated::Group(items), .. }, _) => {
                    let paths: Vec<String> = paths.iter().map(|path| format!("{path}.{key}")).collect();
                    let name = self.name(key, &paths, prefix);
                    self.items(items, &paths, &format!("{name}_"));
                }
            }
        }
    }

    fn nested(&mut self, key: &str, record: &str, items: &[Item], paths: &[String], prefix: &str) {
        if let Some((_, data)) = vfield(self.record, &self.uses, record, items) {
            self.leaf(data, key, paths, prefix);
        } else {
            let own: Vec<String> = paths.iter().map(|path| format!("{path}.{key}")).collect();
            let name = self.name(key, &own, prefix);
            self.items(items, &[record.to_owned()], &format!("{name}_"));
        }
    }

    fn name(&self, key: &str, paths: &[String], prefix: &str) -> String {
        format!("{prefix}{}", self.lookup.rename(paths).unwrap_or_else(|| snake(key)))
    }

    fn leaf(&mut self, id: LeafId, key: &str, paths: &[String], prefix: &str) {
        let Some(l) = leaf(self.record, id).filter(|l| !l.is_tag() && l.constant.is_none()) else { return };
        if l.is_numeric() && is_length(self.record, id) {
            return;
        }
        let own: Vec<String> = paths.iter().map(|path| format!("{path}.{key}")).collect();
        let name = self.names.take(&[ident(&self.name(key, &own, prefix)).to_string()]);
        self.columns.push(Column { name, path: l.path.join("."), leaf: id.0, kind: self.kind(id, l) });
    }

    fn kind(&self, id: LeafId, l: &Leaf) -> ColumnKind {
        match (&l.width, l.format) {
            (Width::Array(_) | Width::Variable(_) | Width::Until(_) | Width::Rest, _) => ColumnKind::Arrays,
            // A count or length is a plain number regardless of its format.
            _ if self.uses.any(id) => ColumnKind::Unsigned,
            (_, Format::Signed) => ColumnKind::Signed,
            (_, Format::F64) => ColumnKind::Float,
            _ => ColumnKind::Unsigned,
        }
    }
}

/// Checks whether the next leaf is a byte array of this length. If so, the runtime has no column for the length.
fn is_length(record: &Record, id: LeafId) -> bool {
    let next = LeafId(id.0.saturating_add(1));
    match leaf(record, next).map(|l| &l.width) {
        Some(Width::Variable(expr)) => expr.0 == [ExprOp::Leaf(id)] && side_by_side(&record.items, id, next),
        _ => false,
    }
}

/// Checks whether two leaves are adjacent within the same repetition, or outside of repetitions.
fn side_by_side(items: &[Item], first: LeafId, second: LeafId) -> bool {
    let ends = items.windows(2).any(|pair| match pair {
        [a, b] => last(a) == Some(first) && begin(b) == Some(second),
        _ => false,
    });
    ends || items.iter().any(|item| match item {
        Item::Nested { items, .. }
        | Item::Repeat { body: Repeated::Group(items) | Repeated::Record { items, .. }, .. } => {
            side_by_side(items, first, second)
        }
        _ => false,
    })
}

/// Returns the first leaf of an item, if it is not repeated.
fn begin(item: &Item) -> Option<LeafId> {
    match item {
        Item::Leaf(id) => Some(*id),
        Item::Nested { items, .. } => items.first().and_then(begin),
        Item::Repeat { .. } => None,
    }
}

/// Returns the last leaf of an item, if it is not repeated.
fn last(item: &Item) -> Option<LeafId> {
    match item {
        Item::Leaf(id) => Some(*id),
        Item::Nested { items, .. } => items.last().and_then(last),
        Item::Repeat { .. } => None,
    }
}
