//! The kind of value that each property takes (spec 2).

use crate::ast::{Setting, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::Format;
use crate::suggest::{did_you_mean, unknown_interpretation};
use crate::vocabulary::{Property, Takes};

/// Reports a value of the wrong kind. Whoever uses such a property later finds the wrong variant of [`Value`] and goes on in
/// silence.
pub(super) fn check(setting: &Setting, report: &mut Reporter) {
    let Some(property) = setting.property else { return };
    let draft = match (property.takes(), &setting.value) {
        (_, Value::Broken)
        | (Takes::Number | Takes::Constant, Value::Expression(_))
        | (Takes::Interpretation, Value::Interpretation(_))
        | (Takes::Text, Value::Text(_)) => return,
        (Takes::Format, Value::Text(text)) if Format::named(text).is_some() => return,
        (Takes::Sharing, Value::Word(word)) if matches!(*word, "own" | "shared") => return,
        (Takes::Interpretation, Value::Word(word)) => unknown_interpretation(setting.value_span, word),
        (Takes::Format, Value::Text(text)) => unknown_format(setting, text),
        (Takes::Sharing, Value::Word(_)) => {
            Draft::new(Code::UnknownPrevious, setting.value_span, "`previous` is `own` or `shared`")
                .help("`shared`: one previous value for all fields of this name; `own`: one for this field alone")
        }
        _ => wrong_kind(setting, property),
    };
    report.add(draft);
}

fn wrong_kind(setting: &Setting, property: Property) -> Draft {
    let (name, takes) = (property.name(), property.takes().describe());
    Draft::new(Code::ValueKind, setting.value_span, format!("the value of `{name}` is {takes}"))
        .label(format!("expected {takes}"))
        .help(format!("write it like `{}`", property.example()))
}

fn unknown_format(setting: &Setting, text: &str) -> Draft {
    let names = Format::ALL.iter().map(|format| format.name());
    let listed: Vec<String> = names.clone().map(|name| format!("\"{name}\"")).collect();
    Draft::new(Code::UnknownFormat, setting.value_span, format!("there is no format \"{text}\""))
        .help(format!("the formats are {}", listed.join(", ")))
        .maybe_help(did_you_mean(text, names))
}
