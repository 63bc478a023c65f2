//! Assigns properties to their scopes (spec 3.1). In a record's block, a path starts at one of the record's fields;
//! elsewhere, the path is a single field name.

use super::lines;
use super::model::{Field, Model, PREDEFINED_TAGGED, RecordIndex, ScopeIndex, VFIELD};
use super::properties::{self, Sections};
use super::slots::Slots;
use crate::ast::{self, FieldItem, Name, Setting, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::span::Span;
use crate::vocabulary::{OnTag, Property};

/// Fills the slots of every scope and block.
pub(super) fn fill(model: &mut Model, report: &mut Reporter) {
    let records = model.records.iter().filter_map(|r| Some((r.ast.name.text, model.scopes.get(r.scope)?.number?)));
    let sections = model.scopes.iter().filter_map(|s| Some((s.ast.head.as_ref()?.name.text, s.number?)));
    // The name of a section takes precedence over that of a record.
    let sections: Sections = records.chain(sections).filter(|(_, number)| *number != 0).collect();
    for index in 0..model.scopes.len() {
        scope(model, index, &sections, report);
    }
    for index in 0..model.records.len() {
        block(model, index, &sections, report);
    }
}

fn scope(model: &mut Model, index: ScopeIndex, sections: &Sections, report: &mut Reporter) {
    let Some(scope) = model.scopes.get_mut(index) else { return };
    let mut settings = Vec::new();
    for setting in &scope.ast.properties {
        properties::check(setting, sections, &mut model.lists, report);
        match setting.path.as_slice() {
            [name] if name.text == "tag" => tag_in_scope(index, scope.ast, setting, report),
            [_] => {}
            [record, tag] if PREDEFINED_TAGGED.contains(&record.text) && tag.text == "tag" => {
                predefined_tag(index, setting, report);
            }
            _ => {
                let record = setting
                    .path
                    .first()
                    .and_then(|first| scope.ast.records.iter().find(|record| record.name.text == first.text));
                let statement = setting.path.get(1).map(|name| name.span.to(setting.value_span));
                let statement = statement.and_then(|span| lines::flat(report.source, span));
                let within = record.zip(statement).map(|(record, statement)| {
                    let whole = lines::flat(report.source, record.extent);
                    match whole.as_deref().and_then(|whole| whole.trim_end_matches(';').strip_suffix('}')) {
                        Some(whole) => format!("`{} {statement}; }}`", whole.trim_end()),
                        None => format!("`{statement};` in the block of `{}`", record.name.text),
                    }
                });
                let help = match within {
                    Some(within) => format!("write {within} instead, or `{LINE}` here for all fields of this name"),
                    None => format!(
                        "write `{LINE}` for all fields of this name, or move the statement into the block of the record \
                         that nests the field"
                    ),
                };
                let message = "outside a record block, a property path must be a single field name";
                let draft = Draft::new(Code::PathOutsideBlock, setting.target(), message).help(help);
                report.add(draft.line(path_before(setting), ""));
                continue;
            }
        }
        settings.push(setting);
    }
    scope.slots = Slots::new(settings, report);
}

const NEVER_ON_TAG: &str = "remove `$LINE`: a tag is a plain number with the interpretation `none`";
const TOP_LEVEL: &str = "write `$LINE` once, at the top level: all tags of a trace have the same width";

/// Returns the location of the names of a path before the last, with the dots.
fn path_before(setting: &Setting) -> Span {
    let ends = setting.path.first().zip(setting.path.last());
    ends.map_or(setting.name.span, |(first, last)| Span::new(first.span.start(), last.span.start()))
}

/// Checks a property of `tag` in a scope. Only the width of `tag` can be set, at the top level (spec 3.2).
fn tag_in_scope(scope: ScopeIndex, ast: &ast::Scope, setting: &Setting, report: &mut Reporter) {
    let help = match setting.property.map(Property::on_tag) {
        Some(OnTag::TopLevel) if scope != 0 => TOP_LEVEL.to_owned(),
        Some(OnTag::Block) => {
            // The first record without a tag.
            let is_free = |record: &&ast::Record| {
                !record.block.iter().any(|s| s.is("tag", setting.property.unwrap_or(Property::Value)))
            };
            let record = ast.records.iter().find(is_free);
            let line = record.filter(|r| r.brace.is_none()).and_then(|r| lines::definition(report.source, r));
            match (line, record) {
                (Some(line), _) => format!("write `{line} {{ {LINE} }}`: each record has its own tag, in its block"),
                (None, Some(record)) => format!("move `{LINE}` into the block of `{}`", record.name.text),
                (None, None) => format!("move `{LINE}` into the block of a record, as in `ev: (a: u16) {{ {LINE} }}`"),
            }
        }
        Some(OnTag::Never) => NEVER_ON_TAG.to_owned(),
        Some(OnTag::TopLevel | OnTag::Anywhere) | None => return,
    };
    tag_property(setting, &help, report);
}

/// Checks a property of a predefined record's tag. The top level of a DTD can set the tag to another value (spec 3.2).
fn predefined_tag(scope: ScopeIndex, setting: &Setting, report: &mut Reporter) {
    if scope != 0 || setting.property.is_some_and(|property| property != Property::Value) {
        let message = format!("`{}.{}` cannot be set here", setting.path_text(), setting.name.text);
        report.add(Draft::new(Code::TagProperty, setting.target(), message).help(format!(
            "of the records `comment`, `section` and `metadata`, only the tag can be set, at the top level: write \
                 `{}.value = 250;`",
            setting.path_text()
        )));
    }
}

fn tag_property(setting: &Setting, help: &str, report: &mut Reporter) {
    let message = format!("`tag.{}` cannot be set here", setting.name.text);
    report.add(Draft::new(Code::TagProperty, setting.target(), message).help(help).quote(setting.target()));
}

fn block(model: &mut Model, index: RecordIndex, sections: &Sections, report: &mut Reporter) {
    let Some(ast) = model.records.get(index).map(|record| record.ast) else { return };
    let mut settings = Vec::new();
    for setting in &ast.block {
        properties::check(setting, sections, &mut model.lists, report);
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
            through_leaf(name, before, setting, report);
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
                let help = format!("a path begins with a field: write `{LINE}`");
                let draft = draft.help(help).line(name.span.to(setting.name.span), path.as_str());
                report.add(draft.replace(name.span.to(setting.name.span), path));
                return false;
            }
            if let ([field], Some(property)) = (rest.as_slice(), Property::named(name.text))
                && has(field)
            {
                let path = format!("{field}.{}", property.name());
                let help = format!("a property follows its field: write `{LINE}`");
                let draft = draft.help(help).line(name.span.to(setting.name.span), path.as_str());
                report.add(draft.replace(name.span.to(setting.name.span), path));
                return false;
            }
            // The name of a record instead of that of the field that nests it.
            let is_of = |field: &Field| matches!(field, Field::Record(nested) if model.records.get(*nested).is_some_and(|r| r.name() == name.text));
            let mut fields = record.fields.iter().filter(|(_, field)| is_of(field));
            if let (Some((field, _)), None) = (fields.next(), fields.next()) {
                report.add(draft.write(name.span, *field).replace(name.span, *field));
                return false;
            }
            // The name of a field of a nested record.
            let holds = |field: &Field| matches!(field, Field::Record(nested) if model.records.get(*nested).is_some_and(|r| r.field(name.text).is_some()));
            let mut fields = record.fields.iter().filter(|(_, field)| holds(field));
            if let (Some((field, _)), None) = (fields.next(), fields.next()) {
                let path = format!("{field}.{}", name.text);
                report.add(draft.write(name.span, path.as_str()).propose(name.span, path));
                return false;
            }
            // The width of the field determines its type.
            let is_width = |other: &&Setting| other.path_text() == name.text && other.property == Some(Property::Width);
            let kind = kind_of(record.ast.block.iter().find(is_width).unwrap_or(setting));
            let listed = lines::definition(report.source, record.ast).and_then(|line| {
                Some(format!("{}, {}: {kind})", line.strip_suffix(')')?.trim_end_matches([',', ' ']), name.text))
            });
            let listed = listed.unwrap_or_else(|| format!("{}: {kind}", name.text));
            report.add(
                draft
                    .help(format!("write `{listed}` to list the field, or remove `{LINE}`"))
                    .quote(name.span)
                    .did_you_mean(name.span, name.text, record.fields.iter().map(|(name, _)| *name).chain(["tag"])),
            );
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
                OnTag::TopLevel => TOP_LEVEL,
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

/// Returns a type that fits a property of a field that is not listed.
fn kind_of(setting: &Setting) -> String {
    match (setting.property, &setting.value) {
        (Some(Property::Width), Value::Expression(width)) => match width.as_int().and_then(|int| int.natural()) {
            Some(bytes @ 1..=8) => format!("u{}", bytes * 8),
            Some(bytes) => format!("bytes {bytes}"),
            None => "bytes n.value".to_owned(),
        },
        (Some(Property::Values | Property::Flags), _) => "u8".to_owned(),
        _ => "u32".to_owned(),
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
    let place = name.span.to(setting.name.span);
    Some(Draft::new(Code::UnknownField, name.span, message).write(place, path.as_str()).replace(place, path))
}

fn is_tag(setting: &Setting) -> bool {
    matches!(setting.path.as_slice(), [only] if only.text == "tag")
}

fn through_leaf(name: &Name, before: Option<&Name>, setting: &Setting, report: &mut Reporter) {
    let is_short = setting.path.len() == 2;
    let place = before
        .map_or(name.span, |before| Span::new(before.span.end(), setting.path.last().map_or(0, |l| l.span.end())));
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
            _ => format!(
                "write `{LINE}` for the field `{before}` itself; a path leads through nested records to a field"
            ),
        })
        .line(place, ""),
    );
}

