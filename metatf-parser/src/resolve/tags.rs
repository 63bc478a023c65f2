//! Resolves tag values (spec 3.2).

use std::collections::{HashMap, HashSet};

use super::expression;
use super::model::{Model, PREDEFINED_TAGGED, RecordIndex};
use crate::ast::{Expression, Setting, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::span::Span;
use crate::vocabulary::{OTHER, Property};

/// The value of a record's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TagValue {
    Number(u32),
    /// A catch-all record, which matches all values not used by another record in the same sections.
    Other,
}

/// The tag of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    /// The value, or the lowest possible value for a catch-all record.
    pub(super) number: u32,
    pub(super) catch_all: bool,
}

/// Returns the tag of a record, after checking it by itself and against the predefined tags. Returns `None` if the tag
/// is missing or invalid.
pub(super) fn value(
    model: &Model,
    index: RecordIndex,
    predefined: [u32; 3],
    report: &mut Reporter,
) -> Option<TagValue> {
    let record = model.records.get(index).filter(|r| r.tagged)?;
    let Some(property) = property(model, index) else {
        let misspelt = record.ast.block.iter().find(|setting| setting.is("tag", Property::Value));
        report.add(match misspelt {
            Some(setting) => {
                setting.misspelt(Code::TagWithoutValue, format!("record `{}` has no tag value", record.name()))
            }
            None => Draft::new(
                Code::TagWithoutValue,
                tag_field(&record.ast.fields).unwrap_or(record.ast.name.span),
                format!("record `{}` lists `tag` but does not set `tag.value`", record.name()),
            )
            .help(if report.is_full() {
                "add `tag.value = 4;` with another number to its block".to_owned()
            } else {
                format!("add `tag.value = {};` to its block", next_tag(model, predefined))
            })
            .maybe_propose(record.ast.brace.filter(|_| !report.is_full()).map(|brace| Span::at(brace.end())), || {
                format!(" tag.value = {};", next_tag(model, predefined))
            }),
        });
        return None;
    };
    let expression = match &property.value {
        Value::Expression(expression) => expression,
        Value::Word(OTHER) => return Some(TagValue::Other),
        Value::Word(word) => {
            let message = "the value of a tag must be a number or `other`";
            let is_other = matches!(*word, "else" | "rest" | "any" | "all" | "others" | "unknown" | "otherwise" | "_");
            report.add(Draft::new(Code::ValueKind, property.value_span, message).help(match is_other {
                true => "write `tag.value = other;` for all tags that no other record uses".to_owned(),
                false => format!(
                    "write a number, as in `tag.value = {};`, or `tag.value = other;` for all tags that no other record \
                     uses",
                    next_tag(model, predefined)
                ),
            }));
            return None;
        }
        _ => return None,
    };
    let value = number(model, property, expression, report)?;
    let Some(index) = predefined.iter().position(|tag| *tag == value) else { return Some(TagValue::Number(value)) };
    let (owner, moved) = (PREDEFINED_TAGGED[index], moved(model, PREDEFINED_TAGGED[index]));
    report.add(
        Draft::new(Code::TagReserved, property.value_span, format!("tag {value} belongs to `{owner}`"))
            .also(moved.map_or(Span::PREDEFINED, |setting| setting.value_span), "set here")
            .help(format!(
                "write `tag.value = {};`, or set another tag at the top level, such as `{owner}.tag.value = 250;`",
                next_tag(model, predefined)
            )),
    );
    None
}

/// Returns the lowest number, starting at 4, that no record uses as its tag, for a suggestion. Considers only tags set
/// to a literal number.
pub(super) fn next_tag(model: &Model, predefined: [u32; 3]) -> u64 {
    let settings = (0..model.records.len()).filter_map(|index| property(model, index));
    let used = settings.filter_map(|setting| match &setting.value {
        Value::Expression(expression) => expression.as_int()?.natural(),
        _ => None,
    });
    let used: HashSet<u64> = used.chain(predefined.map(u64::from)).collect();
    (4..).find(|tag| !used.contains(tag)).unwrap_or(4)
}

