//! The fields of a record by their names, and their values as text.

use metatf::dynamic::{Item as Value, OwnedRecord};
use metatf_cli::{is_control, shown};
use metatf_parser::schema::{Format, Item, Leaf, LeafId, Record, Repeated};
use std::fmt::Write as _;

/// Returns the length leaf and the data leaf of a `vfield`; the data leaf stands for the whole (spec 8).
pub(crate) fn vfield(record: &str, items: &[Item]) -> Option<(LeafId, LeafId)> {
    match items {
        [Item::Leaf(length), Item::Leaf(data)] if record == "vfield" => Some((*length, *data)),
        _ => None,
    }
}

/// Returns the name of each leaf of a record, the tag included: its keys in JSON, with dots between.
pub(crate) fn names(record: &Record) -> Vec<(LeafId, String)> {
    let mut names = Vec::new();
    collect(record, &record.items, "", &mut names);
    names
}

/// Items nest at most 32 deep (spec 3.5), so this recursion is bounded.
fn collect(record: &Record, items: &[Item], prefix: &str, names: &mut Vec<(LeafId, String)>) {
    for item in items {
        match item {
            Item::Leaf(id) => {
                if let Some(leaf) = leaf(record, *id) {
                    names.push((*id, format!("{prefix}{}", leaf.key)));
                }
            }
            Item::Nested { key, record: nested, items, .. } => {
                collect_nested(record, nested, items, format!("{prefix}{key}"), names);
            }
            Item::Repeat { key, body, .. } => {
                let path = format!("{prefix}{key}");
                match body {
                    Repeated::Leaf(id) => names.push((*id, path)),
                    Repeated::Group(items) => collect(record, items, &format!("{path}."), names),
                    Repeated::Record { record: nested, items, .. } => {
                        collect_nested(record, nested, items, path, names);
                    }
                }
            }
        }
    }
}

fn collect_nested(record: &Record, nested: &str, items: &[Item], path: String, names: &mut Vec<(LeafId, String)>) {
    match vfield(nested, items) {
        Some((length, data)) => {
            names.push((length, format!("{path}.length")));
            names.push((data, path));
        }
        None => collect(record, items, &format!("{path}."), names),
    }
}

pub(crate) fn leaf(record: &Record, id: LeafId) -> Option<&Leaf> {
    record.leaves.get(usize::from(id.0))
}

/// Returns whether a leaf is shown: tags and constants only with `all`, counts that are computed never (spec 8).
pub(crate) fn is_shown(leaf: &Leaf, all: bool) -> bool {
    !leaf.is_implied() || all && leaf.computed.is_none()
}

/// Takes a record's values from its owned record, in the order of its leaves.
pub(crate) struct Cursor<'t> {
    pub(crate) record: &'t Record,
    pub(crate) owned: &'t OwnedRecord,
    next: usize,
    /// The last number of each leaf, for counts.
    last: Vec<u64>,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(record: &'t Record, owned: &'t OwnedRecord) -> Self {
        // Only what repeats is counted.
        let counts = record.leaves.iter().any(|leaf| leaf.repeated);
        Self { record, owned, next: 0, last: vec![0; if counts { record.leaves.len() } else { 0 }] }
    }

    /// Takes the next value. A tag that is always the same is not among the stored values.
    pub(crate) fn take(&mut self, id: LeafId) -> Option<(&'t Leaf, Value<'t>)> {
        let leaf = leaf(self.record, id)?;
        if leaf.is_tag() {
            return Some((leaf, Value::Number(self.record.tag.unwrap_or(0).into())));
        }
        let value = self.owned.get(self.next)?;
        self.next += 1;
        if let (Value::Number(n), Some(last)) = (value, self.last.get_mut(usize::from(id.0))) {
            *last = n;
        }
        Some((leaf, value))
    }

    /// Returns the value last taken of a leaf that counts.
    pub(crate) fn count(&self, id: LeafId) -> u64 {
        self.last.get(usize::from(id.0)).copied().unwrap_or(0)
    }
}

/// Formats a value for people.
pub(crate) fn text(out: &mut String, leaf: &Leaf, value: Value<'_>) {
    match value {
        Value::Number(n) => number(out, leaf, n),
        Value::Bytes(value) => bytes(out, leaf.format, value),
    }
}

/// Formats a number by its name, or by its `format` with its `unit`.
pub(crate) fn number(out: &mut String, leaf: &Leaf, n: u64) {
    if let Some(name) = leaf.names.text(n) {
        // A word goes without quotes, so that it reads like one.
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '|');
        return if name.contains(|c| !plain(c)) { quoted(out, &name) } else { out.push_str(&name) };
    }
    leaf.format.write_number(out, n);
    let has_unit = leaf.format.is_time() || leaf.format == Format::DurationNs;
    if let (Some(unit), false) = (&leaf.unit, has_unit) {
        let _ = write!(out, " {}", shown(unit));
    }
}

/// Formats bytes: text in quotes if that is the `format` and the bytes are text, else hex; `-` for no bytes.
fn bytes(out: &mut String, format: Format, bytes: &[u8]) {
    match format.text_of_bytes(bytes) {
        Some(text) => quoted(out, text),
        _ if bytes.is_empty() => out.push('-'),
        _ => match format.word_of_bytes(bytes) {
            Some(word) => out.push_str(&word),
            None => hex(out, bytes),
        },
    }
}

pub(crate) fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            // Not escape_debug: it escapes quotes of the other kind, too.
            '"' | '\\' => out.extend(['\\', c]),
            _ if is_control(c) => out.extend(c.escape_debug()),
            _ => out.push(c),
        }
    }
    out.push('"');
}

pub(crate) fn hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        out.extend(hex_digits(*byte).map(char::from));
    }
}

pub(crate) fn hex_digits(byte: u8) -> [u8; 2] {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}
