//! Chooses the DTD of the new trace, which is the DTD of an input that fits the records of all inputs by name.

use crate::compat;
use crate::dtd;
use crate::failure::{Result, failed};
use metatf::dynamic::Schema;
use metatf_parser::schema::{Model, ModelKind};
use metatf_tools::convert::{ConvertOptions, Converter};
use std::collections::HashSet;

/// Returns the first schema that accepts the records of all other schemas without loss or change of meaning, and the
/// schema's index.
pub(super) fn target<'s>(inputs: &[(&str, &'s Schema)]) -> Result<(usize, &'s Schema)> {
    let mut tried: HashSet<&str> = HashSet::new();
    let mut first = None;
    for (index, (name, target)) in inputs.iter().enumerate() {
        if !tried.insert(&target.dtd.text) {
            continue;
        }
        let mut fitting: HashSet<&str> = HashSet::from([target.dtd.text.as_str()]);
        let unfit = inputs.iter().find_map(|(other, source)| {
            if !fitting.insert(&source.dtd.text) {
                return None;
            }
            let wrong = differences(source, target);
            (!wrong.is_empty()).then_some((name, other, wrong))
        });
        let Some(unfit) = unfit else { return Ok((index, target)) };
        first.get_or_insert(unfit);
    }
    let Some((name, other, wrong)) = first else { return failed("no trace was given") };
    failed(format!(
        "{other}: its records do not fit the DTD of {name}: {}; `metatfc diff --dtds {other} {name}` lists the changes, and \
         `metatfc convert --to-dtd` converts a trace to another DTD",
        wrong.join("; ")
    ))
}

/// Returns the reasons why records of one schema cannot be converted to another.
fn differences(source: &Schema, target: &Schema) -> Vec<String> {
    let mut wrong = compat::problems(&target.dtd, &source.dtd);
    if let Err(unconvertible) = Converter::new(source, target, &ConvertOptions::default()) {
        wrong.push(unconvertible.to_string());
    }
    wrong
}

/// Returns whether byte arrays contain records of a section, because such records have the byte order of their trace
/// (spec 3.7).
pub(super) fn has_nested(schema: &Schema) -> bool {
    schema.dtd.records.iter().flat_map(|record| &record.leaves).any(|leaf| leaf.section.is_some())
}

/// Returns whether a DTD can describe only the heap of a single program. Traces with such a DTD cannot be merged,
/// because the addresses of different programs would collide.
pub(super) fn is_heap(schema: &Schema) -> bool {
    let is_model = |model: &Model| matches!(model.kind, ModelKind::Heap { .. });
    schema.dtd.models.iter().any(is_model) || dtd::is_built_in_heap(&schema.dtd)
}
