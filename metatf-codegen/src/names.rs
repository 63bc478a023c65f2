//! Unique names for the generated code that are legal in every edition.
//!
//! Each name is the first unused name in a list of candidates, which starts with the simplest name. Names are requested
//! in the order of the DTD, so the same DTD always results in the same names.

use std::collections::{BTreeMap, BTreeSet};

use heck::{ToSnakeCase, ToUpperCamelCase};
use proc_macro2::{Ident, Span};

/// Keywords of the editions 2018 to 2024, and reserved keywords. They are written as raw identifiers.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Words that are not allowed even as raw identifiers.
const NEVER: &[&str] = &["_", "self", "Self", "super", "crate"];

/// Returns an identifier for a name that is legal in a DTD, or that is derived from such names.
pub(crate) fn ident(name: &str) -> Ident {
    if NEVER.contains(&name) {
        // `_` becomes `__`, and `self` becomes `self_`.
        return Ident::new(&format!("{name}_"), Span::call_site());
    }
    if KEYWORDS.contains(&name) {
        return Ident::new_raw(name, Span::call_site());
    }
    Ident::new(name, Span::call_site())
}

/// Converts a name to the name of a type or a variant: `createHeap` becomes `CreateHeap`.
pub(crate) fn camel(name: &str) -> String {
    legal(name.to_upper_camel_case(), "Type", name)
}

/// Converts a name to the name of a method: `createHeap` becomes `create_heap`.
pub(crate) fn snake(name: &str) -> String {
    legal(name.to_snake_case(), "item", name)
}

/// Makes a converted name legal. Case conversion drops underscores, so the result may be empty or start with a digit. It
/// may also be `Self`, which cannot be the name of a type.
pub(crate) fn legal(converted: String, prefix: &str, name: &str) -> String {
    match converted.chars().next() {
        None => format!("{prefix}{}", name.len()),
        Some(c) if c.is_ascii_digit() => format!("{prefix}{converted}"),
        Some(_) if converted == "Self" => format!("{converted}{prefix}"),
        Some(_) => converted,
    }
}

/// The names in use in one scope, such as the types of a module, the variants of an enum, the fields of a struct, or
/// the methods of a type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    taken: BTreeSet<String>,
    /// The next number to try for each numbered name. Lower numbers remain in use.
    numbered: BTreeMap<String, u32>,
}

impl Scope {
    /// Creates a scope in which these names are already in use.
    pub(crate) fn with(taken: &[&str]) -> Self {
        Self { taken: taken.iter().map(|&t| t.to_owned()).collect(), numbered: BTreeMap::new() }
    }

    /// Returns the first unused candidate. If all candidates are in use, returns the last candidate with a number
    /// appended, which is the lowest number from 2 on that makes the name unique.
    pub(crate) fn take(&mut self, candidates: &[String]) -> String {
        let free = candidates.iter().find(|c| !self.taken.contains(*c)).cloned();
        let name = free.unwrap_or_else(|| self.numbered(candidates.last().map_or("item", String::as_str)));
        self.taken.insert(name.clone());
        name
    }

    fn numbered(&mut self, name: &str) -> String {
        let next = self.numbered.entry(name.to_owned()).or_insert(2);
        loop {
            let numbered = format!("{name}{next}");
            *next += 1;
            if !self.taken.contains(&numbered) {
                return numbered;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_become_identifiers() {
        assert_eq!(ident("gen").to_string(), "r#gen");
        assert_eq!(ident("self").to_string(), "self_");
        assert_eq!(ident("_").to_string(), "__");
        assert_eq!(ident(&camel("self")).to_string(), "SelfType");
        assert_eq!((camel("__"), camel("_1"), snake("_")), ("Type2".into(), "Type1".into(), "item1".into()));
    }

    #[test]
    fn the_first_free_candidate_wins() {
        let mut scope = Scope::with(&["Record"]);
        let candidates = ["Record".to_owned(), "HeapRecord".to_owned()];
        let names: Vec<_> = (0..3).map(|_| scope.take(&candidates)).collect();
        assert_eq!(names, ["HeapRecord", "HeapRecord2", "HeapRecord3"]);
    }
}
