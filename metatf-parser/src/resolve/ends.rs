//! Checks byte arrays and repetitions whose end depends on the content (spec 3.2, 3.3).

use super::leaves::{Resolved, ResolvedLeaf};
use super::lines;
use super::model::Model;
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::{Expr, ExprOp, Interpretation, Width};
use crate::span::Span;

/// The way in which the end of a repetition or byte array depends on the content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// At the end of the content.
    Rest,
    /// After an item.
    Until,
}

/// Returns how the end of the leaf's bytes, or of the items that the leaf counts, depends on the content.
fn ends(leaf: &ResolvedLeaf) -> Option<Ends> {
    match (&leaf.leaf.width, leaf.leaf.computed.as_ref().map(|Expr(steps)| steps.as_slice())) {
        (Width::Rest, _) | (_, Some([ExprOp::Rest])) => Some(Ends::Rest),
        (_, Some([.., ExprOp::Until])) => Some(Ends::Until),
        _ => None,
    }
}

/// Checks every record.
pub(super) fn check(model: &Model, resolved: &[Resolved], report: &mut Reporter) {
    for record in resolved {
        for (index, leaf) in record.leaves.iter().enumerate() {
            let Some(ends) = ends(leaf) else { continue };
            if ends == Ends::Rest {
                rest(model, record, index, report);
            }
            if leaf.leaf.computed.is_some() {
                streams(record, index, report);
            }
        }
    }
}

/// Returns the first leaf of a record that extends to the end of the content.
pub(super) fn extends(record: &Resolved) -> Option<Span> {
    let at = record.leaves.iter().position(|leaf| ends(leaf) == Some(Ends::Rest))?;
    record.layout.leaves.get(at).map(|raw| raw.site)
}

/// Checks that the part which extends to the end of the content occurs exactly once, and that the size of the leaves
/// after it is known.
fn rest(model: &Model, record: &Resolved, index: usize, report: &mut Reporter) {
    let (Some(leaf), Some(raw)) = (record.leaves.get(index), record.layout.leaves.get(index)) else { return };
    let is_count = leaf.leaf.computed.is_some();
    let (name, line) = if is_count {
        ("a repetition `(rest)*`".to_owned(), "`r: (a, (rest)*item, b)`".to_owned())
    } else {
        (format!("`{}`", leaf.leaf.name), format!("`{}.width = length.value;`", leaf.leaf.name))
    };
    if !raw.repeats.is_empty() {
        report.add(
            Draft::new(
                Code::RestPlace,
                raw.site,
                format!("{name} extends to the end, so it cannot be repeated or optional"),
            )
            .label("in a repetition")
            .help(if is_count {
                format!("list it outside of all repetitions, as in {line}")
            } else {
                format!("list it outside of all repetitions, or state its length, as in {line}")
            }),
        );
        return;
    }
    let first = if is_count { record.layout.counted(index).0.end } else { index + 1 };
    let after = record.leaves.iter().zip(&record.layout.leaves).skip(first);
    if let Some((_, at)) = after.clone().find(|(leaf, _)| ends(leaf) == Some(Ends::Rest)) {
        // The first item of the second repetition, if this record lists the item.
        let repeated = after.clone().find(|(_, leaf)| !leaf.repeats.is_empty() && leaf.frame == raw.frame);
        let place = repeated.map_or(at.site, |(_, leaf)| leaf.site);
        report.add(
            Draft::new(
                Code::RestPlace,
                place,
                format!("{name} extends to the end, so nothing else can extend to the end"),
            )
            .also(raw.site, "extends to the end")
            .help(if is_count {
                "count the items of the first repetition, as in `n: u16, n*item`".to_owned()
            } else {
                format!("state the length of the first one, as in {line}")
            }),
        );
        return;
    }
    let is_fixed = |leaf: &ResolvedLeaf| matches!(leaf.leaf.width, Width::Unset | Width::Number(_) | Width::Array(_));
    let mut varying = after.filter(|(leaf, raw)| !leaf.broken && (!is_fixed(leaf) || !raw.repeats.is_empty()));
    if let Some((other, at)) = varying.next() {
        let last = varying.next_back().map_or(at.site, |(_, raw)| raw.site);
        let ast = record.layout.frames.get(raw.frame).and_then(|frame| model.records.get(frame.record));
        let line = ast.and_then(|record| lines::moved(report.source, record.ast, raw.site, last));
        let rule = "only fields of a fixed width can follow";
        let of = if other.leaf.computed.is_some() { "items whose number" } else { "a field whose size" };
        report.add(
            Draft::new(Code::RestPlace, at.site, format!("{name} extends to the end, but {of} varies follows"))
                .also(raw.site, "extends to the end")
                .help(match line {
                    Some(line) => format!("write `{line}`: {rule} {name}"),
                    None => format!("{rule}: give the field a number as its width, or list it first"),
                }),
        );
    }
}

/// Checks that the items can be counted, and a written record checked, without moving a cursor or changing a model.
fn streams(record: &Resolved, index: usize, report: &mut Reporter) {
    let uses = |leaf: &&ResolvedLeaf| {
        matches!(leaf.leaf.interpretation, Interpretation::SectionStride { .. } | Interpretation::Predicted(_))
    };
    if let Some(leaf) = record.leaves.iter().find(uses) {
        let word = leaf.leaf.interpretation.parts().word.name();
        let message = format!("`{}` cannot be `{word}` in a record whose items are not counted", leaf.leaf.name);
        report.add(
            Draft::new(Code::ScannedItems, leaf.place, message)
                .also(record.layout.leaves.get(index).map_or(Span::PREDEFINED, |raw| raw.site), "ends the items")
                .help(format!(
                    "store the value in the record, as in `{0}: u32`, or store the number of items, as in `n: u16, n*item`",
                    leaf.leaf.name
                )),
        );
    }
}
