//! Warns about unused items (spec 3.1).

use std::collections::HashSet;

use super::model::{Field, Model, PREDEFINED_TAGGED, RecordIndex, ScopeIndex, VFIELD};
use super::{streams, tags};
use crate::ast::FieldItem;
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::foreign;
use crate::nearest::near_property;
use crate::span::Span;
use crate::vocabulary::TYPES;

pub(super) fn check(model: &Model, predefined: [u32; 3], report: &mut Reporter) {
    records(model, predefined, report);
    misspelt(model, report);
    if model.records.len() == VFIELD + 1 && !report.failed() {
        report.add(
            Draft::new(Code::NoRecords, Span::at(report.source.start), "this DTD declares no records")
                .help("declare a record, for example `section log 1 { event: (time) { tag.value = 4; } }`"),
        );
    }
    for scope in 0..model.scopes.len() {
        properties(model, scope, report);
    }
}

/// Reports untagged records that are neither nested in another record nor the element of a stream section.
fn records(model: &Model, predefined: [u32; 3], report: &mut Reporter) {
    let named = streams::named_sections(model);
    for (index, record) in model.records.iter().enumerate().skip(VFIELD + 1) {
        let is_element = model.scopes.get(record.scope).is_some_and(|s| s.stream == Some(index));
        // The reference to a section with several untagged records has been reported.
        let number = model.scopes.get(record.scope).and_then(|s| s.number);
        let is_named = number.is_some_and(|number| named.contains(&u64::from(number)));
        if !record.tagged && !record.nested && !is_element && record.named && !is_named {
            let name = record.name();
            // Without parentheses, the type is the only field of the record.
            let kind = if let FieldItem::Name(kind) = &record.ast.fields { kind.text } else { "" };
            if let Some(kind) = TYPES.into_iter().find(|known| *known == kind).or_else(|| foreign::type_name(kind)) {
                report.add(
                    Draft::new(Code::UnusedRecord, record.ast.name.span, format!("nothing uses the untagged record `{name}`"))
                        .help(format!(
                            "write `type {name}: {kind};` for a type, or list the field in a record: `NAME: ({name}: {kind})`"
                        )),
                );
                continue;
            }
            report.add(
                Draft::new(
                    Code::UnusedRecord,
                    record.ast.name.span,
                    format!("nothing uses the untagged record `{}`", record.name()),
                )
                .help(format!(
                    "write `tag.value = {};` in its block, or list the record as a field, as in `NAME: ({})`",
                    tags::next_tag(model, predefined),
                    record.name()
                )),
            );
        }
    }
}

/// Reports annotations that are probably misspelled properties, except those mentioned in an error.
fn misspelt(model: &Model, report: &mut Reporter) {
    let scopes = model.scopes.iter().flat_map(|s| &s.ast.properties);
    for setting in scopes.chain(model.records.iter().flat_map(|r| &r.ast.block)) {
        let (Some(meant), name) = (setting.misspells(), &setting.name) else { continue };
        if !report.has_reported(&[Code::NoWidth, Code::NoInterpretation, Code::TagWithoutValue], name.span) {
            let (meant, path) = (meant.name(), setting.path_text());
            let draft = Draft::new(Code::MisspeltProperty, name.span, format!("`{}` is not a property", name.text))
                .label(format!("did you mean `{meant}`?"))
                .help(format!("write `{LINE}`, or `{path}.\"{}\"` for an annotation", name.text))
                .line(name.span, meant);
            // A word such as `enum` can be a deliberate annotation.
            let is_typo = near_property(name.text).is_some();
            report.add(if is_typo { draft.replace(name.span, meant) } else { draft.propose(name.span, meant) });
        }
    }
}

/// Reports properties of a section or the top level for a field name that does not occur in any record there. Each name
/// is reported once.
fn properties(model: &Model, scope: ScopeIndex, report: &mut Reporter) {
    let Some((slots, types)) = model.scopes.get(scope).map(|s| (&s.slots, &s.types)) else { return };
    if slots.iter().next().is_none() && types.is_empty() {
        return;
    }
    let used = names(model, scope);
    let named: HashSet<&str> = model
        .records
        .iter()
        .flat_map(|record| &record.types)
        .chain(model.scopes.iter().flat_map(|scope| &scope.types))
        .filter_map(|(_, (typed, _))| typed.word.map(|word| word.text))
        .collect();
    // A field with a mistake may be meant to have the type.
    let types = if report.failed() { None } else { Some(types) };
    for (name, (typed, _)) in
        types.into_iter().flatten().filter(|(name, _)| !used.contains(*name) && !named.contains(*name))
    {
        report.add(
            Draft::new(Code::UnusedProperty, typed.name.span, format!("no field has the type or the name `{name}`"))
                .help(format!("remove the type, or use it in a field list, as in `size: {name}`")),
        );
    }
    for first in slots.iter().filter_map(|slot| slot.first()) {
        let Some(name) = first.path.first().map(|n| n.text) else { continue };
        let predefined = first.path.len() == 2 && PREDEFINED_TAGGED.contains(&name);
        let is_type = model.scopes.get(scope).is_some_and(|s| s.types.contains_key(name));
        if name == "tag" || predefined || is_type || used.contains(name) {
            continue;
        }
        report.add(
            Draft::new(Code::UnusedProperty, first.target(), format!("no record in this scope has a field `{name}`"))
                .help(format!("remove `{LINE}`, or list the field in a record, as in `NAME: ({name}: u32)`"))
                .quote(first.target())
                .did_you_mean(first.path.first().map_or(Span::PREDEFINED, |n| n.span), name, used.iter().copied()),
        );
    }
}

/// Returns the leaf names of the records of a scope, and of all records nested in them. The global scope covers every
/// record.
fn names<'m>(model: &'m Model, scope: ScopeIndex) -> HashSet<&'m str> {
    let records = reached(model, scope).into_iter().filter_map(|index| model.records.get(index));
    let fields = records.flat_map(|record| &record.fields);
    fields.filter(|(_, field)| *field == Field::Leaf).map(|(name, _)| *name).collect()
}

/// Returns the records of a scope and all records nested in them. The global scope covers every record. Predefined
/// records are excluded, because only properties set in blocks apply to them.
pub(super) fn reached(model: &Model, scope: ScopeIndex) -> Vec<RecordIndex> {
    let mut open: Vec<RecordIndex> = match model.scopes.get(scope) {
        Some(section) if scope != 0 => section.records.clone(),
        _ => (0..model.records.len()).collect(),
    };
    let mut seen: HashSet<RecordIndex> = open.iter().copied().collect();
    let mut all = Vec::new();
    while let Some(index) = open.pop() {
        if index == VFIELD {
            continue;
        }
        all.push(index);
        for (_, field) in model.records.get(index).into_iter().flat_map(|r| &r.fields) {
            match field {
                Field::Record(nested) if seen.insert(*nested) => open.push(*nested),
                Field::Leaf | Field::Record(_) | Field::Wrong => {}
            }
        }
    }
    all
}
