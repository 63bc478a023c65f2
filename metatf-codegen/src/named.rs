//! The types of numbers with named values or bits, and the names of their variants.

use heck::{ToShoutySnakeCase, ToUpperCamelCase};
use metatf_parser::schema::{Bits, Format, Leaf, Names};

use crate::docs;
use crate::model::{Model, NamedItem, NamedType};
use crate::names::{Scope, camel, ident, legal};
use crate::options::Lookup;

/// Returns the type of a leaf's values, and creates the type if necessary. Leaves with the same field name and the same
/// list of names share a type. `owner` is the struct that contains the field.
pub(crate) fn named(
    model: &mut Model,
    types: &mut Scope,
    lookup: &Lookup<'_>,
    owner: &str,
    leaf: &Leaf,
) -> Option<usize> {
    let flags = match leaf.names {
        Names::None => return None,
        Names::Values(_) => false,
        Names::Flags(_) => true,
    };
    let list = leaf.names.list();
    let same = |named: &NamedType| {
        let items = named.items.iter().map(|item| (item.number, item.text.as_str()));
        named.field == leaf.name && named.flags == flags && items.eq(list.iter().map(|(n, name)| (*n, name.as_str())))
    };
    if let Some(index) = model.named.iter().position(same) {
        return Some(index);
    }
    let property = if flags { "flags" } else { "values" };
    let paths = [format!("{}.{property}", leaf.name)];
    let own = camel(&leaf.name);
    let wanted = lookup.rename(&paths).map(|name| vec![name]);
    let candidates = wanted.unwrap_or_else(|| vec![own.clone(), format!("{}{own}", owner), format!("{own}Value")]);
    let name = types.take(&candidates);
    let mut scope = if flags { Scope::default() } else { Scope::with(&["Unknown"]) };
    let items = list.iter().map(|(number, text)| {
        let name = scope.take(&[ident(&item_name(text, *number, flags)).to_string()]);
        let signed = leaf.format == Format::Signed;
        let shown = match flags {
            true => Bits::of(*number).to_string(),
            false if signed => number.cast_signed().to_string(),
            false => number.to_string(),
        };
        NamedItem { number: *number, name, text: text.clone(), docs: format!("{}, {shown}.", docs::code(text)) }
    });
    let items = items.collect();
    let docs = docs::under(leaf.doc.as_deref(), format!("The {property} of `{}`.", leaf.name));
    let attributes = lookup.record_attributes(&paths);
    model.named.push(NamedType { name, field: leaf.name.clone(), flags, docs, attributes, items });
    Some(model.named.len() - 1)
}

/// Converts arbitrary text to a name. Characters that are not allowed in a name separate its words.
fn item_name(text: &str, number: u64, flags: bool) -> String {
    let words: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if words.chars().all(|c| c == '_') {
        return if flags { format!("BIT{}", Bits::of(number).first) } else { format!("Value{number}") };
    }
    match flags {
        true => legal(words.to_shouty_snake_case(), "BIT", text),
        false => legal(words.to_upper_camel_case(), "Value", text),
    }
}
