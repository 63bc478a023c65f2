//! Checks that the value of each property is of the right kind (spec 2).

use std::collections::HashMap;

use crate::ast::{Setting, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::nearest::nearest;
use crate::schema::{Format, InterpretationWord, ListError, NameList, parse_names};
use crate::span::Span;
use crate::suggest::unknown_interpretation;
use crate::vocabulary::{OTHER, Property, REST, Takes};

/// Lists of names in properties, by the location of the list.
pub(super) type NameLists = HashMap<Span, NameList>;

/// Reports a value of the wrong kind, and parses lists of names. After a mistake, later stages find the wrong variant
/// of [`Value`], or no list, and skip the property without another report.
pub(super) fn check(setting: &Setting, lists: &mut NameLists, report: &mut Reporter) {
    let Some(property) = setting.property else { return };
    let draft = match (property.takes(), &setting.value) {
        (_, Value::Broken)
        | (Takes::Number, Value::Bytes(_) | Value::Until(_))
        | (Takes::Number | Takes::Constant, Value::Expression(_))
        | (Takes::Interpretation, Value::Interpretation(_))
        | (Takes::Text, Value::Text(_)) => return,
        (Takes::Format, Value::Text(text)) if Format::named(text).is_some() => return,
        (Takes::Names, Value::Text(text)) => match parse_names(text, property == Property::Flags) {
            Ok(list) => {
                lists.insert(setting.value_span, list);
                return;
            }
            Err(error) => wrong_names(setting, property, text, error),
        },
        (Takes::Earlier, Value::Text(text)) if earlier(text).is_some() => return,
        (Takes::Sharing, Value::Word(word)) if matches!(*word, "own" | "shared") => return,
        (Takes::Number, Value::Word(REST)) if property == Property::Width => return,
        (Takes::Constant, Value::Word(word)) if setting.is("tag", Property::Value) && *word == OTHER => return,
        (Takes::Interpretation, Value::Word(word)) => unknown_interpretation(setting.value_span, word),
        (Takes::Format, Value::Text(text)) => unknown_format(setting, text),
        (Takes::Sharing, Value::Word(_)) => {
            Draft::new(Code::UnknownPrevious, setting.value_span, "`previous` must be `own` or `shared`").help(
                "`shared` keeps one previous value for all fields with this name; `own` keeps a separate one for this \
                 field",
            )
        }
        (Takes::Constant, Value::Word(_)) if setting.is("tag", Property::Value) => {
            Draft::new(Code::ValueKind, setting.value_span, "the value of a tag must be a number or `other`")
                .help("`tag.value = other;` matches all tags that no other record of the section uses")
        }
        _ => wrong_kind(setting, property),
    };
    report.add(draft);
}

/// Parses up to 16 comma-separated names of fields or records.
pub(super) fn earlier(text: &str) -> Option<Vec<String>> {
    if text.bytes().filter(|b| *b == b',').count() > 15 {
        return None;
    }
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let name = |name: &&str| name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit());
    text.split(',').map(|part| Some(part.trim()).filter(name).map(str::to_owned)).collect()
}

fn wrong_kind(setting: &Setting, property: Property) -> Draft {
    let (name, takes) = (property.name(), property.takes().describe());
    let draft = Draft::new(Code::ValueKind, setting.value_span, format!("the value of `{name}` must be {takes}"))
        .label(format!("expected {takes}"))
        .help(format!("for example, write `{}`", property.example()));
    match other_quotes(setting, property) {
        Some(text) => draft.replace(setting.value_span, text),
        None => draft,
    }
}

/// Returns the value with quotes added or removed, if this makes the value valid.
fn other_quotes(setting: &Setting, property: Property) -> Option<String> {
    match (property.takes(), &setting.value) {
        (Takes::Format, Value::Word(word)) if Format::named(word).is_some() => Some(format!("\"{word}\"")),
        (Takes::Text | Takes::Earlier, Value::Word(word)) => Some(format!("\"{word}\"")),
        (Takes::Number | Takes::Constant, Value::Text(text)) => text.parse::<u64>().ok().map(|n| n.to_string()),
        (Takes::Sharing, Value::Text(text)) if matches!(text.as_str(), "own" | "shared") => Some(text.clone()),
        (Takes::Interpretation, Value::Text(text)) => {
            let word = InterpretationWord::named(text.split_whitespace().next()?)?;
            let numbers = text.split_whitespace().skip(1).map(|n| n.parse::<i64>().ok()).collect::<Option<Vec<_>>>()?;
            (numbers.len() == word.arguments().len()).then(|| text.clone())
        }
        _ => None,
    }
}

fn wrong_names(setting: &Setting, property: Property, text: &str, (at, message): ListError) -> Draft {
    let span = setting.value_span;
    // If the string contains escapes, offsets in its value differ from offsets in the source, so mark the entire
    // string.
    let plain = span.end() - span.start() == text.len() + 2;
    let place = if plain { Span::new(span.start() + 1 + at.start, span.start() + 1 + at.end) } else { span };
    Draft::new(Code::NameList, place, message).help(format!("for example, write `{}`", property.example()))
}

fn unknown_format(setting: &Setting, text: &str) -> Draft {
    let names = Format::ALL.iter().map(|format| format.name());
    let listed: Vec<String> = names.clone().map(|name| format!("\"{name}\"")).collect();
    let draft = Draft::new(Code::UnknownFormat, setting.value_span, format!("there is no format \"{text}\""));
    match nearest(text, names) {
        // Not an edit that `--fix` makes: a similar name, such as that of another unit, may change values.
        Some(near) => draft.help(format!("did you mean `{near}`?")),
        None => draft.help(format!("the formats are {}", listed.join(", "))),
    }
}
