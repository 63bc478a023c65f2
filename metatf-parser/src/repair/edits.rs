//! The edits of the tokens around a mistake, with their costs.

use std::ops::Range;

use crate::diagnostic::Reporter;
use crate::foreign;
use crate::lexer::{self, Kind, Lexed};
use crate::nearest::nearest;
use crate::schema::InterpretationWord;
use crate::span::Source;
use crate::vocabulary::{PREDICTORS, Property, ROLES, TYPES};

/// Maximum number of names of a text that are compared with a word.
const MOST_NAMES: usize = 400;
/// The number of tokens before and after a mistake that are edited, and that a single edit deletes.
const BEFORE: usize = 4;
const AFTER: usize = 1;
const MOST_DELETED: usize = 4;

/// The least cost of an edit that removes or invents a word, or may change the meaning.
const GUESS: u32 = 11;

/// Words that are neither a type, a property, an interpretation nor part of a model.
const WORDS: &[&str] = &["section", "type", "until", "rest", "by", "bit", "own", "shared", "other"];
/// Marks of the same meaning in other languages, or near on the keyboard.
const SIMILAR: &[(&str, &str)] = &[
    ("[", "("),
    ("[", "{"),
    ("]", "}"),
    ("]", ")"),
    ("{", "("),
    ("}", ")"),
    ("<", "("),
    (">", ")"),
    ("(", "{"),
    (")", "}"),
    (":", "="),
    ("=", ":"),
    ("==", "="),
    ("=", "=="),
    (":", ";"),
    (";", ":"),
    (",", ";"),
    (";", ","),
    (",", "."),
    (".", ","),
    ("|", "+"),
    ("–", "-"),
    ("−", "-"),
    ("×", "*"),
    ("“", "\""),
    ("”", "\""),
];

/// An edit of a text.
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) text: String,
    pub(super) cost: u32,
    /// Whether the edit removes or invents a word, or may change the meaning.
    pub(super) is_guess: bool,
}

/// The words that may replace a misspelled or missing word.
pub(super) struct Words<'t> {
    /// The words of the language.
    known: Vec<&'t str>,
    /// The names in the text.
    names: Vec<&'t str>,
    /// The numbers of sections in the text, and the lowest unused number.
    numbers: Vec<String>,
}

impl<'t> Words<'t> {
    /// Collects the words of the language and of a text.
    pub(super) fn new(text: &'t str, lexed: &Lexed) -> Words<'t> {
        let interpretations = InterpretationWord::ALL.iter().map(|word| word.name());
        let properties = Property::ALL.iter().map(|property| property.name());
        let known = WORDS.iter().chain(&PREDICTORS).chain(&ROLES).chain(&TYPES).copied();
        let known: Vec<&str> = known.chain(interpretations).chain(properties).collect();
        let word = |index: usize| lexed.tokens.get(index).and_then(|token| text.get(token.span.range()));
        let (mut names, mut numbers) = (Vec::new(), Vec::new());
        for (index, token) in lexed.tokens.iter().enumerate() {
            let name = word(index).unwrap_or_default();
            if token.kind == Kind::Name && names.len() < MOST_NAMES && !names.contains(&name) && !known.contains(&name)
            {
                names.push(name);
            }
            if name == "section" && lexed.tokens.get(index + 2).is_some_and(|token| token.kind == Kind::Int) {
                numbers.extend(word(index + 2).map(str::to_owned));
            }
        }
        let free = (1..=255_u32).map(|number| number.to_string()).find(|number| !numbers.contains(number));
        numbers.truncate(6);
        numbers.extend(free);
        Words { known, names, numbers }
    }

    /// Returns the names in the text and the words of the language.
    pub(super) fn all(&self) -> impl Iterator<Item = &'t str> {
        self.names.iter().chain(&self.known).copied()
    }

    fn is_known(&self, word: &str) -> bool {
        self.known.contains(&word) || self.names.contains(&word)
    }
}

/// The tokens of a text.
struct Tokens<'t> {
    text: &'t str,
    lexed: Lexed,
    out: Vec<Edit>,
}

/// Returns the edits of a text with a mistake at an offset.
pub(super) fn edits(text: &str, mistake: usize, words: &Words) -> Vec<Edit> {
    let source = Source::new(text.as_bytes());
    let Some(lexed) = lexer::lex(text, 0, &mut Reporter::new(&source)) else { return Vec::new() };
    let at = lexed.tokens.partition_point(|token| token.span.end() <= mistake);
    let mut tokens = Tokens { text, lexed, out: Vec::new() };
    for index in at.saturating_sub(BEFORE)..=at + AFTER {
        let from = tokens.out.len();
        tokens.insert(index, words);
        tokens.change(index, words);
        tokens.change_several(index, words);
        // Edits near the mistake are more likely.
        let distance = u32::try_from(index.abs_diff(at)).unwrap_or(u32::MAX);
        tokens.out.iter_mut().skip(from).for_each(|edit| edit.cost += distance);
    }
    // A parenthesis may lack anywhere before the mistake.
    for index in 0..at.saturating_sub(BEFORE) {
        match tokens.word(index) {
            "(" | ")" => tokens.replace(index..index + 1, String::new(), 12),
            _ => {}
        }
        if !matches!(tokens.word(index), ")" | "," | "." | ";") {
            tokens.add(tokens.start(index)..tokens.start(index), "(".to_owned(), 13);
        }
    }
    tokens.out
}

