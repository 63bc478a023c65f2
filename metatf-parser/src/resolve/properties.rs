//! Checks that the value of each property is of the right kind (spec 2).

use std::collections::HashMap;

use crate::ast::{Setting, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::foreign;
use crate::nearest::nearest;
use crate::schema::{Format, InterpretationWord, ListError, NameList, parse_names};
use crate::span::Span;
use crate::suggest::unknown_interpretation;
use crate::vocabulary::{OTHER, Property, REST, TYPES, Takes};

/// Lists of names in properties, by the location of the list.
pub(super) type NameLists = HashMap<Span, NameList>;

/// The names of sections and of their records, with the numbers of the sections.
pub(super) type Sections<'a> = HashMap<&'a str, u8>;

/// Reports a value of the wrong kind, and parses lists of names. After a mistake, later stages find the wrong variant
/// of [`Value`], or no list, and skip the property without another report.
pub(super) fn check(setting: &Setting, sections: &Sections, lists: &mut NameLists, report: &mut Reporter) {
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
                // A separator in a name is probably meant as one between names.
                let meant =
                    foreign::name_list(text, false).filter(|meant| text.contains([';', '|', '\n']) && meant != text);
                if let Some(meant) = meant.filter(|meant| meant.matches(',').count() > text.matches(',').count()) {
                    let message = "a name in this list contains a separator, but only a comma separates names";
                    let draft = Draft::new(Code::FlagMasks, setting.value_span, message);
                    report.add(draft.write(setting.value_span, format!("\"{meant}\"")));
                }
                lists.insert(setting.value_span, list);
                return;
            }
            Err(error) => wrong_names(setting, property, text, error),
        },
        (Takes::Earlier, Value::Text(text)) if earlier(text).is_some() => return,
        (Takes::Sharing, Value::Word(word)) if matches!(*word, "own" | "shared") => return,
        (Takes::Number, Value::Word(REST)) if property == Property::Width => return,
        (Takes::Constant, Value::Word(word)) if setting.is("tag", Property::Value) && *word == OTHER => return,
        (Takes::Interpretation, Value::Word(word)) => interpretation(setting, word),
        (Takes::Format, Value::Text(text)) => unknown_format(setting, text),
        (Takes::Sharing, Value::Word(_)) => {
            Draft::new(Code::UnknownPrevious, setting.value_span, "`previous` must be `own` or `shared`")
                .help(format!(
                    "write `{LINE}` to share the previous value with all fields of this name, or `{}.previous = own;`",
                    setting.path_text()
                ))
                .line(setting.value_span, "shared")
        }
        // The tags of the other records are not known yet.
        (Takes::Constant, Value::Word(_)) if setting.is("tag", Property::Value) => return,
        _ => wrong_kind(setting, property, sections),
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

/// Reports a word that is not an interpretation, but may be a type.
fn interpretation(setting: &Setting, word: &str) -> Draft {
    let draft = unknown_interpretation(setting.value_span, word, setting.value_span);
    let native = TYPES.into_iter().find(|native| *native == word).or_else(|| foreign::type_name(word));
    match native {
        Some(native) => draft.help(format!(
            "write `{}: {native}` in the field list: a type sets the width and the interpretation",
            setting.path_text()
        )),
        None => draft,
    }
}

fn wrong_kind(setting: &Setting, property: Property, sections: &Sections) -> Draft {
    let (name, takes) = (property.name(), property.takes().describe());
    let draft = Draft::new(Code::ValueKind, setting.value_span, format!("the value of `{name}` must be {takes}"))
        .label(format!("expected {takes}"))
        .help(format!("for example, write `{}`", example(setting, property)));
    if let (Property::Value, Value::Text(list)) = (property, &setting.value)
        && let Some(list) = foreign::name_list(list, false).filter(|_| list.contains(','))
    {
        return draft
            .help(format!("name the values of the field: write `{} = \"{list}\";`", target(setting, "values")));
    }
    let (path, word) = (setting.path_text(), if let Value::Word(word) = &setting.value { *word } else { "" });
    let statement = |value: &str| format!("write `{} = {value};`", target(setting, name));
    let named = match &setting.value {
        Value::Word(name) => sections.get(name),
        Value::Text(name) => sections.get(name.as_str()),
        _ => None,
    };
    if let (Property::Section, Some(number)) = (property, named) {
        return draft.help(statement(&number.to_string())).replace(setting.value_span, number.to_string());
    }
    match other_quotes(setting, property) {
        Some(text) => draft.help(statement(&text)).replace(setting.value_span, text),
        None if TYPES.contains(&word) => draft.help(format!("write `{path}: {word}` in the field list")),
        None if word == "until" => draft.help(statement("until 0")),
        None if property.takes() == Takes::Number && !word.is_empty() => {
            draft.help(statement(&format!("{word}.value")))
        }
        None => draft,
    }
}

