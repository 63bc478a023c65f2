//! A place in the tokens, and what would have gone on from the farthest place that was reached.
//!
//! Alternatives are tried in order, and the first that fits is taken. `expected` collects what was tried at the farthest
//! place: the words for "expected ..." (syntax/expected.rs) come from it.

use super::expected::Rule;
use crate::ast::{Int, Name};
use crate::codes::Code;
use crate::diagnostic::Draft;
use crate::lexer::{Kind, Lexed, Token};
use crate::schema::InterpretationWord;
use crate::span::Span;

pub(super) struct Cursor<'t, 'l> {
    pub(super) text: &'t str,
    pub(super) lexed: &'l Lexed,
    /// Index of the next token.
    pub(super) at: usize,
    /// The farthest token at which something else was expected.
    pub(super) farthest: usize,
    /// What was tried there.
    pub(super) expected: Vec<Rule>,
    /// Mistakes that do not keep the item from being parsed.
    pub(super) drafts: Vec<Draft>,
}

impl<'t, 'l> Cursor<'t, 'l> {
    pub(super) fn new(text: &'t str, lexed: &'l Lexed, at: usize) -> Cursor<'t, 'l> {
        Cursor { text, lexed, at, farthest: at, expected: Vec::new(), drafts: Vec::new() }
    }

    fn token(&self, index: usize) -> Option<&'l Token> {
        self.lexed.tokens.get(index)
    }

    /// Returns the text of the next token, if it is of this kind.
    pub(super) fn peek(&self, kind: Kind) -> Option<&'t str> {
        let token = self.token(self.at).filter(|t| t.kind == kind)?;
        self.text.get(token.span.range())
    }

    /// Returns the place from token `first` to the one that was read last.
    pub(super) fn span_from(&self, first: usize) -> Span {
        let last = self.token(self.at.saturating_sub(1).max(first));
        match (self.token(first), last) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => Span::at(self.text.len()),
        }
    }

    fn attempts_at(&self, index: usize) -> usize {
        if index == self.farthest { self.expected.len() } else { 0 }
    }

    /// Notes that `rule` does not fit at token `index`.
    fn miss_at(&mut self, index: usize, rule: Rule) {
        if index > self.farthest {
            self.farthest = index;
            self.expected.clear();
        }
        if index == self.farthest {
            self.expected.push(rule);
        }
    }

    /// Notes that `rule` does not fit here.
    pub(super) fn miss<T>(&mut self, rule: Rule) -> Option<T> {
        self.miss_at(self.at, rule);
        None
    }

    /// Tries a rule; goes back where it does not fit. Of several pieces that were tried at its very start only the rule itself
    /// is kept as expected.
    pub(super) fn rule<T>(&mut self, rule: Rule, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let start = self.at;
        let before = self.attempts_at(start);
        let parsed = self.maybe(parse);
        if parsed.is_none() && self.attempts_at(start).wrapping_sub(before) != 1 {
            if self.farthest == start {
                self.expected.truncate(before);
            }
            self.miss_at(start, rule);
        }
        parsed
    }

    /// Tries a piece; goes back where it does not fit.
    pub(super) fn maybe<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let (start, drafts) = (self.at, self.drafts.len());
        let parsed = parse(self);
        if parsed.is_none() {
            self.at = start;
            self.drafts.truncate(drafts);
        }
        parsed
    }

    /// Reads a mark.
    pub(super) fn mark(&mut self, mark: u8, rule: Rule) -> Option<Span> {
        match self.token(self.at) {
            Some(token) if token.kind == Kind::Mark(mark) => {
                self.at += 1;
                Some(token.span)
            }
            _ => self.miss(rule),
        }
    }

    /// Reads a word that is a name elsewhere.
    pub(super) fn keyword(&mut self, word: &str, rule: Rule) -> Option<Span> {
        match self.token(self.at) {
            Some(token) if self.peek(Kind::Name) == Some(word) => {
                self.at += 1;
                Some(token.span)
            }
            _ => self.miss(rule),
        }
    }

    /// Reads a name: an interpretation word is none (spec 2).
    pub(super) fn name(&mut self) -> Option<Name<'t>> {
        self.name_as(Rule::Name)
    }

    pub(super) fn name_as(&mut self, rule: Rule) -> Option<Name<'t>> {
        match (self.token(self.at), self.peek(Kind::Name)) {
            (Some(token), Some(text)) if InterpretationWord::named(text).is_none() => {
                self.at += 1;
                Some(Name { text, span: token.span })
            }
            _ => self.miss(rule),
        }
    }

    /// Reads a path of at least `least` names.
    pub(super) fn path(&mut self, least: usize) -> Option<Vec<Name<'t>>> {
        let mut names = Vec::with_capacity(least);
        names.push(self.name()?);
        while let Some(name) = self.maybe(|c| c.mark(b'.', Rule::Dot).and_then(|_| c.name())) {
            names.push(name);
        }
        (names.len() >= least).then_some(names)
    }

    /// Reads an integer; one that does not fit 64 bits is reported. A sign stands directly before its digits.
    pub(super) fn int(&mut self) -> Option<Int> {
        let signed = self.token(self.at).filter(|t| t.kind == Kind::Mark(b'-'));
        let digits = self.token(self.at + usize::from(signed.is_some())).filter(|t| t.kind == Kind::Int);
        let Some(digits) = digits.filter(|d| signed.is_none_or(|s| s.span.end() == d.span.start())) else {
            return self.miss(Rule::Int);
        };
        let Some((radix, figures)) = self.text.get(digits.span.range()).and_then(figures) else {
            return self.miss(Rule::Int);
        };
        self.at += 1 + usize::from(signed.is_some());
        let span = signed.map_or(digits.span, |sign| sign.span.to(digits.span));
        let magnitude = magnitude(figures, radix).filter(|m| signed.is_none() || *m <= 1 << 63);
        if magnitude.is_none() {
            self.drafts.push(
                Draft::new(Code::WideNumber, span, "a number does not fit 64 bits")
                    .help("numbers go from -9223372036854775808 to 18446744073709551615"),
            );
        }
        Some(Int { negative: signed.is_some(), magnitude: magnitude.unwrap_or(0), span })
    }
}

/// Returns radix and digits of a number that is written rightly (spec 2 `int`).
fn figures(text: &str) -> Option<(u32, &str)> {
    let (radix, figures) = text.strip_prefix("0x").map_or((10, text), |figures| (16, figures));
    let right = figures.chars().all(|c| c == '_' || c.is_digit(radix)) && figures.starts_with(|c: char| c != '_');
    right.then_some((radix, figures))
}

/// Computes a number; `None` where it does not fit 64 bits.
fn magnitude(figures: &str, radix: u32) -> Option<u64> {
    figures
        .chars()
        .filter_map(|c| c.to_digit(radix))
        .try_fold(0_u64, |number, digit| number.checked_mul(u64::from(radix))?.checked_add(u64::from(digit)))
}
