//! Doc comments of the generated code, taken from the DTD.

mod markdown;

use metatf_parser::schema::{
    Dtd, Format, InterpretationWord, Item, Leaf, LeafId, Record, Repeated, Width, changes_direction,
};
use proc_macro2::TokenStream;
use quote::quote;

pub(crate) use markdown::code;
use markdown::markdown;

/// Returns the lines of a DTD comment. Removes indentation and code fences, because rustdoc would compile the marked
/// text as tests.
pub(crate) fn lines(doc: Option<&str>) -> Vec<String> {
    let text = doc.unwrap_or_default().replace("```", "'''").replace("~~~", "---");
    let mut lines: Vec<String> = text.split(['\n', '\r']).map(|line| line.trim().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Describes the interpretations in the DTD, each as an item of a list.
pub(crate) fn interpretations(dtd: &Dtd) -> Vec<String> {
    let leaves = dtd
        .records
        .iter()
        .flat_map(|record| &record.leaves)
        .filter(|leaf| leaf.is_numeric() && !leaf.is_implied() && leaf.computed.is_none());
    let used: Vec<InterpretationWord> = leaves.map(|leaf| leaf.interpretation.parts().word).collect();
    // A comment may mention an interpretation that metadata selects.
    let is_mentioned =
        |word: InterpretationWord| dtd.text.split(|c: char| !c.is_alphanumeric()).any(|w| w == word.name());
    let words = InterpretationWord::ALL.iter().filter(|word| used.contains(word) || is_mentioned(**word));
    let lines = words.flat_map(|word| wrapped(&format!("- `{}`: {}", word.name(), word.doc()), "  "));
    lines.map(|line| format!(" {line}")).collect()
}

/// Describes previous values, if a leaf has one.
pub(crate) fn previous(dtd: &Dtd) -> Vec<String> {
    let leaves = || dtd.records.iter().flat_map(|record| &record.leaves);
    if !leaves().any(|leaf| leaf.interpretation.initial().is_some()) {
        return Vec::new();
    }
    let inherited = [InterpretationWord::Delta, InterpretationWord::Stride, InterpretationWord::Predicted];
    let used = inherited.iter().filter(|word| leaves().any(|leaf| leaf.interpretation.parts().word == **word));
    let used: Vec<String> = used.map(|word| format!("`{}`", word.name())).collect();
    let paragraph = format!(
        "The *previous value* of a leaf is its value in the most recent record of its section that contains it, or in the \
         previous item of a repetition. Leaves share a previous value if they inherit {} from the same declaration of a \
         section or of the format, or if the DTD sets `previous = shared`. Each group starts with the initial values.",
        used.join(" or ")
    );
    let lines = wrapped(&paragraph, "");
    std::iter::once(String::new()).chain(lines.into_iter().map(|line| format!(" {line}"))).collect()
}

/// Breaks a paragraph into lines for doc attributes. `indent` begins each line but the first.
pub(crate) fn wrapped(paragraph: &str, indent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in paragraph.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < 110 => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{indent}{word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Describes a leaf by its DTD comment, followed by its encoding in the file. `repeated` indicates an item of a list.
pub(crate) fn of_leaf(dtd: &Dtd, record: &Record, leaf: &Leaf, repeated: bool) -> Vec<String> {
    let mut parts = match leaf.width {
        Width::Number(_) | Width::Array(_) if stored(leaf) != Some(0) => {
            let offset = offset(record, leaf).map_or(String::new(), |offset| format!(" at offset {offset}"));
            vec![bytes(stored(leaf).unwrap_or(0)) + &offset]
        }
        Width::Unset | Width::Number(_) | Width::Array(_) => vec!["no bytes".to_owned()],
        Width::Until(end) => vec![format!("bytes up to a byte {end}")],
        Width::Rest => vec!["bytes up to the end".to_owned()],
        Width::Variable(_) => vec![format!("`{}` bytes", record.width_text(&leaf.width))],
    };
    if leaf.is_numeric() {
        parts.push(format!("interpretation `{}`", dtd.interpretation_text(record, leaf)));
    }
    parts.extend(leaf.constant.map(|value| format!("always {value}")));
    parts.extend(leaf.unit.as_ref().map(|unit| format!("unit `{}`", unit.trim())));
    if leaf.format != Format::Unset {
        parts.push(format!("format `{}`", leaf.format.name()));
    }
    let many = if repeated { ", repeated" } else { "" };
    under(leaf.doc.as_deref(), format!("`{}`{many}: {}.", leaf.name, parts.join(", ")))
}

/// Describes a `vfield` by its two leaves.
pub(crate) fn of_vfield(name: &str, doc: Option<&str>, length: &Leaf, repeated: bool) -> Vec<String> {
    let many = if repeated { ", repeated" } else { "" };
    let length = match (length.constant, &length.width) {
        (Some(constant), _) => format!("always {}", bytes(u32::try_from(constant).unwrap_or(u32::MAX))),
        (None, Width::Number(width)) => format!("preceded by its length ({})", bytes((*width).into())),
        _ => "preceded by its length".to_owned(),
    };
    under(doc, format!("`{name}`{many}: a byte array, {length}."))
}

/// Appends a generated line to the DTD comment, if any.
pub(crate) fn under(doc: Option<&str>, line: String) -> Vec<String> {
    let mut lines = lines(doc);
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push(line);
    lines
}

/// Puts a generated line above the DTD comment of a section, if any.
pub(crate) fn above(comment: &[String], line: String) -> Vec<String> {
    let mut lines = vec![line];
    if !comment.is_empty() {
        lines.push(String::new());
        lines.extend_from_slice(comment);
    }
    lines
}

/// Removes the generated line from a field's docs if it differs between the records that nest the field's struct.
pub(crate) fn merge(docs: &mut Vec<String>, others: &[String]) {
    if docs.as_slice() == others {
        return;
    }
    let same = docs.iter().zip(others).take_while(|(a, b)| a == b).count();
    docs.truncate(same);
    docs.push("Its encoding depends on the record that nests this one.".to_owned());
}

/// Describes the declared layout of a record: its leaves in order, each with its number of bytes.
pub(crate) fn layout(record: &Record) -> Vec<String> {
    let mut lines = vec!["Stored bytes: `".to_owned()];
    for (index, part) in parts(record, &record.items).split_inclusive('|').enumerate() {
        match lines.last_mut() {
            Some(line) if index == 0 || line.len() + part.len() < 100 => line.push_str(part),
            _ => lines.push(part.trim_start().to_owned()),
        }
    }
    lines.last_mut().into_iter().for_each(|line| line.push_str("`."));
    lines
}

fn parts(record: &Record, items: &[Item]) -> String {
    let leaf = |id: LeafId| record.leaves.get(usize::from(id.0));
    let part = |item: &Item| match item {
        Item::Leaf(id) => leaf(*id).filter(|leaf| stored(leaf) != Some(0)).map(|leaf| width(record, leaf)),
        Item::Nested { items, .. } => Some(parts(record, items)).filter(|parts| !parts.is_empty()),
        Item::Repeat { count, body, .. } => {
            let count = leaf(*count).map_or("", |leaf| &leaf.name);
            Some(match body {
                Repeated::Leaf(id) => {
                    format!("{count} * {}", leaf(*id).map_or(String::new(), |leaf| width(record, leaf)))
                }
                Repeated::Group(items) | Repeated::Record { items, .. } => {
                    format!("{count} * ({})", parts(record, items))
                }
            })
        }
    };
    items.iter().filter_map(part).collect::<Vec<_>>().join(" | ")
}

/// Returns the path of a leaf and its number of bytes.
fn width(record: &Record, leaf: &Leaf) -> String {
    let path = leaf.path.join(".");
    match (stored(leaf), &leaf.width) {
        (Some(bytes), _) => format!("{path}: {bytes}"),
        (None, Width::Until(end)) => format!("{path}: up to a byte {end}"),
        (None, _) => format!("{path}: {}", record.width_text(&leaf.width)),
    }
}

/// Returns the declared number of bytes that a leaf stores, or `None` if it varies.
fn stored(leaf: &Leaf) -> Option<u32> {
    match leaf.width {
        Width::Number(width) if leaf.interpretation.stores() => Some(width.into()),
        Width::Unset | Width::Number(_) => Some(0),
        Width::Array(n) => Some(n),
        Width::Until(_) | Width::Variable(_) | Width::Rest => None,
    }
}

/// Returns the declared distance of a field from the start of its record, or `None` if it varies. Fields of nested
/// records have none, because one struct describes them in all records.
fn offset(record: &Record, leaf: &Leaf) -> Option<u64> {
    let mut before = record.leaves.iter().take_while(|before| before.path != leaf.path);
    let sum = |sum: u64, before: &Leaf| stored(before).filter(|_| !before.repeated).map(|width| sum + u64::from(width));
    (!leaf.repeated && leaf.path.len() == 1).then(|| before.try_fold(0, sum))?
}

fn bytes(n: u32) -> String {
    if n == 1 { "1 byte".to_owned() } else { format!("{n} bytes") }
}

/// Returns the lines, or `line` if there are no lines.
pub(crate) fn or(lines: Vec<String>, line: impl FnOnce() -> String) -> Vec<String> {
    if lines.is_empty() { vec![line()] } else { lines }
}

/// Creates a doc attribute for each line, like a `///` comment. The lines contain no links.
pub(crate) fn attributes(lines: &[String]) -> TokenStream {
    let lines: Vec<String> = lines.iter().map(|line| plain(line)).collect();
    let text = markdown(&lines.join("\n"));
    let lines = text.split('\n').filter(|_| !lines.is_empty());
    let lines = lines.map(|line| if line.is_empty() { String::new() } else { format!(" {line}") });
    quote!(#(#[doc = #lines])*)
}

/// Escapes control characters and characters that change the text direction, because the compiler rejects most of them
/// in comments. Line breaks are also escaped, so that no text can escape from its comment.
pub(crate) fn plain(line: &str) -> String {
    let is_plain = |c: char| !(c.is_control() || changes_direction(c));
    let character = |c: char| match c {
        '\t' => "    ".to_owned(),
        c if is_plain(c) => c.to_string(),
        c => c.escape_unicode().to_string(),
    };
    line.chars().map(character).collect()
}