/// Returns the left side of a statement that sets a property of the same field. In the block of a type, the statement
/// contains only the name of the property.
fn target(setting: &Setting, property: &str) -> String {
    let end = setting.path.last().map_or(0, |name| name.span.end());
    match setting.name.span.start().saturating_sub(end) {
        ..=2 => format!("{}.{property}", setting.path_text()),
        _ => property.to_owned(),
    }
}

/// Returns a statement that sets the property of the same field to an example.
fn example(setting: &Setting, property: Property) -> String {
    let is_tag = setting.path.last().is_some_and(|name| name.text == "tag") && property == Property::Value;
    let value = property.example().split_once(" = ").map_or("", |(_, value)| if is_tag { "250;" } else { value });
    format!("{} = {value}", target(setting, property.name()))
}

/// Returns the value with quotes added or removed, if this makes the value valid.
fn other_quotes(setting: &Setting, property: Property) -> Option<String> {
    match (property.takes(), &setting.value) {
        (Takes::Number, Value::Text(text)) if text == REST => Some(text.clone()),
        (Takes::Format, Value::Word(word)) if Format::named(word).is_some() => Some(format!("\"{word}\"")),
        (Takes::Text | Takes::Earlier, Value::Word(word)) => Some(format!("\"{word}\"")),
        (Takes::Text | Takes::Format | Takes::Names | Takes::Earlier, Value::Expression(expression)) => {
            let bytes = expression.as_int().filter(|int| int.magnitude > 0xff)?.bits().to_be_bytes();
            let text = std::str::from_utf8(&bytes).ok()?.trim_start_matches('\0');
            text.bytes().all(|byte| (b' '..=b'~').contains(&byte)).then(|| format!("\"{text}\""))
        }
        (Takes::Constant, Value::Text(text)) if text.parse::<u64>().is_err() && !is_hex(text) => {
            let plain = |byte: u8| (b' '..=b'~').contains(&byte) && !matches!(byte, b'\'' | b'\\');
            (matches!(text.len(), 1..=8) && text.bytes().all(plain)).then(|| format!("'{text}'"))
        }
        (Takes::Number | Takes::Constant, Value::Text(text)) if is_hex(text) => Some(text.clone()),
        (Takes::Number | Takes::Constant, Value::Text(text)) => text.parse::<u64>().ok().map(|n| n.to_string()),
        (Takes::Sharing, Value::Text(text)) if matches!(text.as_str(), "own" | "shared") => Some(text.clone()),
        (Takes::Interpretation, Value::Text(text)) => {
            let word = InterpretationWord::named(text.split_whitespace().next()?)?;
            if text.trim() == "delta" {
                return Some("delta 0".to_owned());
            }
            let numbers = text.split_whitespace().skip(1).map(|n| n.parse::<i64>().ok()).collect::<Option<Vec<_>>>()?;
            (numbers.len() == word.arguments().len()).then(|| text.clone())
        }
        _ => None,
    }
}

fn is_hex(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| u64::from_str_radix(digits, 16).is_ok())
}

fn wrong_names(setting: &Setting, property: Property, text: &str, (at, message): ListError) -> Draft {
    let span = setting.value_span;
    // If the string contains escapes, offsets in its value differ from offsets in the source, so mark the entire
    // string.
    let list = foreign::name_list(text, property == Property::Flags).or_else(|| foreign::name_list(text, false));
    let list = list.filter(|list| list != text && parse_names(list, property == Property::Flags).is_ok());
    let help = match list {
        Some(list) => format!("write `{} = \"{list}\";`", target(setting, property.name())),
        None => format!("for example, write `{}`", example(setting, property)),
    };
    let plain = span.end() - span.start() == text.len() + 2;
    let place = if plain { Span::new(span.start() + 1 + at.start, span.start() + 1 + at.end) } else { span };
    Draft::new(Code::NameList, place, message).help(help)
}

fn unknown_format(setting: &Setting, text: &str) -> Draft {
    let names = Format::ALL.iter().map(|format| format.name());
    let listed: Vec<String> = names.clone().map(|name| format!("\"{name}\"")).collect();
    let draft = Draft::new(Code::UnknownFormat, setting.value_span, format!("there is no format \"{text}\""));
    if let Some(statement) = foreign::format_statement(text, &setting.path_text()) {
        return draft.help(format!("write `{statement}`"));
    }
    if TYPES.contains(&text) {
        let help = format!("write `{}: {text}` in the field list, and remove `{LINE}`", setting.path_text());
        return draft.help(help).quote(setting.target());
    }
    match nearest(text, names) {
        // Not an edit that `--fix` makes: a similar name, such as that of another unit, may change values.
        Some(near) => draft.help(format!("did you mean `{LINE}`?")).line(setting.value_span, format!("\"{near}\"")),
        None => draft
            .help(format!("write `{LINE}` or another format: {}", listed.join(", ")))
            .line(setting.value_span, "\"hex\""),
    }
}
