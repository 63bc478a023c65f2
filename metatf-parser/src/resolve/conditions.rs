//! Warns about conditions that never or always hold, because a field is too narrow (spec 3.3).

use super::leaves::Resolved;
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::{Comparison, Expr, ExprOp, Interpretation, LeafId, Width};

/// Checks the expressions of all records.
pub(super) fn check(resolved: &[Resolved], report: &mut Reporter) {
    for record in resolved {
        for (index, leaf) in record.leaves.iter().enumerate() {
            let width = if let Width::Variable(expression) = &leaf.leaf.width { Some(expression) } else { None };
            let Some(Expr(steps)) = leaf.leaf.computed.as_ref().or(width) else { continue };
            let place = record.layout.leaves.get(index).map_or(leaf.place, |raw| raw.site);
            for window in steps.windows(3) {
                let (id, most, what) = match window {
                    [ExprOp::Leaf(id), ExprOp::Bit(bit), _] => (*id, 1_u64 << bit, format!("bit {bit}")),
                    [ExprOp::Leaf(id), ExprOp::Push(number), ExprOp::Compare(comparison)] => {
                        // A field is compared with 2^N to find whether N bits suffice, but is never equal to it.
                        let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
                        (*id, number.saturating_sub(u64::from(!is_equality)), format!("the value {number}"))
                    }
                    _ => continue,
                };
                beyond(record, id, most, &what, place, report);
            }
            if let [.., ExprOp::Leaf(id), ExprOp::Bit(bit)] = steps.as_slice() {
                beyond(record, *id, 1 << bit, &format!("bit {bit}"), place, report);
            }
        }
    }
}

/// Warns if a leaf, which the expression at `place` reads, is too narrow for a value.
fn beyond(record: &Resolved, id: LeafId, most: u64, what: &str, place: crate::span::Span, report: &mut Reporter) {
    let Some(leaf) = record.leaves.get(usize::from(id.0)).map(|leaf| &leaf.leaf) else { return };
    let Width::Number(width @ 1..8) = leaf.width else { return };
    if leaf.interpretation != Interpretation::None || most >> (u32::from(width) * 8) == 0 {
        return;
    }
    let bytes = (width..8).find(|bytes| most >> (u32::from(*bytes) * 8) == 0).unwrap_or(8);
    let plural = if width == 1 { "" } else { "s" };
    let message = format!("`{}` has {width} byte{plural}, so it never has {what}", leaf.name);
    report.add(Draft::new(Code::NeverHolds, place, message).help(format!(
        "write `{}: u{}`, or change the expression",
        leaf.name,
        u32::from(bytes) * 8
    )));
}
