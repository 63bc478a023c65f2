//! Finds the DTD's fields for which the user specifies expected widths.

use crate::options::{OptionError, Options};
use metatf_parser::schema::{Dtd, Leaf, Record};

/// The index of a record, the index of a leaf, and the expected width.
pub(crate) type Expected = (u16, u8, u8);

/// Returns the leaves that the options refer to, in DTD order. If two options refer to the same leaf, the later option
/// applies.
pub(crate) fn expected(dtd: &Dtd, options: &Options) -> Result<Vec<Expected>, OptionError> {
    let mut found = Vec::new();
    let mut used = vec![false; options.expected_widths.len()];
    // Records 0 to 2 are predefined.
    for (index, record) in (0..).zip(&dtd.records).skip(3) {
        for (number, leaf) in
            (0..=u8::MAX).zip(&record.leaves).filter(|(id, leaf)| !(record.catch_all && *id == 0) && stores(leaf))
        {
            let named = options.expected_widths.iter().enumerate().filter(|(_, (path, _))| means(path, record, leaf));
            if let Some((option, (_, width))) = named.into_iter().next_back() {
                found.push((index, number, *width));
                used[option] = true;
            }
        }
    }
    match options.expected_widths.iter().zip(used).find(|((_, width), used)| *width > 8 || !used) {
        None => Ok(found),
        Some(((path, width), _)) if *width > 8 => {
            Err(OptionError(format!("`{path}` cannot be {width} bytes wide: expected a width of 0 to 8")))
        }
        Some(((path, _), _)) => Err(OptionError(format!(
            "the DTD has no field `{path}` whose width can be expected: the field must be a number stored either \
             unchanged or as an offset from a base"
        ))),
    }
}

/// Checks whether code can be generated for a width of this leaf.
fn stores(leaf: &Leaf) -> bool {
    let is_plain = leaf.interpretation.stores() && leaf.interpretation.is_stateless();
    leaf.is_numeric() && is_plain && leaf.constant.is_none() && !leaf.is_tag()
}

/// Checks whether a path denotes a leaf. The path can be the field's name, or any contiguous part of the path from the
/// record down to the leaf.
fn means(path: &str, record: &Record, leaf: &Leaf) -> bool {
    let full: Vec<&str> = std::iter::once(&record.name).chain(&leaf.path).map(String::as_str).collect();
    let parts: Vec<&str> = path.split('.').collect();
    path == leaf.name || full.windows(parts.len()).any(|run| run == parts)
}
