//! Assigns properties to their scopes (spec 3.1). In a record's block, a path starts at one of the record's fields;
//! elsewhere, the path is a single field name.

use super::model::{Field, Model, PREDEFINED_TAGGED, RecordIndex, ScopeIndex, VFIELD};
use super::properties;
use super::slots::Slots;
use crate::ast::{self, FieldItem, Name, Setting, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::vocabulary::{OnTag, Property};

/// Fills the slots of every scope and block.
pub(super) fn fill(model: &mut Model, report: &mut Reporter) {
    for index in 0..model.scopes.len() {
        scope(model, index, report);
    }
    for index in 0..model.records.len() {
        block(model, index, report);
    }
}

fn scope(model: &mut Model, index: ScopeIndex, report: &mut Reporter) {
    let Some(scope) = model.scopes.get_mut(index) else { return };
    let mut settings = Vec::new();
    for setting in &scope.ast.properties {
        properties::check(setting, &mut model.lists, report);
        match setting.path.as_slice() {
            [name] if name.text == "tag" => tag_in_scope(index, setting, report),
            [_] => {}
            [record, tag] if PREDEFINED_TAGGED.contains(&record.text) && tag.text == "tag" => {
                predefined_tag(index, setting, report);
            }
            _ => {
                report.add(
                    Draft::new(
                        Code::PathOutsideBlock,
                        setting.target(),
                        "outside a record block, a property path must be a single field name",
                    )
                    .help(
                        "move the property into the block of the record that nests the field, or use only the field \
                         name",
                    ),
                );
                continue;
            }
        }
        settings.push(setting);
    }
    scope.slots = Slots::new(settings, report);
}

const NEVER_ON_TAG: &str = "remove the property: a tag is a plain number with the interpretation `none`";

/// Checks a property of `tag` in a scope. Only the width of `tag` can be set, at the top level (spec 3.2).
fn tag_in_scope(scope: ScopeIndex, setting: &Setting, report: &mut Reporter) {
    let help = match setting.property.map(Property::on_tag) {
        Some(OnTag::TopLevel) if scope != 0 => {
            "move the property to the top level: all tags of a trace have the same width"
        }
        Some(OnTag::Block) => "set the value in the block of each record, as in `ev: (a: u16) { tag.value = 4; }`",
        Some(OnTag::Never) => NEVER_ON_TAG,
        Some(OnTag::TopLevel | OnTag::Anywhere) | None => return,
    };
    tag_property(setting, help, report);
}

/// Checks a property of a predefined record's tag. The top level of a DTD can set the tag to another value (spec 3.2).
fn predefined_tag(scope: ScopeIndex, setting: &Setting, report: &mut Reporter) {
    if scope != 0 || setting.property.is_some_and(|property| property != Property::Value) {
        let message = format!("`{}.{}` cannot be set here", setting.path_text(), setting.name.text);
        report.add(
            Draft::new(Code::TagProperty, setting.target(), message).help(
                "for `comment`, `section` and `metadata`, only `tag.value` can be set, and only at the top level",
            ),
        );
    }
}

fn tag_property(setting: &Setting, help: &str, report: &mut Reporter) {
    let message = format!("`tag.{}` cannot be set here", setting.name.text);
    report.add(Draft::new(Code::TagProperty, setting.target(), message).help(help));
}

fn block(model: &mut Model, index: RecordIndex, report: &mut Reporter) {
    let Some(ast) = model.records.get(index).map(|record| record.ast) else { return };
    let mut settings = Vec::new();
    for setting in &ast.block {
        properties::check(setting, &mut model.lists, report);
        if path_fits(model, index, setting, report) {
            settings.push(setting);
        }
    }
    let slots = Slots::new(settings, report);
    if let Some(record) = model.records.get_mut(index) {
        record.slots = slots;
    }
}

/// Checks that a path starts at a field of the record and descends through nested records (spec 3.1).
fn path_fits(model: &Model, index: RecordIndex, setting: &Setting, report: &mut Reporter) -> bool {
    let mut at = Field::Record(index);
    let mut before: Option<&Name> = None;
    for name in &setting.path {
        let Field::Record(record) = at else {
            through_leaf(name, before, setting.path.len() == 2, report);
            return false;
        };
        let Some(record) = model.records.get(record) else { return false };
        let Some(field) = record.field(name.text) else {
            if let Some(draft) = own_name(record.ast, setting, name) {
                report.add(draft.also(record.ast.name.span, "the record"));
                return false;
            }
            let rest = setting.path.iter().skip_while(|part| part.span != name.span).skip(1).chain([&setting.name]);
            let rest: Vec<&str> = rest.map(|part| part.text).collect();
            let message = format!("record `{}` has no field `{}`", record.name(), name.text);
            let draft = Draft::new(Code::UnknownField, name.span, message).also(record.ast.name.span, "the record");
            let has = |name: &str| record.field(name).is_some();
            if name.text == record.name() && rest.first().is_some_and(|field| has(field)) {
                let path = rest.join(".");
                let help = format!("a path begins with a field: write `{path}`");
                report.add(draft.help(help).replace(name.span.to(setting.name.span), path));
                return false;
            }
            if let ([field], Some(property)) = (rest.as_slice(), Property::named(name.text))
                && has(field)
            {
                let path = format!("{field}.{}", property.name());
                let help = format!("a property follows its field: write `{path}`");
                report.add(draft.help(help).replace(name.span.to(setting.name.span), path));
                return false;
            }
            report.add(draft.help("list the field, or remove the property").did_you_mean(
                name.span,
                name.text,
                record.fields.iter().map(|(name, _)| *name).chain(["tag"]),
            ));
            return false;
        };
        if field == Field::Wrong {
            return false;
        }
        at = field;
        before = Some(name);
    }
    match (at, setting.property) {
        (Field::Leaf, Some(property)) if is_tag(setting) => {
            let help = match property.on_tag() {
                OnTag::TopLevel => "set `tag.width` once, at the top level",
                OnTag::Never => NEVER_ON_TAG,
                OnTag::Block | OnTag::Anywhere => return true,
            };
            tag_property(setting, help, report);
            false
        }
        (Field::Record(nested), Some(property)) if !property.on_nested() => {
            ends_at_record(model, nested, setting, report);
            false
        }
        _ => true,
    }
}

/// Reports the name of a repetition in a path, which contains the name of the item instead.
fn own_name(record: &ast::Record, setting: &Setting, name: &Name) -> Option<Draft> {
    fn item<'a>(list: &'a FieldItem<'a>, name: &str) -> Option<&'a FieldItem<'a>> {
        match list {
            FieldItem::Name(_) => None,
            FieldItem::Group(items) => items.iter().find_map(|list| item(list, name)),
            FieldItem::Repeat { own: Some(own), body, .. } if own.text == name => Some(body),
            FieldItem::Repeat { body, .. } => item(body, name),
        }
    }
    let body = item(&record.fields, name.text)?;
    let rest = setting.path.iter().skip_while(|part| part.span != name.span).skip(1).chain([&setting.name]);
    let first = if let FieldItem::Name(first) = body { Some(first) } else { None };
    let path = first.into_iter().chain(rest).map(|name| name.text).collect::<Vec<_>>().join(".");
    let message = format!("`{}` is the name of a repetition, which is not part of a path", name.text);
    let draft = Draft::new(Code::UnknownField, name.span, message).help(format!("write `{path}`"));
    Some(draft.replace(name.span.to(setting.name.span), path))
}

