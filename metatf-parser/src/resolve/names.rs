//! Checks that the names of sections and records are unique and not predefined, and checks the section numbers (spec
//! 3.1, 3.2).

use std::collections::HashMap;

use super::model::{Budget, Model, PREDEFINED_TAGGED, RecordModel, ScopeModel, VFIELD};
use super::properties::NameLists;
use crate::ast::{self, Ast, Name};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::schema::Origin;
use crate::vocabulary::Property;

/// Returns the model with all scopes and records, but without fields and properties.
pub(super) fn collect<'a>(ast: &'a Ast<'a>, vfield: &'a ast::Record<'a>, report: &mut Reporter) -> Model<'a> {
    let mut model = Model {
        scopes: Vec::new(),
        records: Vec::new(),
        tag_width: Some(1),
        budget: Budget::new(),
        lists: NameLists::new(),
        unparsed: &ast.unparsed,
    };
    model.records.push(record(vfield, 0));
    let numbers = || ast.scopes.iter().filter_map(|scope| scope.head.as_ref()?.number?.natural());
    let used: std::collections::HashSet<u64> = numbers().collect();
    let free = (1..=255).find(|number| !used.contains(number));
    for (index, scope) in ast.scopes.iter().enumerate() {
        let number = if index == 0 { Some(0) } else { section_number(scope, free, report) };
        let mut names = HashMap::new();
        if index == 0 {
            names.insert("vfield", VFIELD);
        }
        let first = model.records.len();
        model.records.extend(scope.records.iter().map(|r| record(r, index)));
        model.scopes.push(ScopeModel {
            ast: scope,
            number,
            names,
            records: (first..model.records.len()).collect(),
            slots: Default::default(),
            types: Default::default(),
            stream: None,
        });
    }
    unique_sections(&mut model, report);
    unique_records(&mut model, report);
    model
}

fn record<'a>(ast: &'a ast::Record<'a>, scope: usize) -> RecordModel<'a> {
    RecordModel {
        ast,
        scope,
        origin: Origin::Block(ast.name.text.into()),
        tagged: ast.block.iter().any(|p| p.is("tag", Property::Value)),
        lists_tag: false,
        named: true,
        sound: true,
        nested: false,
        fields: Vec::new(),
        slots: Default::default(),
        types: Default::default(),
    }
}

fn section_number(scope: &ast::Scope, free: Option<u64>, report: &mut Reporter) -> Option<u8> {
    let head = scope.head.as_ref()?;
    let number = head.number?;
    let natural = number.natural().and_then(|n| u8::try_from(n).ok()).filter(|n| *n != 0);
    if natural.is_none() {
        report.add(
            Draft::new(Code::SectionNumber, number.span, "a section number must be 1 to 255")
                .help(match number.natural() {
                    Some(0) => format!("write `{LINE}`: 0 is the number of the top level, which needs no declaration"),
                    _ => format!("write `{LINE}`, or another number that no section has"),
                })
                .line(number.span, free.unwrap_or(1).to_string()),
        );
    }
    natural
}

fn unique_sections(model: &mut Model, report: &mut Reporter) {
    let mut names: HashMap<&str, &Name> = HashMap::new();
    let mut numbers = HashMap::new();
    let used: Vec<u8> = model.scopes.iter().filter_map(|scope| scope.number).collect();
    for scope in &mut model.scopes {
        let Some(head) = &scope.ast.head else { continue };
        if let Some(first) = names.get(head.name.text) {
            let message = format!("two sections are called `{}`", head.name.text);
            report.add(
                Draft::new(Code::SectionNameTwice, head.name.span, message)
                    .also(first.span, "first defined here")
                    .help(format!("rename one of them, as in `{LINE}`"))
                    .line(head.name.span, format!("{}_2", head.name.text)),
            );
        } else {
            names.insert(head.name.text, &head.name);
        }
        let (Some(number), Some(place)) = (scope.number, head.number.map(|n| n.span)) else { continue };
        if let Some(first) = numbers.get(&number) {
            report.add(
                Draft::new(Code::SectionNumberTwice, place, format!("two sections have the number {number}"))
                    .also(*first, "first used here")
                    .help(match (1..=255).find(|number| !used.contains(number)) {
                        Some(free) => format!("write `section {} {free} {{`", head.name.text),
                        None => "give one section a different number from 1 to 255".to_owned(),
                    }),
            );
            scope.number = None;
        } else {
            numbers.insert(number, place);
        }
    }
}

/// Checks that record names are unique (spec 3.1). The first record in the text keeps the name.
fn unique_records(model: &mut Model, report: &mut Reporter) {
    for index in 1..model.records.len() {
        let Some(record) = model.records.get(index) else { continue };
        let name = &record.ast.name;
        if PREDEFINED_TAGGED.contains(&name.text) || name.text == "vfield" {
            report.add(
                Draft::new(
                    Code::ReservedRecord,
                    name.span,
                    format!("`{}` is a predefined record and cannot be declared", name.text),
                )
                .help(format!("rename this record, as in `{LINE}`"))
                .line(name.span, format!("my_{}", name.text)),
            );
            unname(model, index);
        } else if let Some(first) = model.scopes.get(record.scope).and_then(|s| s.names.get(name.text)) {
            duplicate(model, *first, index, report);
        } else {
            let scope = record.scope;
            let key = name.text;
            if let Some(scope) = model.scopes.get_mut(scope) {
                scope.names.insert(key, index);
            }
        }
    }
    hidden_globals(model, report);
}

/// Checks that no record of a section has the name of a global record, regardless of which comes first in the text.
fn hidden_globals(model: &mut Model, report: &mut Reporter) {
    for index in 1..model.records.len() {
        let Some(record) = model.records.get(index).filter(|r| r.scope != 0 && r.named) else { continue };
        let global = model.scopes.first().and_then(|s| s.names.get(record.name())).copied();
        if let Some(global) = global {
            duplicate(model, global, index, report);
        }
    }
}

fn duplicate(model: &mut Model, one: usize, other: usize, report: &mut Reporter) {
    let (Some(a), Some(b)) = (model.records.get(one), model.records.get(other)) else { return };
    let (first, second) =
        if a.ast.name.span <= b.ast.name.span { (&a.ast.name, &b.ast.name) } else { (&b.ast.name, &a.ast.name) };
    let message = if a.scope == b.scope {
        format!("two records are called `{}`", second.text)
    } else {
        format!("a section's record and a global record are both called `{}`", second.text)
    };
    report.add(
        Draft::new(Code::RecordTwice, second.span, message)
            .also(first.span, "first defined here")
            .help(format!("rename one of them, as in `{LINE}`"))
            .line(second.span, format!("{}_2", second.text)),
    );
    unname(model, other);
}

/// Hides a record with an invalid name from lookup. Its definition is still checked.
fn unname(model: &mut Model, index: usize) {
    let Some(record) = model.records.get_mut(index) else { return };
    record.named = false;
    let (scope, name) = (record.scope, record.ast.name.text);
    if let Some(scope) = model.scopes.get_mut(scope)
        && scope.names.get(name) == Some(&index)
    {
        scope.names.remove(name);
    }
}