fn ends_at_record(model: &Model, nested: RecordIndex, setting: &Setting, report: &mut Reporter) {
    let path = setting.path_text();
    let record = model.records.get(nested);
    if nested == VFIELD
        && let Some(help) = text_help(setting)
    {
        let message = format!("`{path}` consists of its length and its bytes and has no {}", setting.name.text);
        report.add(Draft::new(Code::PathEnd, setting.target(), message).help(help).quote(setting.target()));
        return;
    }
    let example = record.and_then(|r| r.fields.first()).map_or("field", |(name, _)| *name);
    let name = setting.name.text;
    let draft = Draft::new(Code::PathEnd, setting.target(), format!("`{path}` is a nested record and has no {name}"));
    report.add(match setting.property {
        Some(Property::Width | Property::Interpretation) => {
            draft.help(format!("remove `{LINE}`: a record consists of its fields")).quote(setting.target())
        }
        _ => draft
            .help(format!("name one of its fields, as in `{LINE}`"))
            .line(setting.target(), format!("{path}.{example}.{name}")),
    });
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
        (Property::Values | Property::Flags, _) => Some(format!(
            "only a number has names of values or bits: write `{path}: u8` in the field list to store the number"
        )),
        (Property::Value, _) => {
            Some(format!("a text has no constant: write `{path}: u32` in the field list for a number"))
        }
        (Property::Section, _) => {
            Some(format!("write `{path}: bytes n.value` in the field list, with an earlier field `n` for the length"))
        }
        (Property::Interpretation | Property::Previous, _) => {
            Some(format!("remove `{LINE}`: bytes are stored as they are"))
        }
        (Property::Format, Value::Text(text)) if text == "utf8" => {
            Some(format!("remove `{LINE}`: a text is printed as text without a format"))
        }
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
    let Some(property) = slot.and_then(|s| s.get(Property::Width)) else {
        // A width in another place has been reported.
        let mut settings = model.scopes.iter().skip(1).flat_map(|scope| &scope.ast.properties);
        let is_misplaced = |setting: &Setting| setting.is("tag", Property::Width);
        let mut blocks = model.records.iter().flat_map(|record| &record.ast.block);
        return if settings.any(is_misplaced) || blocks.any(is_misplaced) { None } else { Some(1) };
    };
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
