//! Doc comments of the generated code, from the DTD's.

use metatf_parser::schema::{Dtd, Format, Leaf, Record, Width, changes_direction};
use proc_macro2::TokenStream;
use quote::quote;

/// Returns the lines of a DTD's comment. Indentation and fences go: rustdoc would take what they mark for code to be tested.
pub(crate) fn lines(doc: Option<&str>) -> Vec<String> {
    let text = doc.unwrap_or_default().replace("```", "'''").replace("~~~", "---");
    let mut lines: Vec<String> = text.split(['\n', '\r']).map(|line| line.trim().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Describes a leaf: the DTD's comment, then what the file has of it. `repeated` is for an item of a list.
pub(crate) fn of_leaf(dtd: &Dtd, record: &Record, leaf: &Leaf, repeated: bool) -> Vec<String> {
    let mut parts = match leaf.width {
        Width::Number(width) if leaf.interpretation.stores() && width > 0 => vec![bytes(width.into())],
        Width::Unset | Width::Number(_) => vec!["no bytes".to_owned()],
        Width::Array(n) => vec![bytes(n)],
        Width::Until(end) => vec![format!("bytes up to a byte {end}")],
        Width::Variable(_) => vec![format!("`{}` bytes", record.width_text(&leaf.width))],
    };
    if leaf.is_numeric() {
        parts.push(format!("`{}`", dtd.interpretation_text(record, leaf)));
    }
    parts.extend(leaf.constant.map(|value| format!("always {value}")));
    parts.extend(leaf.unit.as_ref().map(|unit| format!("in {}", unit.trim())));
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
        (Some(constant), _) => format!("always {constant}"),
        (None, Width::Number(width)) => format!("after their length of {}", bytes((*width).into())),
        _ => "after their length".to_owned(),
    };
    under(doc, format!("`{name}`{many}: bytes, {length}."))
}

/// Puts a generated line under the DTD's comment, if there is one.
pub(crate) fn under(doc: Option<&str>, line: String) -> Vec<String> {
    let mut lines = lines(doc);
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push(line);
    lines
}

/// Takes out of a field's docs what holds for only some of the records that nest its struct: the generated line.
pub(crate) fn merge(docs: &mut Vec<String>, others: &[String]) {
    if docs.as_slice() == others {
        return;
    }
    let same = docs.iter().zip(others).take_while(|(a, b)| a == b).count();
    docs.truncate(same);
    docs.push("How it is stored depends on the record that nests this one.".to_owned());
}

fn bytes(n: u32) -> String {
    if n == 1 { "1 byte".to_owned() } else { format!("{n} bytes") }
}

/// Returns the lines, or where there are none, this one.
pub(crate) fn or(lines: Vec<String>, line: impl FnOnce() -> String) -> Vec<String> {
    if lines.is_empty() { vec![line()] } else { lines }
}

/// Makes one attribute a line, as `///` comments are.
pub(crate) fn attributes(lines: &[String]) -> TokenStream {
    let lines = lines.iter().map(|line| if line.is_empty() { String::new() } else { format!(" {}", plain(line)) });
    quote!(#(#[doc = #lines])*)
}

/// Escapes what a comment cannot hold: control characters, and those that change the direction of writing, most of which the compiler
/// refuses. Line ends within a line are among them, so that nothing gets out of its comment.
pub(crate) fn plain(line: &str) -> String {
    let is_plain = |c: char| c == '\t' || !(c.is_control() || changes_direction(c));
    line.chars().map(|c| if is_plain(c) { c.to_string() } else { c.escape_unicode().to_string() }).collect()
}
