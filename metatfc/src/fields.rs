//! Access to the fields of a record by name, and formatting of their values.

use metatf::dynamic::Item as Value;
use metatf_cli::{is_control, shown};
use metatf_parser::schema::{Format, Leaf};
pub(crate) use metatf_tools::fields::{Cursor, is_shown, leaf, names, vfield};
use std::fmt::Write as _;

/// Formats a value as text.
pub(crate) fn text(out: &mut String, leaf: &Leaf, value: Value<'_>) {
    match value {
        Value::Number(n) => number(out, leaf, n),
        Value::Bytes(value) => bytes(out, leaf.format, value),
    }
}

/// Formats a number as its name, or according to the leaf's `format` and `unit`.
pub(crate) fn number(out: &mut String, leaf: &Leaf, n: u64) {
    if let Some(name) = leaf.names.text(n) {
        // A single word is printed without quotes.
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '|');
        return if name.contains(|c| !plain(c)) { quoted(out, &name) } else { out.push_str(&name) };
    }
    leaf.format.write_number(out, n);
    let has_unit = leaf.format.is_time() || leaf.format == Format::DurationNs;
    if let (Some(unit), false) = (&leaf.unit, has_unit) {
        let _ = write!(out, " {}", shown(unit));
    }
}

/// Formats bytes as quoted text if the `format` is text and the bytes are valid, or as hex otherwise. No bytes are
/// formatted as `-`.
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
            // `escape_debug` would also escape single quotes.
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