fn is_tag(setting: &Setting) -> bool {
    matches!(setting.path.as_slice(), [only] if only.text == "tag")
}

fn through_leaf(name: &Name, before: Option<&Name>, is_short: bool, report: &mut Reporter) {
    let before = before.map_or("", |n| n.text);
    report.add(
        Draft::new(
            Code::PathEnd,
            name.span,
            format!("`{before}` is not a nested record, so it has no field `{}`", name.text),
        )
        .help(match name.text {
            "length" | "data" if is_short => {
                format!("for bytes preceded by their length, write `{before}: text` or `{before}: vfield` in the list")
            }
            _ => "a path must lead through nested records to a field".to_owned(),
        }),
    );
}

fn ends_at_record(model: &Model, nested: RecordIndex, setting: &Setting, report: &mut Reporter) {
    let path = setting.path_text();
    let record = model.records.get(nested);
    if nested == VFIELD
        && let Some(help) = text_help(setting)
    {
        let message = format!("`{path}` consists of its length and its bytes and has no {}", setting.name.text);
        report.add(Draft::new(Code::PathEnd, setting.target(), message).help(help));
        return;
    }
    let example = record.and_then(|r| r.fields.first()).map_or("field", |(name, _)| *name);
    let name = setting.name.text;
    report.add(
        Draft::new(Code::PathEnd, setting.target(), format!("`{path}` is a nested record and has no {name}"))
            .help(format!("name one of its fields, such as `{path}.{example}.{name}`")),
    );
}

/// Returns the help for a property that is set for a text or a `vfield` itself.
fn text_help(setting: &Setting) -> Option<String> {
    let (path, name) = (setting.path_text(), setting.name.text);
    match (setting.property?, &setting.value) {
        (Property::Width, Value::Expression(width)) => match width.as_int().and_then(|int| int.natural()) {
            Some(width @ (1 | 2 | 4)) => Some(format!(
                "for a length of {width} bytes, write `{path}.length.width = {width};`; for a text of {width} bytes, \
                 write `{path}: text {width}` in the field list"
            )),
            Some(width) => Some(format!(
                "for a text of {width} bytes, write `{path}: text {width}` in the field list; for a length of {width} \
                 bytes, write `{path}.length.width = {width};`"
            )),
            None => Some(format!("for a text of this length, write `{path}: text n.value` in the field list")),
        },
        (Property::Width, _) => Some(format!("list `{path}` without a type, and add `{path}.interpretation = none;`")),
        (Property::Format, Value::Text(text)) => Some(format!(
            "write `{path}: vfield` in the field list, and `{path}.data.{name} = \"{text}\";` in the block"
        )),
        _ => None,
    }
}

/// Returns the tag width, which is 1, 2 or 4, and 1 by default (spec 3.2). If the width is invalid, reports the mistake
/// and returns `None`.
pub(super) fn tag_width(model: &Model, report: &mut Reporter) -> Option<u8> {
    let slot = model.scopes.first().and_then(|s| s.slots.get(&["tag"]));
    let Some(property) = slot.and_then(|s| s.get(Property::Width)) else { return Some(1) };
    let Value::Expression(expression) = &property.value else { return None };
    let width = super::expression::constant(expression, None).and_then(|n| u8::try_from(n).ok());
    let width = width.filter(|n| matches!(n, 1 | 2 | 4));
    if width.is_none() {
        report.add(
            Draft::new(Code::TagWidth, property.value_span, "a tag must be 1, 2 or 4 bytes wide")
                .help("write `tag.width = 1;`, or use 2 or 4 if there are more than 252 records"),
        );
    }
    width
}
