//! The tokens of a text with the names that it declares, as far as corrections need them.

use std::collections::{HashMap, HashSet};

use crate::lexer::{Kind, Lexed};
use crate::schema::parse_names;
use crate::span::Span;
use crate::syntax::expected::is_reserved;
use crate::vocabulary::{Property, TYPES};

/// A token with its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    pub(super) span: Span,
}

impl Word<'_> {
    /// Checks whether the word can be a name.
    pub(super) fn is_name(&self) -> bool {
        self.kind == Kind::Name && !is_reserved(self.text)
    }

    pub(super) fn is_number(&self) -> bool {
        let digits =
            || self.text.strip_prefix("0x").is_some_and(|d| d.bytes().all(|b| b.is_ascii_hexdigit() || b == b'_'));
        self.kind == Kind::Int
            && (self.text.starts_with('\'') || digits() || self.text.bytes().all(|b| b.is_ascii_digit() || b == b'_'))
    }

    /// Returns the change of the nesting depth after this word.
    pub(super) fn nests(&self) -> isize {
        match self.text {
            "(" | "[" | "{" => 1,
            ")" | "]" | "}" => -1,
            _ => 0,
        }
    }
}

/// The tokens of a text, and the names that the text declares.
pub(crate) struct Tokens<'t> {
    text: &'t str,
    lexed: &'t Lexed,
    /// The names of records and types.
    types: HashSet<&'t str>,
    /// The records with their first fields.
    records: HashMap<&'t str, &'t str>,
    /// The names of records and types, and those for which there are statements.
    declared: HashSet<&'t str>,
    /// The fields with the type `text` without a length.
    texts: HashSet<&'t str>,
    /// The sections with their numbers.
    sections: Vec<(&'t str, &'t str)>,
    /// The records with the numbers of their sections.
    elements: Vec<(&'t str, &'t str)>,
    tags: HashSet<&'t str>,
    /// The field or the type, and the list, of each `values` and `flags`.
    lists: Vec<(&'t str, Property, &'t str)>,
    /// The names of fields, with their types.
    fields: HashMap<&'t str, &'t str>,
}

