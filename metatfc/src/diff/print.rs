//! What a comparison found, for people and for programs.

use super::Side;
use crate::output::count;
use metatf::dynamic::compare::{Comparison, Difference, Named, RecordSummary, Shown, What, Which};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Longer values are cut.
const LONGEST: usize = 120;

/// Prints a comparison for people: nothing where nothing differs.
pub(super) fn text(sides: &[Side; 2], result: &Comparison, details: bool) -> String {
    let mut out = String::new();
    for only in &result.only {
        let _ = writeln!(out, "only in {}: {}", sides[only.which as usize].name, only.what);
    }
    if result.nothing_in_common {
        let _ = writeln!(out, "the traces have no record in common: nothing was compared");
    }
    if result.is_same() {
        return out;
    }
    for summary in result.records.iter().filter(|summary| !summary.is_same()) {
        summary_line(&mut out, sides, summary);
    }
    let same = || result.records.iter().filter(|summary| summary.is_same());
    if same().count() > 0 {
        let records = same().map(|summary| summary.compared).sum::<u64>();
        let _ = writeln!(out, "the same: {} of {}", count(records, "record"), count(same().count(), "type"));
    }
    for Difference { section, records, .. } in &result.out_of_step {
        let [Some(left), Some(right)] = records else { continue };
        let section = section.as_deref().unwrap_or("(global)");
        let _ = writeln!(
            out,
            "{section} is out of step from {} {} on, which meets {} {}: from there on records are only counted",
            left.record, left.number, right.record, right.number
        );
    }
    // Differences of metadata are in no count.
    let is_metadata = |difference: &&Difference| matches!(difference.what, What::User(..) | What::Dtd);
    let listed = result.differences.iter().filter(|difference| !is_metadata(difference));
    for (n, difference) in listed.enumerate() {
        out += if details || n > 0 { "" } else { "first: " };
        line(&mut out, sides, difference);
    }
    for difference in result.differences.iter().filter(is_metadata) {
        line(&mut out, sides, difference);
    }
    if result.stopped {
        let option = if details { "--max" } else { "--details" };
        let _ = writeln!(out, "there are more differences: {option} lists them");
    }
    out
}

/// `heap alloc: 3 records in a.mtf, 4 in b.mtf; of 2 compared 1 differs: size 1`
fn summary_line(out: &mut String, sides: &[Side; 2], summary: &RecordSummary) {
    let RecordSummary { section, record, counts: [left, right], compared, differ, fields } = summary;
    let section = section.as_deref().map(|section| format!("{section} ")).unwrap_or_default();
    let all = left == right && left == compared;
    let _ = write!(out, "{section}{record}: ");
    if left != right {
        let [a, b] = sides.each_ref().map(|side| &side.name);
        let _ = write!(out, "{} in {a}, {right} in {b}", count(*left, "record"));
    } else if !all {
        let _ = write!(out, "{}", count(*left, "record"));
    }
    let fields: Vec<String> = fields.iter().map(|(name, n)| format!("{name} in {n}")).collect();
    let verb = if *differ == 1 { "differs" } else { "differ" };
    let fields = fields.join(", ");
    let _ = match (all, differ) {
        (true, _) => write!(out, "{differ} of {} {verb}: {fields}", count(*left, "record")),
        (false, _) if *compared == 0 => Ok(()),
        (false, 0) => write!(out, "; of {compared} compared, none differs"),
        (false, _) => write!(out, "; of {compared} compared, {differ} {verb}: {fields}"),
    };
    out.push('\n');
}

fn line(out: &mut String, sides: &[Side; 2], difference: &Difference) {
    let section = difference.section.as_deref().unwrap_or("(global)");
    let name = |which: usize| &sides[which].name;
    let named = |n: &Named| format!("{} {}", n.record, n.number);
    let _ = match (&difference.what, &difference.records) {
        (What::Field(field, values), [Some(l), Some(r)]) => {
            let place = if l == r { named(l) } else { format!("{} (in the second: {})", named(l), r.number) };
            let [a, b] = values.each_ref().map(|v| v.as_ref().map_or_else(|| "(none)".to_owned(), value));
            writeln!(out, "{section} {place}: {field}: {a} != {b}")
        }
        (What::Record, [Some(l), Some(r)]) => writeln!(out, "{section} {} != {}", named(l), named(r)),
        (What::More(which, more), records) => {
            let first = records[*which as usize].as_ref().map(named).unwrap_or_default();
            let other = 1 - *which as usize;
            writeln!(
                out,
                "{section} {first}: {} has {more} more from here, {} has no more",
                name(*which as usize),
                name(other)
            )
        }
        (What::User(key, values), _) => {
            let [a, b] = values.each_ref().map(|v| v.as_deref().unwrap_or("(none)"));
            writeln!(out, "user metadata {key}: {a} != {b}")
        }
        (What::Dtd, _) => writeln!(out, "the texts of the DTDs differ"),
        (What::Field(..) | What::Record, _) => Ok(()),
    };
}

fn value(shown: &Shown) -> String {
    let text = &shown.text;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}... ({} characters)", &text[..end], text.chars().count()),
        None => text.clone(),
    }
}

/// Prints a comparison for programs.
pub(super) fn json(sides: &[Side; 2], result: &Comparison) -> Value {
    let side = |which: Which| if which == Which::Left { "left" } else { "right" };
    let only: Vec<Value> = result.only.iter().map(|o| json!({ "in": side(o.which), "what": o.what })).collect();
    json!({
        "left": sides[0].name,
        "right": sides[1].name,
        "same": result.is_same(),
        "compared": result.compared,
        "records": result.records.iter().map(summary_json).collect::<Vec<_>>(),
        "out_of_step": result.out_of_step.iter().map(difference_json).collect::<Vec<_>>(),
        "stopped": result.stopped,
        "only": only,
        "differences": result.differences.iter().map(difference_json).collect::<Vec<_>>(),
    })
}

fn summary_json(summary: &RecordSummary) -> Value {
    let fields: Map<String, Value> = summary.fields.iter().map(|(name, n)| (name.clone(), (*n).into())).collect();
    json!({
        "section": summary.section,
        "record": summary.record,
        "left": summary.counts[0],
        "right": summary.counts[1],
        "compared": summary.compared,
        "differ": summary.differ,
        "fields": fields,
    })
}

fn difference_json(difference: &Difference) -> Value {
    let record = |n: &Option<Named>| match n {
        Some(n) => json!({ "record": n.record, "number": n.number }),
        None => Value::Null,
    };
    let [left, right] = difference.records.each_ref().map(record);
    match &difference.what {
        What::Field(field, values) => {
            // The values are JSON.
            let [a, b] = values
                .each_ref()
                .map(|v| v.as_ref().and_then(|v| serde_json::from_str(&v.json).ok()).unwrap_or(Value::Null));
            json!({
                "what": "field", "section": difference.section, "left": left, "right": right,
                "field": field, "values": [a, b],
            })
        }
        What::Record => json!({ "what": "record", "section": difference.section, "left": left, "right": right }),
        What::More(_, records) => json!({
            "what": "more", "section": difference.section, "left": left, "right": right, "records": records,
        }),
        What::User(key, values) => {
            let [a, b] = values
                .each_ref()
                .map(|v| v.as_deref().and_then(|v| serde_json::from_str(v).ok()).unwrap_or(Value::Null));
            json!({ "what": "user metadata", "key": key, "values": [a, b] })
        }
        What::Dtd => json!({ "what": "dtd" }),
    }
}
