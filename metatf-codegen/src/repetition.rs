//! Finds the repetition around a leaf.

use metatf_parser::schema::{Item, LeafId, Record, Repeated};

/// A repetition around a leaf: its first leaf, and the number of keys that lead to its items. By default, the record
/// itself.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Repetition {
    first: Option<LeafId>,
    pub(crate) keys: usize,
}

/// Returns the innermost repetition around a leaf of a record.
pub(crate) fn repetition(record: &Record, id: LeafId) -> Option<Repetition> {
    find(&record.items, id, Repetition::default(), 0)
}

/// Finds a leaf in items that are inside the repetition `here`, after `keys` keys.
fn find(items: &[Item], id: LeafId, here: Repetition, keys: usize) -> Option<Repetition> {
    items.iter().find_map(|item| match item {
        Item::Leaf(leaf) => (*leaf == id).then_some(here),
        Item::Nested { items, .. } => find(items, id, here, keys + 1),
        Item::Repeat { body: Repeated::Leaf(leaf), .. } => {
            (*leaf == id).then_some(Repetition { first: Some(id), keys })
        }
        Item::Repeat { body: Repeated::Group(items) | Repeated::Record { items, .. }, .. } => {
            let inner = Repetition { first: first_leaf(items), keys: keys + 1 };
            find(items, id, inner, keys + 1)
        }
    })
}

fn first_leaf(items: &[Item]) -> Option<LeafId> {
    match items.first()? {
        Item::Leaf(leaf) | Item::Repeat { body: Repeated::Leaf(leaf), .. } => Some(*leaf),
        Item::Nested { items, .. }
        | Item::Repeat { body: Repeated::Group(items) | Repeated::Record { items, .. }, .. } => first_leaf(items),
    }
}