impl<'t> Tokens<'t> {
    /// Collects the names that the tokens declare. A text that cannot be parsed may declare them in a wrong place.
    pub(crate) fn new(text: &'t str, lexed: &'t Lexed) -> Tokens<'t> {
        let mut out = Tokens {
            text,
            lexed,
            types: HashSet::new(),
            records: HashMap::new(),
            declared: HashSet::new(),
            texts: HashSet::new(),
            sections: Vec::new(),
            elements: Vec::new(),
            tags: HashSet::new(),
            lists: Vec::new(),
            fields: HashMap::new(),
        };
        let mut last_type = "";
        let word = |index: usize| lexed.tokens.get(index).and_then(|token| text.get(token.span.range())).unwrap_or("");
        for (index, token) in lexed.tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Name) {
            let (name, next) = (text.get(token.span.range()).unwrap_or_default(), word(index + 1));
            let starts = index == 0 || matches!(word(index - 1), "type" | "{" | "}" | ";");
            if index > 0 && matches!(word(index - 1), "(" | "," | "*") && matches!(next, "," | ")" | ":" | "*") {
                out.fields.entry(name).or_insert(if next == ":" { word(index + 2) } else { name });
            }
            if starts && word(index.wrapping_sub(1)) == "type" {
                last_type = name;
            }
            match (name, next) {
                ("section", section) if lexed.tokens.get(index + 2).is_some_and(|t| t.kind == Kind::Int) => {
                    out.sections.push((section, word(index + 2)));
                }
                (_, ":") if starts => {
                    out.types.insert(name);
                    out.elements.extend(out.sections.last().map(|(_, number)| (name, *number)));
                    out.declared.insert(name);
                    if word(index + 2) == "(" && matches!(word(index + 4), ":" | "," | ")") {
                        out.records.insert(name, word(index + 3));
                    }
                }
                (_, ":") if word(index + 2) == "text" && matches!(word(index + 3), "," | ")") => {
                    out.texts.insert(name);
                }
                ("values" | "flags", "=") if starts && !last_type.is_empty() => {
                    out.lists.extend(Property::named(name).map(|property| (last_type, property, word(index + 2))));
                }
                (_, ".") => {
                    if starts {
                        out.declared.insert(name);
                    }
                    let property = Property::named(word(index + 2)).filter(|_| word(index + 3) == "=");
                    match property {
                        Some(Property::Value) if name == "tag" => drop(out.tags.insert(word(index + 4))),
                        Some(property @ (Property::Values | Property::Flags)) => {
                            out.lists.push((name, property, word(index + 4)));
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        out
    }

    pub(super) fn get(&self, index: usize) -> Option<Word<'t>> {
        let token = self.lexed.tokens.get(index)?;
        Some(Word { kind: token.kind, text: self.text.get(token.span.range())?, span: token.span })
    }

    /// Returns the words in a span.
    pub(super) fn within(&self, span: Span) -> impl Iterator<Item = Word<'t>> + '_ {
        let first = self.lexed.tokens.partition_point(|token| token.span.start() < span.start());
        (first..).map_while(|index| self.get(index)).take_while(move |word| word.span.end() <= span.end())
    }

    /// Returns the number of the last section, which is probably a stream section.
    pub(super) fn last_section(&self) -> Option<&'t str> {
        self.sections.last().map(|(_, number)| *number)
    }

    /// Returns the first field of a record.
    pub(super) fn first_field(&self, record: &str) -> Option<&'t str> {
        self.records.get(record).copied()
    }

    /// Returns the words from a text, without those of comments.
    pub(super) fn text(&self, words: &[Word]) -> String {
        let mut out = String::new();
        let mut end = None;
        for word in words {
            out.push_str(if end.is_none_or(|end| end == word.span.start()) { "" } else { " " });
            out.push_str(word.text);
            end = Some(word.span.end());
        }
        out
    }

    /// Checks whether only whitespace precedes a token on its line.
    pub(super) fn starts_line(&self, span: Span) -> bool {
        let before = self.text.get(..span.start()).unwrap_or_default();
        before.chars().rev().find(|c| !matches!(c, ' ' | '\t')).is_none_or(|c| matches!(c, '\n' | '\r'))
    }

    /// Checks whether a span contains a comment.
    pub(super) fn has_comments(&self, span: Span) -> bool {
        self.lexed.comments.iter().any(|comment| span.start() < comment.span.start() && comment.span.end() < span.end())
    }

    /// Checks whether the text defines a type or a record of this name, or has statements for it.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.declared.contains(name)
    }

    /// Checks whether a field can have a type of this name.
    pub(super) fn is_type(&self, name: &str) -> bool {
        name == "vfield" || TYPES.contains(&name) || self.types.contains(name)
    }

    /// Checks whether a field of this name is a text preceded by its length.
    pub(super) fn is_text(&self, name: &str) -> bool {
        self.texts.contains(name)
    }

    /// Returns the number of the section of this name, or of the section with a record of this name.
    pub(super) fn section_number(&self, name: &str) -> Option<&'t str> {
        self.sections.iter().chain(&self.elements).find(|(known, _)| *known == name).map(|(_, number)| *number)
    }

    /// Returns the lowest section number that no section has.
    pub(super) fn free_section(&self) -> String {
        let is_free = |number: &String| self.sections.iter().all(|(_, used)| used != number);
        (1..256_u32).map(|number| number.to_string()).find(is_free).unwrap_or_default()
    }

    /// Returns the lowest tag from 4 that no record has.
    pub(super) fn free_tag(&self) -> String {
        let is_free = |tag: &String| !self.tags.contains(tag.as_str());
        (4..=256_u32).map(|tag| tag.to_string()).find(is_free).unwrap_or_default()
    }

    /// Checks whether a record lists a field of this name, or a statement is about it.
    pub(super) fn is_field(&self, name: &str) -> bool {
        self.fields.contains_key(name) || self.declared.contains(name)
    }

    /// Checks whether a field has names of bits, or is called `flags`.
    pub(super) fn has_flags(&self, field: &str) -> bool {
        let kind = self.fields.get(field).copied().unwrap_or_default();
        let is_list = |(name, property, _): &(&str, Property, &str)| {
            *property == Property::Flags && (*name == field || *name == kind)
        };
        field == "flags" || self.lists.iter().any(is_list)
    }

    /// Returns the number that the `values` of a field give to a name. If the field has no such name, returns the number
    /// that all other lists with this name give to it.
    pub(super) fn named_number(&self, name: &str, field: &str) -> Option<String> {
        let kind = self.fields.get(field).copied().unwrap_or_default();
        let (mut own, mut others) = (None, Vec::new());
        for (owner, _, list) in self.lists.iter().filter(|(_, property, _)| *property == Property::Values) {
            let Ok(list) = parse_names(list.trim_matches('"'), false) else { continue };
            let Some((number, _)) = list.iter().find(|(_, known)| known.as_str() == name) else { continue };
            if *owner == field || *owner == kind {
                own = own.or(Some(number.to_string()));
            }
            others.push(number.to_string());
        }
        others.dedup();
        own.or_else(|| others.pop().filter(|_| others.is_empty()))
    }

    /// Returns the bit that the `flags` of a field give to a name.
    pub(super) fn flag_number(&self, field: &str, name: &str) -> Option<u64> {
        let (.., list) =
            self.lists.iter().find(|(known, property, _)| *known == field && *property == Property::Flags)?;
        let list = parse_names(list.trim_matches('"'), true).ok()?;
        list.iter().find(|(_, known)| known.as_str() == name).map(|(bit, _)| *bit).filter(|bit| *bit < 64)
    }
}
