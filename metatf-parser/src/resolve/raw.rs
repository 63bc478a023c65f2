//! Checks the roles that describe the start and end of files without a header (spec 5.4).

use super::header_values;
use super::leaves::{Resolved, ResolvedLeaf};
use super::lookup::Lookup;
use super::model::{Model, ScopeIndex};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::{Interpretation, MAGIC, Names, RECORDS_SIZE, TRAILER, Width};
use crate::span::Span;

/// Checks the fields that have a role in files without a header. Also checks that exactly one section remains for the
/// records.
pub(super) fn check(model: &Model, resolved: &[Resolved], report: &mut Reporter) {
    let (mut magic, mut around, mut heads) = (None, Vec::new(), Vec::new());
    let mut sized = false;
    for record in resolved {
        let scope = model.records.get(record.layout.record).map_or(0, |r| r.scope);
        let is_element = model.scopes.get(scope).is_some_and(|s| s.stream == Some(record.layout.record));
        let has_magic = record.leaves.iter().any(|leaf| leaf.leaf.role() == Some(MAGIC));
        for (index, leaf) in record.leaves.iter().enumerate() {
            let Some(role @ (MAGIC | RECORDS_SIZE | TRAILER)) = leaf.leaf.role() else { continue };
            let place = place(model, record, index);
            let wrong = match role {
                MAGIC => not_magic(scope, leaf),
                RECORDS_SIZE => not_size(is_element && has_magic, leaf),
                _ => not_trailer(is_element, record),
            };
            if let Some((code, why)) = wrong.filter(|_| !leaf.broken) {
                report.add(
                    Draft::new(code, place, format!("`{}` cannot have the role \"{role}\": {why}", leaf.leaf.name))
                        .help(help(role)),
                );
            }
            if role == MAGIC {
                magic.get_or_insert(place);
            }
            if is_element {
                around.push(scope);
            }
            if is_element && role == MAGIC && !heads.contains(&scope) {
                heads.push(scope);
            }
            sized |= role == RECORDS_SIZE;
        }
    }
    let arrays = resolved.iter().flat_map(|record| &record.leaves).filter_map(|leaf| leaf.leaf.section);
    around.extend(arrays.filter_map(|number| model.scopes.iter().position(|s| s.number == Some(number))));
    let records = (1..model.scopes.len()).find(|scope| !around.contains(scope)).filter(|_| magic.is_some());
    header_values::check(model, resolved, records, report);
    if let Some(place) = magic {
        // The file may consist of the elements of its only start.
        let is_alone = heads.len() == 1 && !sized;
        one_section(model, place, (&around, is_alone), report);
    }
}

/// Returns the location that sets the role.
fn place(model: &Model, record: &Resolved, index: usize) -> Span {
    let Some(raw) = record.layout.leaves.get(index) else { return Span::PREDEFINED };
    let setting = Lookup::new(model, &record.layout, raw).annotation("role");
    setting.map_or(raw.site, |setting| setting.value_span.or(raw.site))
}

fn help(role: &str) -> &'static str {
    match role {
        MAGIC => {
            "give the field a `value`, or list its possible `values`: `magic.values = \"0xa1b2c3d4 microseconds\";`"
        }
        RECORDS_SIZE => "move the field to the stream section's element that contains the `magic` field",
        _ => "declare the data after the records as a section of bytes: `section trailer 3 { trailer: (byte) { .. } }`",
    }
}

fn not_magic(scope: ScopeIndex, leaf: &ResolvedLeaf) -> Option<(Code, &'static str)> {
    let why = match &leaf.leaf {
        _ if scope == 0 => "its record does not belong to a section",
        leaf if leaf.repeated => "it is repeated",
        leaf if !matches!(leaf.width, Width::Number(1..)) => "it is not a stored number",
        leaf if leaf.interpretation != Interpretation::None => "its interpretation is not `none`",
        leaf if leaf.constant.is_none() && !matches!(leaf.names, Names::Values(_)) => {
            "it has neither a `value` nor `values`"
        }
        _ => return None,
    };
    Some((Code::MagicField, why))
}

fn not_size(is_prologue: bool, leaf: &ResolvedLeaf) -> Option<(Code, &'static str)> {
    let why = match &leaf.leaf {
        _ if !is_prologue => "its record is not a stream section's element with a `magic` field",
        leaf if leaf.repeated => "it is repeated",
        leaf if !leaf.is_numeric() => "it is a byte array",
        _ => return None,
    };
    Some((Code::RawRole, why))
}

fn not_trailer(is_element: bool, record: &Resolved) -> Option<(Code, &'static str)> {
    let why = match record.leaves.as_slice() {
        _ if !is_element => "its record is not the element of a stream section",
        [only] if only.leaf.is_numeric() => return None,
        _ => "it is not a single number",
    };
    Some((Code::RawRole, why))
}

/// Checks that exactly one section remains for the records, or none if the start `is_alone`.
fn one_section(model: &Model, place: Span, (around, is_alone): (&[ScopeIndex], bool), report: &mut Reporter) {
    let left: Vec<&str> = (1..model.scopes.len())
        .filter(|scope| !around.contains(scope))
        .filter_map(|scope| Some(model.scopes.get(scope)?.ast.head.as_ref()?.name.text))
        .collect();
    let message = match left.as_slice() {
        [_] => return,
        [] if is_alone => return,
        [] => "no section remains for the records of a file with this header".to_owned(),
        several => {
            format!("the records of a file with this header may belong to several sections: {}", several.join(", "))
        }
    };
    let help = if left.is_empty() {
        "declare what follows the header, for example as single bytes: `section rest 9 { rest_byte: (byte) { \
         byte.width = 1; byte.interpretation = none; } }`"
    } else {
        "move all records of the file to one section; sections for the data before and after the records do not count, \
         and neither do the sections of byte arrays"
    };
    report.add(Draft::new(Code::RawSections, place, message).help(help));
}
