//! The kind of value that each property takes (spec 2).

use crate::ast::{Property, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::Format;
use crate::suggest::{did_you_mean, unknown_interpretation};

const FORMATS: [(&str, Format); 7] = [
    ("dec", Format::Dec),
    ("hex", Format::Hex),
    ("signed", Format::Signed),
    ("f64", Format::F64),
    ("utf8", Format::Utf8),
    ("bytes", Format::Bytes),
    ("time_ns", Format::TimeNs),
];

/// The format of this name.
pub(super) fn format(name: &str) -> Option<Format> {
    FORMATS.iter().find(|(n, _)| *n == name).map(|(_, f)| *f)
}

/// Reports a value of the wrong kind. Where it has, whoever uses the property later finds the wrong variant of
/// [`Value`] and goes on in silence.
pub(super) fn check(property: &Property, report: &mut Reporter) {
    let draft = match (property.name.text.as_str(), &property.value) {
        (_, Value::Broken)
        | ("width" | "value", Value::Expression(_))
        | ("interpretation", Value::Interpretation(_))
        | ("doc" | "unit", Value::Text(_)) => return,
        ("interpretation", Value::Word(word)) => unknown_interpretation(property.value_span, word),
        ("format", Value::Text(text)) if format(text).is_some() => return,
        ("format", Value::Text(text)) => unknown_format(property, text),
        ("previous", Value::Word(word)) if word == "own" || word == "shared" => return,
        ("previous", Value::Word(_)) => {
            Draft::new(Code::UnknownPrevious, property.value_span, "`previous` is `own` or `shared`")
                .help("`shared`: one previous value for all fields of this name; `own`: one for this field alone")
        }
        ("width", _) => wrong_kind(property, "an integer or an expression", "size.width = 4;"),
        ("value", _) => wrong_kind(property, "an integer", "magic.value = 0x7f;"),
        ("interpretation", _) => wrong_kind(property, "an interpretation", "size.interpretation = none;"),
        ("doc", _) => wrong_kind(property, "a string", "size.doc = \"bytes asked for\";"),
        ("unit", _) => wrong_kind(property, "a string", "size.unit = \"bytes\";"),
        ("format", _) => wrong_kind(property, "a string", "flags.format = \"hex\";"),
        ("previous", _) => wrong_kind(property, "the word `own` or `shared`", "time.previous = shared;"),
        _ => return,
    };
    report.add(draft);
}

fn wrong_kind(property: &Property, takes: &str, example: &str) -> Draft {
    let name = &property.name.text;
    Draft::new(Code::ValueKind, property.value_span, format!("the value of `{name}` is {takes}"))
        .label(format!("expected {takes}"))
        .help(format!("write it like `{example}`"))
}

fn unknown_format(property: &Property, text: &str) -> Draft {
    let names = FORMATS.map(|(n, _)| n);
    Draft::new(Code::UnknownFormat, property.value_span, format!("there is no format \"{text}\""))
        .help(format!("the formats are {}", names.map(|n| format!("\"{n}\"")).join(", ")))
        .maybe_help(did_you_mean(text, names))
}
