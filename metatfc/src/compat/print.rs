//! What changed, for people and for programs.

use super::change::Change;
use super::reads::Reads;
use super::{Report, Side};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Prints the changes, the version, and who reads what.
pub(super) fn text(report: &Report) -> String {
    let mut out = String::new();
    for change in &report.changes {
        let _ = writeln!(out, "{:6}  {}: {}", change.level.name(), change.place.text(), change.text);
    }
    if report.changes.is_empty() {
        out.push_str("nothing changed\n");
    }
    version(&mut out, report);
    reads(&mut out, "old readers, new traces", &report.forward);
    reads(&mut out, "new readers, old traces", &report.backward);
    out
}

fn version(out: &mut String, report: &Report) {
    let shown = |side: &Side| side.version.map_or_else(|| "none".to_owned(), |version| version.to_string());
    let (old, new) = (shown(&report.old), shown(&report.new));
    let change = report.level().map_or_else(|| "no change".to_owned(), |level| format!("a {} change", level.name()));
    let _ = match report.least() {
        Some(least) => {
            let verdict = if report.is_enough() { "" } else { ", which is not enough" };
            writeln!(out, "version: {old}, at least {least} after {change}; the new DTD has {new}{verdict}")
        }
        None => writeln!(out, "version: {old} in the old DTD, {new} in the new one; {change}"),
    };
}

fn reads(out: &mut String, who: &str, reads: &Reads) {
    let problems = [
        reads.refused.as_ref().map(|reason| format!("refused: {reason}")),
        Some(&reads.lacking).filter(|l| !l.is_empty()).map(|l| format!("0 or nothing for {}", l.join(", "))),
        Some(&reads.misread).filter(|m| !m.is_empty()).map(|m| format!("another meaning of {}", m.join(", "))),
    ];
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    let _ = match problems.as_slice() {
        [] => writeln!(out, "{who}: no break"),
        problems => writeln!(out, "{who}: break: {}", problems.join("; ")),
    };
}

/// The same for programs.
pub(super) fn json(report: &Report) -> Value {
    let side = |side: &Side| json!({ "file": side.name, "version": side.version.map(|version| version.to_string()) });
    let reads = |reads: &Reads| {
        json!({
            "break": reads.is_break(),
            "refused": reads.refused,
            "lacking": reads.lacking,
            "misread": reads.misread,
        })
    };
    json!({
        "old": side(&report.old),
        "new": side(&report.new),
        "changes": report.changes.iter().map(change).collect::<Vec<_>>(),
        "level": report.level().map(|level| level.name()),
        "least_version": report.least().map(|version| version.to_string()),
        "version_is_enough": report.is_enough(),
        "old_readers_new_traces": reads(&report.forward),
        "new_readers_old_traces": reads(&report.backward),
    })
}

fn change(change: &Change) -> Value {
    json!({
        "level": change.level.name(),
        "kind": change.kind.name(),
        "section": change.place.section,
        "record": change.place.record,
        "field": change.place.field,
        "text": change.text,
        "old": change.old,
        "new": change.new,
    })
}