/// Returns the number that a tag is set to. If the value is not a number or does not fit, reports the mistake and
/// returns `None`.
fn number(model: &Model, property: &Setting, expression: &Expression, report: &mut Reporter) -> Option<u32> {
    let number = expression::constant(expression, model.tag_width);
    // If the tag width is invalid, it has already been reported. Assume 4 bytes, because the value may be valid for the
    // intended width.
    let bits = u32::from(model.tag_width.unwrap_or(4)) * 8;
    let value = number.filter(|n| n >> bits == 0).and_then(|n| u32::try_from(n).ok());
    if value.is_none() {
        let message = match number {
            Some(n) => format!("tag {n} does not fit in {} bits", bits),
            None => "a tag value must be a non-negative number".to_owned(),
        };
        report.add(Draft::new(Code::TagValue, property.value_span, message).help(match number {
            Some(n) if n >> 16 == 0 && bits == 8 => {
                "write `tag.width = 2;` at the top level, or a tag from 0 to 255".to_owned()
            }
            Some(n) if n >> 32 == 0 && bits < 32 => {
                format!("write `tag.width = 4;` at the top level, or a tag from 0 to {}", u32::MAX >> (32 - bits))
            }
            _ => format!("write `tag.value = {};`, or another number that no record has", next_tag(model, [1, 2, 3])),
        }));
    }
    value
}

/// Returns the tags of the predefined records, which are 1, 2 and 3 or the values set at the top level (spec 3.2).
pub(super) fn predefined(model: &Model, report: &mut Reporter) -> [u32; 3] {
    let mut tags = [1, 2, 3];
    for (tag, name) in tags.iter_mut().zip(PREDEFINED_TAGGED) {
        let Some(property) = moved(model, name) else { continue };
        let Value::Expression(expression) = &property.value else { continue };
        if let Some(value) = number(model, property, expression, report) {
            *tag = value;
        }
    }
    for (index, name) in PREDEFINED_TAGGED.iter().enumerate() {
        let Some(first) = tags.iter().take(index).position(|tag| Some(tag) == tags.get(index)) else { continue };
        let (one, other) = (moved(model, PREDEFINED_TAGGED[first]), moved(model, name));
        let Some(place) = other.or(one) else { continue };
        let message = format!("`{}` and `{name}` both have tag {}", PREDEFINED_TAGGED[first], tags[index]);
        let draft = Draft::new(Code::TagTwice, place.value_span, message);
        let also = one.filter(|_| other.is_some()).map_or(Span::PREDEFINED, |setting| setting.value_span);
        report.add(
            draft
                .also(also, "first used here")
                .help(format!("write `{LINE}`: records that can occur in the same section must have different tags"))
                .line(place.value_span, next_tag(model, tags).to_string()),
        );
    }
    tags
}

/// Returns the top-level setting that changes the tag of a predefined record.
fn moved<'a>(model: &Model<'a>, record: &str) -> Option<&'a Setting<'a>> {
    model.scopes.first()?.slots.get(&[record, "tag"])?.get(Property::Value)
}

fn property<'a>(model: &Model<'a>, index: RecordIndex) -> Option<&'a Setting<'a>> {
    model.records.get(index)?.slots.get(&["tag"])?.get(Property::Value)
}

/// Finds `tag` in a field list.
fn tag_field(item: &crate::ast::FieldItem) -> Option<Span> {
    match item {
        crate::ast::FieldItem::Name(name) => (name.text == "tag").then_some(name.span),
        crate::ast::FieldItem::Group(items) => items.iter().find_map(tag_field),
        crate::ast::FieldItem::Repeat { body, .. } => tag_field(body),
    }
}

