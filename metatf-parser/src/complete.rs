//! Completions for a DTD being edited. An unfinished statement does not parse, so the tokens before the cursor
//! determine the candidates. Candidate names are taken from the index, which contains every declaration that parses.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::index::{Declared, Index, SymbolKind};
use crate::lexer::{Kind, Lexed, Token};
use crate::parse::lex;
use crate::schema::{Argument, Format, InterpretationWord, MODEL_REVISION};
use crate::vocabulary::{OTHER, OnTag, PREDICTORS, Property, REST, ROLES, TYPES, Takes};

/// A completion for a location in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The label that an editor displays and uses to filter.
    pub label: String,
    /// The kind of item.
    pub kind: CompletionKind,
    /// The documentation shown to the user.
    pub doc: String,
    /// The text that replaces the bytes in `replace`.
    pub text: String,
    /// The byte range of the partially typed word.
    pub replace: Range<usize>,
}

/// The kind of a [`Completion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// A keyword of the language.
    Keyword,
    /// A property.
    Property,
    /// A field.
    Field,
    /// A record.
    Record,
    /// A number or a string.
    Value,
}

/// Returns the completions at an offset. `index` is the [index](crate::index()) of the text; an index of the text
/// before the latest edits also works, because only its names are used.
#[must_use]
pub fn complete(text: &[u8], index: &Index, offset: usize) -> Vec<Completion> {
    let Some((text, lexed)) = lex(text) else { return Vec::new() };
    if lexed.comments.iter().any(|c| c.span.start() < offset && offset <= c.span.end().max(c.span.start() + 1)) {
        return Vec::new();
    }
    let Some(place) = Place::find(text, &lexed, offset) else { return Vec::new() };
    let mut list = List { replace: place.replace.clone(), out: Vec::new() };
    let scope = Scope::of(index, &place);
    statement(&place, &scope, &mut list);
    list.out
}

/// The context of the word being typed.
struct Place<'t> {
    /// The words of the statement before the cursor.
    words: Vec<&'t str>,
    /// The byte range of the partially typed word.
    replace: Range<usize>,
    /// The types that the text defines.
    types: Vec<&'t str>,
    /// Whether the partially typed word is a string.
    in_text: bool,
    /// The names of the section and the record that enclose the cursor.
    section: Option<&'t str>,
    record: Option<&'t str>,
}

impl<'t> Place<'t> {
    fn find(text: &'t str, lexed: &Lexed, offset: usize) -> Option<Place<'t>> {
        let word = |token: &Token| text.get(token.span.range()).unwrap_or_default();
        let end = lexed.tokens.partition_point(|token| token.span.end() < offset);
        // Complete the word that contains the cursor or ends there, but not punctuation.
        let begun = lexed
            .tokens
            .get(end)
            .filter(|token| token.span.start() < offset && matches!(token.kind, Kind::Name | Kind::Int | Kind::Text));
        let behind = lexed.tokens.partition_point(|token| token.span.end() <= offset);
        let before = lexed.tokens.get(..if begun.is_some() { end } else { behind })?;
        let (mut first, mut open) = (0, Vec::new());
        for (at, token) in before.iter().enumerate() {
            match token.kind {
                Kind::Mark(b'{') => {
                    let head = before.get(first..at).unwrap_or_default();
                    let is_section = head.first().is_some_and(|t| word(t) == "section") && head.len() > 2;
                    let name = head.get(usize::from(is_section)).map_or("", word);
                    open.push((is_section, name));
                }
                Kind::Mark(b'}') => drop(open.pop()),
                Kind::Mark(b';') => {}
                _ => continue,
            }
            first = at + 1;
        }
        let of =
            |section: bool| open.iter().rev().find(|(is_section, _)| *is_section == section).map(|(_, name)| *name);
        // An unterminated string is replaced only up to the cursor.
        let closed = begun.is_some_and(|t| t.kind != Kind::Text || word(t).len() > 1 && word(t).ends_with('"'));
        let replace = begun.map_or(offset..offset, |t| t.span.start()..if closed { t.span.end() } else { offset });
        let defines = |tokens: &[Token]| match tokens {
            [first, name, colon] if word(first) == "type" && word(colon) == ":" => Some(name.span),
            _ => None,
        };
        let types = lexed.tokens.windows(3).filter_map(|tokens| text.get(defines(tokens)?.range()));
        Some(Place {
            types: types.collect(),
            words: before.get(first..)?.iter().map(word).collect(),
            replace,
            in_text: begun.is_some_and(|t| t.kind == Kind::Text),
            section: of(true),
            record: of(false),
        })
    }
}

/// The names available at the cursor.
struct Scope<'i> {
    index: &'i Index,
    /// The enclosing section.
    section: Option<&'i Declared>,
    /// The enclosing record.
    record: Option<&'i Declared>,
    /// The records visible in the section.
    records: Vec<&'i Declared>,
}

