//! What stands in place of a value: the item that an offset is of, a label, a string.

use crate::fields::{self, Cursor};
use crate::labels::OfRecord;
use metatf::dynamic::{Item as Value, Trace};
use metatf::reader::At;
use metatf_parser::schema::{Item, Leaf, LeafId, Repeated};
use std::fmt::Write as _;

/// Resolves the `sectionOffset` leaves of a record, addresses that have labels, and numbers of strings, in the order of the values;
/// `None` for other leaves.
pub(super) fn resolve(
    trace: &mut Trace<'_>,
    at: At,
    cursor: &mut Cursor<'_>,
    items: &[Item],
    labels: Option<OfRecord<'_>>,
) -> metatf::Result<Vec<Option<String>>> {
    let mut found = Vec::new();
    each(cursor, items, &mut |leaf, value, id| {
        let mut json = Vec::new();
        if let Value::Number(number) = value
            && let Some((_, label)) = labels.and_then(|labels| labels.of(at.record, leaf, number))
        {
            let mut text = String::new();
            fields::number(&mut text, leaf, number);
            let _ = write!(text, "[{label:?}]");
            found.push(Some(text));
            return Ok(());
        }
        let is_offset = match value {
            Value::Number(n) if !leaf.is_tag() => trace.resolve(at, id, n, &mut json)?,
            _ => false,
        };
        found.push(is_offset.then(|| String::from_utf8_lossy(&json).into_owned()));
        Ok(())
    })?;
    Ok(found)
}

type Each<'e> = &'e mut dyn FnMut(&Leaf, Value<'_>, LeafId) -> metatf::Result<()>;

/// Visits the values in order. Items nest at most 32 deep (spec 3.5), so this recursion is bounded.
fn each(cursor: &mut Cursor<'_>, items: &[Item], visit: Each<'_>) -> metatf::Result<()> {
    for item in items {
        match item {
            Item::Leaf(id) => {
                if let Some((leaf, value)) = cursor.take(*id) {
                    visit(leaf, value, *id)?;
                }
            }
            Item::Nested { items, .. } => each(cursor, items, visit)?,
            Item::Repeat { count, body, .. } => {
                for _ in 0..cursor.count(*count) {
                    match body {
                        Repeated::Leaf(id) => {
                            if let Some((leaf, value)) = cursor.take(*id) {
                                visit(leaf, value, *id)?;
                            }
                        }
                        Repeated::Group(items) | Repeated::Record { items, .. } => each(cursor, items, visit)?,
                    }
                }
            }
        }
    }
    Ok(())
}
