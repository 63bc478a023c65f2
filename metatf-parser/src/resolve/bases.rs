//! Bases such as `baseOffset record.field.value` (spec 4), which are the last value of a leaf in a record of the same
//! section.

use super::layout::{Layout, RawLeaf};
use super::model::{Model, ScopeIndex, VFIELD, Visible};
use crate::ast::Reference;
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::schema::{Interpretation, LeafId, RecordId};

/// Number of predefined records, which come first in [`crate::schema::Dtd::records`].
pub(super) const PREDEFINED_RECORDS: usize = 3;

/// Returns the leaf to which a base refers. This is the leaf at a path from the record's fields, or the first leaf with
/// that name anywhere in the record. After all leaves are known, [`referenced`](super::referenced) checks that the leaf
/// is a number.
pub(super) fn resolve(
    model: &Model,
    layouts: &[Layout],
    scope: ScopeIndex,
    reference: &Reference,
    report: &mut Reporter,
) -> Option<Interpretation> {
    let (record, path) = reference.path.split_first()?;
    let target = match model.visible(scope, record.text) {
        Visible::Record(index) if index != VFIELD => layouts.iter().position(|l| l.record == index),
        _ => None,
    };
    let Some(target) = target else {
        // A record that exists but could not be laid out has already been reported.
        if !matches!(model.visible(scope, record.text), Visible::Record(i) if model.records.get(i).is_some_and(|r| r.tagged))
        {
            unknown_record(model, scope, reference, report);
        }
        return None;
    };
    let layout = layouts.get(target)?;
    let exact = |leaf: &RawLeaf| layout.has_path(leaf, 0, path);
    let named = |leaf: &RawLeaf| matches!(path, [only] if only.text == leaf.name);
    let index = layout.leaves.iter().position(exact).or_else(|| layout.leaves.iter().position(named));
    let index = index.filter(|i| layout.leaves.get(*i).is_some_and(|l| !l.is_tag));
    let Some(index) = index else {
        let name = path.last()?;
        report.add(
            Draft::new(
                Code::BaseUnknown,
                reference.span,
                format!("record `{}` has no number field `{}` to use as a base", record.text, name.text),
            )
            .help(format!("a base is a number of `{}`, but not its tag, as in `{LINE}`", record.text))
            .line(name.span, layout.leaves.iter().find(|leaf| !leaf.is_tag).map_or("FIELD", |leaf| leaf.name))
            .did_you_mean(name.span, name.text, layout.leaves.iter().filter(|l| !l.is_tag).map(|l| l.name)),
        );
        return None;
    };
    let id = u32::try_from(target + PREDEFINED_RECORDS).ok()?;
    Some(Interpretation::BaseOffsetOf(RecordId(id), LeafId(u8::try_from(index).ok()?)))
}

fn unknown_record(model: &Model, scope: ScopeIndex, reference: &Reference, report: &mut Reporter) {
    let Some(record) = reference.path.first() else { return };
    let tops = model.top_records(scope);
    let names = tops.iter().filter_map(|r| model.records.get(*r)).map(|r| r.ast.name.text);
    let first = names.clone().next();
    report.add(
        Draft::new(
            Code::BaseUnknown,
            reference.span,
            format!("this section has no record `{}` to use as a base", record.text),
        )
        .help(format!("use a record of the same section or the top level, as in `{LINE}`"))
        .line(record.span, first.unwrap_or("RECORD"))
        .did_you_mean(record.span, record.text, names),
    );
}
