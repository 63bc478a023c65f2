//! Values from the header of a file (spec 5.4): `default header.field.value`.

use super::bases::PREDEFINED_RECORDS;
use super::layout::{Layout, RawLeaf};
use super::model::Model;
use crate::ast::Reference;
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::schema::{LeafId, RecordId};

/// Returns the leaf of a stream section's element to which a value refers. After all leaves are known,
/// [`header_values`](super::header_values) checks that the element is the header of a file.
pub(super) fn resolve(
    model: &Model,
    layouts: &[Layout],
    reference: &Reference,
    report: &mut Reporter,
) -> Option<(RecordId, LeafId)> {
    let (record, path) = reference.path.split_first()?;
    let is_element = |layout: &&Layout| is_element(model, layout.record);
    let name = |layout: &Layout| model.records.get(layout.record).map_or("", |record| record.ast.name.text);
    let Some(target) = layouts.iter().position(|layout| is_element(&layout) && name(layout) == record.text) else {
        let known = layouts.iter().filter(is_element).map(name);
        let first = known.clone().next().unwrap_or("HEADER");
        report.add(
            Draft::new(
                Code::HeaderField,
                reference.span,
                format!("no stream section has the element `{}`", record.text),
            )
            .help(format!("name the record of the file's header, as in `{LINE}`"))
            .line(record.span, first)
            .did_you_mean(record.span, record.text, known),
        );
        return None;
    };
    let layout = layouts.get(target)?;
    let Some(index) = layout.leaves.iter().position(|leaf: &RawLeaf| layout.has_path(leaf, 0, path)) else {
        let last = path.last()?;
        report.add(
            Draft::new(Code::HeaderField, reference.span, format!("`{}` has no field `{}`", record.text, last.text))
                .help(format!("name a field of `{}`, as in `{LINE}`", record.text))
                .line(last.span, layout.leaves.iter().find(|leaf| !leaf.is_tag).map_or("FIELD", |leaf| leaf.name))
                .did_you_mean(last.span, last.text, layout.leaves.iter().map(|leaf| leaf.name)),
        );
        return None;
    };
    Some((RecordId(u32::try_from(target + PREDEFINED_RECORDS).ok()?), LeafId(u8::try_from(index).ok()?)))
}

fn is_element(model: &Model, record: usize) -> bool {
    let scope = model.records.get(record).map_or(0, |record| record.scope);
    model.scopes.get(scope).is_some_and(|scope| scope.stream == Some(record))
}