impl<'i> Scope<'i> {
    fn of(index: &'i Index, place: &Place) -> Scope<'i> {
        let is_record = |declared: &&Declared| declared.kind == SymbolKind::Record;
        let section = index.outline.iter().find(|d| !is_record(d) && Some(d.name.as_str()) == place.section);
        let global = index.outline.iter().filter(is_record);
        let records: Vec<_> = section.into_iter().flat_map(|s| &s.children).chain(global).collect();
        let record = records.iter().find(|r| Some(r.name.as_str()) == place.record).copied();
        Scope { index, section, record, records }
    }

    fn record(&self, name: &str) -> Option<&'i Declared> {
        self.records.iter().find(|record| record.name == name).copied()
    }

    /// Returns the fields that a record lists. The record may be predefined.
    fn fields_of(&self, record: &str) -> Vec<&'i str> {
        match self.record(record) {
            Some(record) => record.children.iter().map(|field| field.name.as_str()).collect(),
            None if record == "vfield" => vec!["length", "data"],
            None => Vec::new(),
        }
    }

    /// Returns the fields of the enclosing record, or of all records if the cursor is not in a record.
    fn fields(&self) -> BTreeSet<&'i str> {
        let (own, all) = match self.record {
            Some(record) => (Some(record), &[][..]),
            None => (None, self.records.as_slice()),
        };
        let all: Vec<&Declared> = if own.is_none() && self.section.is_none() {
            let records = |declared: &'i Declared| match declared.kind {
                SymbolKind::Section => declared.children.iter().collect(),
                _ => vec![declared],
            };
            self.index.outline.iter().flat_map(records).collect()
        } else {
            all.to_vec()
        };
        own.into_iter().chain(all).flat_map(|record| &record.children).map(|field| field.name.as_str()).collect()
    }

    fn sections(&self) -> impl Iterator<Item = &'i Declared> {
        self.index.outline.iter().filter(|declared| declared.kind == SymbolKind::Section)
    }
}

struct List {
    replace: Range<usize>,
    out: Vec<Completion>,
}

/// Maximum number of completions; nobody would read a longer list.
const MOST: usize = 1000;

impl List {
    fn add(&mut self, kind: CompletionKind, label: &str, text: &str, doc: &str) {
        if self.out.len() < MOST && self.out.iter().all(|known| known.label != label) {
            let (label, text, doc, replace) = (label.to_owned(), text.to_owned(), doc.to_owned(), self.replace.clone());
            self.out.push(Completion { label, kind, doc, text, replace });
        }
    }

    fn words<'a>(&mut self, kind: CompletionKind, words: impl IntoIterator<Item = &'a str>) {
        words.into_iter().for_each(|word| self.add(kind, word, word, ""));
    }

    fn sections(&mut self, scope: &Scope) {
        for section in scope.sections() {
            self.add(CompletionKind::Value, &section.detail, &section.detail, &format!("section `{}`", section.name));
        }
    }

    fn records(&mut self, scope: &Scope) {
        for record in &scope.records {
            self.add(CompletionKind::Record, &record.name, &record.name, &record.detail);
        }
    }
}