/// Checks that tags are unique among the records visible in a section (spec 3.2). If two records have the same tag, the
/// second record in the text is reported.
pub(super) fn unique(model: &Model, tags: &HashMap<RecordIndex, TagValue>, report: &mut Reporter) {
    let global = owners(model, tags, &model.top_records(0), &HashMap::new(), report);
    for scope in model.scopes.iter().skip(1) {
        let own: Vec<RecordIndex> =
            scope.records.iter().copied().filter(|r| model.records.get(*r).is_some_and(|r| r.named)).collect();
        owners(model, tags, &own, &global, report);
    }
}

/// Returns the record that owns each tag, and reports duplicates. `global` contains the tags that are already taken.
fn owners(
    model: &Model,
    tags: &HashMap<RecordIndex, TagValue>,
    records: &[RecordIndex],
    global: &HashMap<TagValue, RecordIndex>,
    report: &mut Reporter,
) -> HashMap<TagValue, RecordIndex> {
    let mut owners: HashMap<TagValue, RecordIndex> = HashMap::new();
    for index in records {
        let Some(tag) = tags.get(index) else { continue };
        match owners.get(tag).or_else(|| global.get(tag)) {
            Some(other) => twice(model, *tag, *other, *index, report),
            None => drop(owners.insert(*tag, *index)),
        }
    }
    owners
}

fn twice(model: &Model, tag: TagValue, one: RecordIndex, other: RecordIndex, report: &mut Reporter) {
    let place = |index| property(model, index).map(|p| (p.value_span, index));
    let (Some(one), Some(other)) = (place(one), place(other)) else { return };
    let (first, second) = (one.min(other), one.max(other));
    let name = |index: RecordIndex| model.records.get(index).map_or("", |r| r.ast.name.text);
    let (both, help) = match tag {
        TagValue::Number(tag) => {
            let next = if report.is_full() { 0 } else { next_tag(model, [1, 2, 3]) };
            let help = format!("write `tag.value = {next};`: records of the same section must have different tags");
            (format!("tag {tag}"), help)
        }
        TagValue::Other => (
            "`tag.value = other`".to_owned(),
            format!(
                "write `tag.value = {};` for one of them: a section has at most one record for all other tags",
                if report.is_full() { 4 } else { next_tag(model, [1, 2, 3]) }
            ),
        ),
    };
    let message = format!("`{}` and `{}` both have {both}", name(first.1), name(second.1));
    report.add(Draft::new(Code::TagTwice, second.0, message).also(first.0, "first used here").help(help));
}

/// Returns the tags of all records. A catch-all record gets the lowest tag that is free in every section that lists the
/// record.
pub(super) fn numbered(
    model: &Model,
    values: &HashMap<RecordIndex, TagValue>,
    predefined: [u32; 3],
    report: &mut Reporter,
) -> HashMap<RecordIndex, Tag> {
    let mut tags = HashMap::new();
    for (&index, &value) in values {
        let number = match value {
            TagValue::Number(number) => Some(number),
            TagValue::Other => free(model, index, values, predefined),
        };
        match (number, property(model, index)) {
            (Some(number), _) => drop(tags.insert(index, Tag { number, catch_all: value == TagValue::Other })),
            (None, Some(property)) => report.add(
                Draft::new(Code::TagValue, property.value_span, "other records already use all tags")
                    .help("remove this record, or set `tag.width = 2;` at the top level to allow more tags"),
            ),
            (None, None) => {}
        }
    }
    tags
}

/// Returns the lowest tag that is free in every section that lists the record.
fn free(
    model: &Model,
    index: RecordIndex,
    values: &HashMap<RecordIndex, TagValue>,
    predefined: [u32; 3],
) -> Option<u32> {
    let listing =
        (0..model.scopes.len()).map(|scope| model.top_records(scope)).filter(|listed| listed.contains(&index));
    let listed = listing.flatten().filter_map(|record| match values.get(&record) {
        Some(TagValue::Number(number)) => Some(*number),
        _ => None,
    });
    let taken: HashSet<u32> = listed.chain(predefined).collect();
    let most = u32::MAX >> (32 - 8 * u32::from(model.tag_width.unwrap_or(4)));
    (0..=most).find(|tag| !taken.contains(tag))
}
