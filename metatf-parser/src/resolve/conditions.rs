//! Warns about conditions that never or always hold, because a field is too narrow (spec 3.3).

use super::leaves::Resolved;
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::{Comparison, Expr, ExprOp, Interpretation, LeafId, Width};
use crate::span::Span;

/// Checks the expressions of all records.
pub(super) fn check(resolved: &[Resolved], report: &mut Reporter) {
    for record in resolved {
        for (index, leaf) in record.leaves.iter().enumerate() {
            let width = if let Width::Variable(expression) = &leaf.leaf.width { Some(expression) } else { None };
            let Some(Expr(steps)) = leaf.leaf.computed.as_ref().or(width) else { continue };
            let place = record.layout.leaves.get(index).map_or(leaf.place, |raw| raw.site);
            for window in steps.windows(3) {
                let (id, most, what) = match window {
                    [ExprOp::Leaf(id), ExprOp::Bit(bit), _] => {
                        no_bit(record, *id, *bit, place, report);
                        continue;
                    }
                    [ExprOp::Leaf(id), ExprOp::Push(number), ExprOp::Compare(comparison)] => {
                        // A field is compared with 2^N to find whether N bits suffice, but is never equal to it.
                        let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
                        (*id, number.saturating_sub(u64::from(!is_equality)), format!("the value {number}"))
                    }
                    _ => continue,
                };
                beyond(record, id, most, &what, place, report);
            }
            for window in steps.windows(4) {
                if let [ExprOp::Leaf(id), ExprOp::Bit(first), ExprOp::Push(last @ 1..64), ExprOp::Sub] = window {
                    bit_range(record, *id, u64::from(*first), *last, place, report);
                }
            }
            if let [.., ExprOp::Leaf(id), ExprOp::Bit(bit)] = steps.as_slice() {
                no_bit(record, *id, *bit, place, report);
            }
        }
    }
}

/// Warns if a leaf, which the expression at `place` reads, does not have a bit.
fn no_bit(record: &Resolved, id: LeafId, bit: u8, place: Span, report: &mut Reporter) {
    let Some(leaf) = record.leaves.get(usize::from(id.0)).map(|leaf| &leaf.leaf) else { return };
    let Width::Number(width @ 1..8) = leaf.width else { return };
    let last = width * 8 - 1;
    if leaf.interpretation != Interpretation::None || bit <= last {
        return;
    }
    let name = &leaf.name;
    let larger = format!("`{name}: u{}`", (u32::from(bit) / 8 + 1) * 8);
    let (rule, help) = match report.source.text(place).filter(|_| bit == last + 1) {
        Some(text) => {
            let line = counted(text, &format!(".bit {bit}"), &format!(".bit {last}"), place, report);
            let line = line.unwrap_or_else(|| format!("{name}.bit {last}"));
            ("; bits are counted from 0", format!("write `{line}`, or, if the field is larger, {larger}"))
        }
        None => ("", format!("write {larger}, or change the expression")),
    };
    let message = format!("`{name}` has bits 0 to {last}, so it never has bit {bit}{rule}");
    report.add(Draft::new(Code::NeverHolds, place, message).help(help));
}

/// Returns the item of a list whose count is `text`, with another text in its count.
fn counted(text: &str, from: &str, to: &str, place: Span, report: &Reporter) -> Option<String> {
    // The site of a repetition is its count; that of any other field is its name.
    let is_count = text.starts_with('(') && text.matches(from).count() == 1;
    let item = report.source.following(place.end(), 80);
    let item = item.split([',', ')', '\n', '(']).next().filter(|item| is_count && item.starts_with('*'))?;
    Some(format!("{}{}", text.replace(from, to), item.trim()))
}

/// Warns about a number that is subtracted from a bit, which is probably meant as the last bit of a range.
fn bit_range(record: &Resolved, id: LeafId, first: u64, last: u64, place: Span, report: &mut Reporter) {
    let Some(leaf) = record.leaves.get(usize::from(id.0)).map(|leaf| &leaf.leaf) else { return };
    let range = format!(".bit {first}-{last}");
    let text = report.source.text(place).unwrap_or_default();
    // `x.bit 3 - 1` can be deliberate.
    if last == 1 && !text.contains(&range) {
        return;
    }
    let (low, high) = (first.min(last), first.max(last));
    let modulus = u128::from(2_u8) << (high - low);
    let value = match low {
        0 => format!(".value % {modulus}"),
        _ => format!(".value / {} % {modulus}", 1_u64 << low),
    };
    let line = counted(text, &range, &value, place, report).unwrap_or_else(|| format!("{}{value}", leaf.name));
    let message = format!("this expression subtracts {last} from bit {first} of `{}`", leaf.name);
    report.add(Draft::new(Code::NeverHolds, place, message).help(format!("for bits {low} to {high}, write `{line}`")));
}

/// Warns if a leaf, which the expression at `place` reads, is too narrow for a value.
fn beyond(record: &Resolved, id: LeafId, most: u64, what: &str, place: Span, report: &mut Reporter) {
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
