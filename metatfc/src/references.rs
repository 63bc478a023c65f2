//! The values of a record with their leaves.

use crate::fields::Cursor;
use metatf::dynamic::Item as Value;
use metatf_parser::schema::{Item, Leaf, LeafId, Record, Repeated};

/// Visits the values of a record in order. Items nest at most 32 levels deep (spec 3.5), which bounds the recursion.
///
/// # Errors
/// Returns the error of `visit`.
pub(crate) fn each_value<E>(
    cursor: &mut Cursor<'_>,
    items: &[Item],
    visit: &mut dyn FnMut(&Leaf, Value<'_>, LeafId) -> Result<(), E>,
) -> Result<(), E> {
    for item in items {
        match item {
            Item::Leaf(id) => {
                if let Some((leaf, value)) = cursor.take(*id) {
                    visit(leaf, value, *id)?;
                }
            }
            Item::Nested { items, .. } => each_value(cursor, items, visit)?,
            Item::Repeat { count, body, .. } => {
                for _ in 0..cursor.count(*count) {
                    match body {
                        Repeated::Leaf(id) => {
                            if let Some((leaf, value)) = cursor.take(*id) {
                                visit(leaf, value, *id)?;
                            }
                        }
                        Repeated::Group(items) | Repeated::Record { items, .. } => each_value(cursor, items, visit)?,
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns the name of a leaf, as in JSON lines.
pub(crate) fn leaf_name(record: &Record, leaf: LeafId) -> String {
    let named = crate::fields::names(record).into_iter().find(|(id, _)| *id == leaf);
    named.map_or_else(|| format!("leaf {}", leaf.0), |(_, name)| name)
}