fn statement(place: &Place, scope: &Scope, list: &mut List) {
    let words = place.words.as_slice();
    if let Some(equals) = words.iter().position(|word| *word == "=") {
        let target: Vec<&str> = words.iter().take(equals).filter(|word| **word != ".").copied().collect();
        if let Some((name, path)) = target.split_last() {
            value(place, scope, (path, name), words.get(equals + 1..).unwrap_or_default(), list);
        }
        return;
    }
    match words {
        _ if place.in_text => {}
        [] => {
            if place.record.is_none() && place.section.is_none() {
                list.add(
                    CompletionKind::Keyword,
                    "section",
                    "section ",
                    "A numbered group of definitions: `section NAME NUMBER { ... }`.",
                );
            }
            list.add(CompletionKind::Field, "tag", "tag", "The number that identifies the record.");
            list.words(CompletionKind::Field, scope.fields());
        }
        ["section", ..] => {}
        ["type", _, ":"] | [_, ":", .., _, ":"] => types(place, scope, list),
        ["type", _, ":", kind] | [_, ":", .., ":", kind] if TYPES.contains(kind) || place.types.contains(kind) => {
            interpretation(scope, &[], list);
        }
        [_, ":", ..] => {
            list.words(CompletionKind::Field, ["tag"]);
            list.records(scope);
            list.add(CompletionKind::Record, "vfield", "vfield", "A byte array preceded by its length.");
            list.words(
                CompletionKind::Field,
                Scope { record: None, records: scope.records.clone(), ..*scope }.fields(),
            );
        }
        [.., name, "."] => {
            let is_tag = matches!(words, ["tag", "."]);
            let top_level = place.record.is_none() && place.section.is_none();
            let fits = |property: &&Property| {
                !is_tag
                    || match property.on_tag() {
                        OnTag::TopLevel => top_level,
                        OnTag::Block => place.record.is_some(),
                        OnTag::Anywhere => true,
                        OnTag::Never => false,
                    }
            };
            for property in Property::ALL.iter().filter(fits) {
                let doc = format!("{}\n\n`{}`", property.doc(), property.example());
                list.add(CompletionKind::Property, property.name(), property.name(), &doc);
            }
            list.words(CompletionKind::Field, scope.fields_of(name));
        }
        _ => {}
    }
}

/// Completes the type of a field.
fn types(place: &Place, scope: &Scope, list: &mut List) {
    for name in TYPES {
        let doc = match name.split_at(1) {
            ("u", bits) => format!("An unsigned number of {bits} bits."),
            ("i", bits) => format!("A signed number of {bits} bits."),
            ("f", bits) => format!("A floating-point number of {bits} bits."),
            _ if name == "bytes" => {
                "A byte array: `bytes 16`, or `bytes n.value` with an earlier field `n`.".to_owned()
            }
            _ if name == "text" => "A text preceded by its length, or `text 16` without one.".to_owned(),
            _ => "A text that ends before a zero byte.".to_owned(),
        };
        let text = if name == "bytes" { "bytes " } else { name };
        list.add(CompletionKind::Value, name, text, &doc);
    }
    for name in &place.types {
        list.add(CompletionKind::Value, name, name, "A type that this DTD defines.");
    }
    list.records(scope);
    list.add(CompletionKind::Record, "vfield", "vfield", "A byte array preceded by its length.");
    interpretation(scope, &[], list);
}

fn value(place: &Place, scope: &Scope, (path, name): (&[&str], &str), before: &[&str], list: &mut List) {
    let Some(property) = Property::named(name) else { return };
    let first = before.is_empty();
    match property.takes() {
        Takes::Format if first => {
            for format in Format::ALL {
                list.add(CompletionKind::Value, format.name(), &format!("\"{}\"", format.name()), format.doc());
            }
        }
        Takes::Text if first && property == Property::Unit => {
            for unit in ["byte", "ns", "us", "ms", "s", "tick"] {
                list.add(CompletionKind::Value, unit, &format!("\"{unit}\""), "");
            }
        }
        _ if place.in_text => {}
        Takes::Sharing if first => {
            list.add(CompletionKind::Keyword, "own", "own", "Keeps a previous value for this field only.");
            list.add(
                CompletionKind::Keyword,
                "shared",
                "shared",
                "Shares one previous value between all fields of this name.",
            );
        }
        Takes::Constant if first && path == ["tag"] => {
            let used: BTreeSet<u32> = scope.index.records.iter().filter_map(|record| record.tag).collect();
            let free = (4..).find(|tag| !used.contains(tag)).unwrap_or(4).to_string();
            list.add(CompletionKind::Value, &free, &free, "The lowest unused tag.");
            list.add(
                CompletionKind::Keyword,
                OTHER,
                OTHER,
                "Matches all tags that no other record of the section uses.",
            );
        }
        Takes::Constant if first && property == Property::Section => list.sections(scope),
        Takes::Number => number(scope, before, list),
        Takes::Interpretation => interpretation(scope, before, list),
        _ => {}
    }
}