impl<'t> Tokens<'t> {
    fn word(&self, index: usize) -> &'t str {
        self.lexed.tokens.get(index).and_then(|token| self.text.get(token.span.range())).unwrap_or_default()
    }

    fn kind(&self, index: usize) -> Option<Kind> {
        self.lexed.tokens.get(index).map(|token| token.kind)
    }

    fn is_name(&self, index: usize) -> bool {
        self.kind(index) == Some(Kind::Name)
    }

    fn is_word(&self, index: usize) -> bool {
        matches!(self.kind(index), Some(Kind::Name | Kind::Int))
    }

    fn start(&self, index: usize) -> usize {
        self.lexed.tokens.get(index).map_or(self.text.len(), |token| token.span.start())
    }

    /// Returns the end of the token before an index.
    fn end(&self, index: usize) -> usize {
        index.checked_sub(1).and_then(|before| self.lexed.tokens.get(before)).map_or(0, |token| token.span.end())
    }

    /// Adds an edit. Spaces keep the words around the edit apart.
    fn add(&mut self, range: Range<usize>, mut text: String, cost: u32) {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (Some(before), Some(after)) = (self.text.get(..range.start), self.text.get(range.end..)) else { return };
        let (follows, precedes) = (before.ends_with(is_letter), after.starts_with(is_letter));
        if follows && (text.starts_with(is_letter) || text.is_empty() && precedes) {
            text.insert(0, ' ');
        }
        if precedes && text.ends_with(is_letter) {
            text.push(' ');
        }
        if self.text.get(range.clone()).is_some_and(|old| old != text) {
            self.out.push(Edit { range, text, cost, is_guess: cost >= GUESS });
        }
    }

    /// Adds an edit of some tokens. Does not remove a whole statement or a whole item of a list.
    fn replace(&mut self, tokens: Range<usize>, text: String, cost: u32) {
        let starts = |index: usize| matches!(self.word(index), ";" | "{" | "}" | "(" | ",");
        let ends = |index: usize| matches!(self.word(index), ";" | "{" | "}" | ")" | "," | "");
        let is_item = tokens.start.checked_sub(1).is_none_or(starts) && ends(tokens.end) && self.is_word(tokens.start);
        if tokens.end > self.lexed.tokens.len() || tokens.is_empty() || text.is_empty() && is_item {
            return;
        }
        let (start, end) = (self.start(tokens.start), self.end(tokens.end));
        let before = self.end(tokens.start);
        // A space before a removed token, or before a mark that follows a word directly, is removed, too.
        let is_close = matches!(text.as_str(), "" | ":" | "." | "," | ";" | ")");
        let is_space = is_close && self.text.get(before..start).is_some_and(|gap| gap.trim().is_empty());
        self.add(if is_space { before } else { start }..end, text, cost);
    }

    /// Adds insertions before a token.
    fn insert(&mut self, index: usize, words: &Words) {
        if index > self.lexed.tokens.len() {
            return;
        }
        let (end, start) = (self.end(index), self.start(index));
        let follows_word = index > 0 && self.is_word(index - 1);
        for mark in [";", ",", ")", ":"] {
            self.add(end..end, mark.to_owned(), 8);
        }
        self.add(end..end, " =".to_owned(), 8);
        self.add(end..end, " {".to_owned(), 9);
        self.add(start..start, "(".to_owned(), 8);
        self.add(start..start, "\"".to_owned(), 12);
        self.add(end..end, "\"".to_owned(), 12);
        if self.text.get(end..start).is_some_and(|gap| gap.trim().is_empty()) {
            self.add(end..start, ".".to_owned(), GUESS);
            self.add(end..start, "*".to_owned(), GUESS);
        }
        if follows_word {
            self.add(end..end, ".value".to_owned(), GUESS);
        }
        let before = index.checked_sub(1).map_or("", |before| self.word(before));
        let missing: &[&str] = match before {
            "" | ";" | "{" | "}" if self.is_name(index) => &["section", "type"],
            ":" => &["bytes"],
            "=" if index > 1 && self.word(index - 2) == "interpretation" => &["none", "delta"],
            _ => &[],
        };
        let numbers = words.numbers.iter().map(String::as_str).chain(["0", "1"]);
        let follows_name = index > 0 && self.is_name(index - 1);
        for word in missing.iter().copied().chain(numbers.filter(|_| follows_name)) {
            self.add(end..end, format!(" {word}"), 13);
        }
    }

    /// Adds edits of one token.
    fn change(&mut self, index: usize, words: &Words) {
        let Some(kind) = self.kind(index) else { return };
        let word = self.word(index);
        let content = || word.trim_matches(['"', '\'']).to_owned();
        let cost = match kind {
            Kind::Mark(b'+' | b'-' | b'*' | b'/' | b'%') | Kind::Comparison => 12,
            Kind::Mark(_) | Kind::Unknown => 8,
            Kind::Name | Kind::Int => 14,
            Kind::Text => 18,
        };
        self.replace(index..index + 1, String::new(), cost);
        for (_, similar) in SIMILAR.iter().filter(|(mark, _)| *mark == word) {
            self.replace(index..index + 1, (*similar).to_owned(), 6);
        }
        match kind {
            Kind::Mark(_) | Kind::Comparison | Kind::Unknown => {
                for mark in [";", ",", ":", "=", "(", ")", "{"] {
                    self.replace(index..index + 1, mark.to_owned(), 10);
                }
                for mark in [".", "*"] {
                    self.replace(index..index + 1, mark.to_owned(), GUESS);
                }
            }
            Kind::Text => {
                self.replace(index..index + 1, content(), 4);
                if matches!(content().len(), 1..=8) && !content().bytes().all(|byte| byte.is_ascii_digit()) {
                    self.replace(index..index + 1, format!("'{}'", content()), 5);
                }
            }
            Kind::Int if word.starts_with('\'') => self.replace(index..index + 1, format!("\"{}\"", content()), 5),
            Kind::Name | Kind::Int => {
                self.replace(index..index + 1, format!("\"{word}\""), 8);
                let near = nearest(word, words.known.iter().copied());
                let cost = |near: &str| if near.eq_ignore_ascii_case(word) { 4 } else { 6 };
                near.into_iter().for_each(|near| self.replace(index..index + 1, near.to_owned(), cost(near)));
                let near = nearest(word, words.names.iter().copied().filter(|name| *name != word));
                near.into_iter().for_each(|near| self.replace(index..index + 1, near.to_owned(), cost(near) + 1));
                self.split(index, words);
            }
        }
    }

    /// Adds edits that split a word into a known word and a number or another known word.
    fn split(&mut self, index: usize, words: &Words) {
        let word = self.word(index);
        let digits = word.trim_start_matches(|c: char| c.is_ascii_digit());
        for known in words.known.iter().copied().chain([word.strip_suffix(digits).unwrap_or_default()]) {
            let rest = word.strip_prefix(known).unwrap_or_default().trim_start_matches('_');
            let is_part = rest.bytes().all(|byte| byte.is_ascii_digit()) || words.known.contains(&rest);
            if !known.is_empty() && !rest.is_empty() && is_part {
                self.replace(index..index + 1, format!("{known} {rest}"), 6);
            }
        }
    }

    /// Adds edits of several tokens.
    fn change_several(&mut self, index: usize, words: &Words) {
        let (first, second, third) = (self.word(index), self.word(index + 1), self.word(index + 2));
        if self.is_word(index) && self.is_word(index + 1) {
            for joined in [format!("{first}{second}"), format!("{first}_{second}")] {
                if words.is_known(&joined) {
                    self.replace(index..index + 2, joined, 6);
                }
            }
        }
        if self.is_word(index)
            && second == "-"
            && self.is_word(index + 2)
            && self.end(index + 1) == self.start(index + 1)
        {
            self.replace(index..index + 3, format!("{first}_{third}"), 7);
        }
        // The name of a field follows its type in other languages.
        for length in 1..=3 {
            if !(0..length).all(|ahead| self.is_name(index + ahead)) {
                break;
            }
            let names: Vec<&str> = (index..index + length).map(|index| self.word(index)).collect();
            let native = foreign::type_name(&names.join("_"));
            native.into_iter().for_each(|native| self.replace(index..index + length, native.to_owned(), 5));
            let native = native.or(Some(first).filter(|_| length == 1 && TYPES.contains(&first)));
            if let Some(native) = native.filter(|_| self.is_name(index + length)) {
                let text = format!("{}: {native}", self.word(index + length));
                self.replace(index..index + length + 1, text, 7);
            }
        }
        if !second.is_empty() && first != second {
            self.replace(index..index + 2, format!("{second} {first}"), 10);
        }
        if !third.is_empty() && first != third && matches!(second, "*" | ":" | "." | "=") {
            let space = if matches!(second, ":" | "=") { " " } else { "" };
            self.replace(index..index + 3, format!("{third}{second}{space}{first}"), 11);
        }
        if second == "=" {
            let length = (2..20).find(|ahead| self.word(index + ahead) == ";").unwrap_or(0);
            if length > 2 {
                let value = self.text.get(self.start(index + 2)..self.end(index + length)).unwrap_or_default();
                self.replace(index + 2..index + length, format!("\"{}\"", value.replace('"', "")), 10);
            }
        }
        for length in 2..=MOST_DELETED {
            let ends = |index: usize| matches!(self.word(index), "," | ";" | ")" | "{" | "}" | "");
            if !(index..index + length).any(ends) && ends(index + length) {
                self.replace(index..index + length, String::new(), 8 + 6 * u32::try_from(length).unwrap_or(u32::MAX));
            }
        }
    }
}
