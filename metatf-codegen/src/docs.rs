//! Doc comments of the generated code, from the DTD's.

use metatf_parser::schema::Leaf;
use proc_macro2::TokenStream;
use quote::quote;

/// The lines of a DTD's comment. Indentation and fences go: rustdoc would take what they mark for code to be tested.
pub(crate) fn lines(doc: Option<&str>) -> Vec<String> {
    let text = doc.unwrap_or_default().replace("```", "'''").replace("~~~", "---");
    let mut lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// A leaf's doc, and its unit.
pub(crate) fn of_leaf(leaf: &Leaf) -> Vec<String> {
    let mut lines = lines(leaf.doc.as_deref());
    if let Some(unit) = &leaf.unit {
        lines.push(format!("Unit: {}.", unit.trim()));
    }
    lines
}

/// The lines, or where there are none, this one.
pub(crate) fn or(lines: Vec<String>, line: impl FnOnce() -> String) -> Vec<String> {
    if lines.is_empty() { vec![line()] } else { lines }
}

/// One attribute a line, as `///` comments are.
pub(crate) fn attributes(lines: &[String]) -> TokenStream {
    let lines = lines.iter().map(|line| if line.is_empty() { String::new() } else { format!(" {line}") });
    quote!(#(#[doc = #lines])*)
}