/// Completes a width: a number or an expression over fields.
fn number(scope: &Scope, before: &[&str], list: &mut List) {
    if before.is_empty() {
        for (word, text, doc) in [
            ("1", "1", "A byte."),
            ("2", "2", "Two bytes."),
            ("4", "4", "Four bytes."),
            ("8", "8", "Eight bytes."),
            ("bytes", "bytes ", "An array with this number of bytes."),
            ("until", "until ", "An array that ends before this byte."),
            (REST, REST, "An array up to the end of the file, chunk or array that contains the record."),
        ] {
            list.add(CompletionKind::Value, word, text, doc);
        }
    }
    match before {
        [] | [.., "+" | "-" | "*" | "/" | "%" | "(" | "==" | "!=" | "<" | "<=" | ">" | ">="] => {
            for field in scope.fields() {
                list.add(CompletionKind::Field, field, &format!("{field}.value"), "");
            }
        }
        [.., name, "."] => {
            list.add(CompletionKind::Keyword, "value", "value", "The value of the field.");
            list.add(CompletionKind::Keyword, "width", "width", "The width of the field.");
            list.add(
                CompletionKind::Keyword,
                "bit",
                "bit ",
                "A bit of the field's value; bit 0 is the least significant.",
            );
            list.words(CompletionKind::Field, scope.fields_of(name));
        }
        _ => {}
    }
}

fn interpretation(scope: &Scope, before: &[&str], list: &mut List) {
    match before {
        [] => {
            for word in InterpretationWord::ALL {
                let arguments: String = word.arguments().iter().map(argument).collect();
                list.add(CompletionKind::Keyword, word.name(), &format!("{}{arguments}", word.name()), word.doc());
            }
        }
        ["sectionOffset" | "sectionStride"] => list.sections(scope),
        ["baseOffset"] => list.records(scope),
        ["baseOffset", record, "."] => {
            for field in scope.fields_of(record).into_iter().filter(|field| *field != "tag") {
                list.add(CompletionKind::Field, field, &format!("{field}.value"), "");
            }
        }
        ["baseOffset", .., "."] => list.words(CompletionKind::Keyword, ["value"]),
        ["predicted"] => {
            let revision = MODEL_REVISION.to_string();
            list.add(CompletionKind::Value, &revision, &format!("{revision} "), "The revision of the models.");
        }
        ["predicted", rest @ ..] => model(scope, rest, list),
        _ => {}
    }
}

/// Returns the text to insert for an argument: a space and a default value, if there is one.
fn argument(kind: &Argument) -> &'static str {
    match kind {
        Argument::Number => " 0",
        Argument::Steps => " 1",
        // These arguments have no default, so the user must type them.
        Argument::Base | Argument::Stream | Argument::NumberStream | Argument::Model => " ",
    }
}

fn model(scope: &Scope, before: &[&str], list: &mut List) {
    match before {
        [.., "heap"] => list.words(CompletionKind::Keyword, ROLES),
        [.., "by" | "allocated"] => {
            list.words(CompletionKind::Field, scope.fields());
            list.records(scope);
        }
        [.., record, "."] => list.words(CompletionKind::Field, scope.fields_of(record)),
        [_] | [.., "(" | ","] => list.words(CompletionKind::Keyword, PREDICTORS),
        [.., "lastValue" | "fcm" | "dfcm"] => list.words(CompletionKind::Value, ["1", "2", "3"]),
        _ => {
            list.add(CompletionKind::Keyword, "by", "by ", "Keeps a separate context for each value of a field.");
            list.sections(scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::complete;

    fn labels(text: &str) -> Vec<String> {
        let index = crate::index(text.as_bytes());
        complete(text.as_bytes(), &index, text.len()).into_iter().map(|found| found.label).collect()
    }

    #[test]
    fn types_after_the_name_of_a_field() {
        let types = labels("type micros: u64;\nsection s 1 {\n    point: (x: u8);\n    r: (a: u8, time: ");
        for name in ["u32", "f64", "bytes", "text", "cstring", "micros", "point", "vfield", "delta"] {
            assert!(types.iter().any(|label| label == name), "{name} is not in {types:?}");
        }
        let after = labels("section s 1 { r: (time: u32 ");
        assert!(after.iter().any(|label| label == "delta") && !after.iter().any(|label| label == "u32"), "{after:?}");
        let fields = labels("section s 1 { q: (size: u8); r: (");
        assert!(fields.iter().any(|label| label == "size") && !fields.iter().any(|label| label == "u32"), "{fields:?}");
    }
}
