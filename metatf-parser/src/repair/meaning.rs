//! Edits that resolve mistakes of meaning, such as names that are not declared.
//!
//! The candidates are the edit that a rule suggests, the lines that its hint contains, and other names that resemble
//! those at the mistake, or that the name there resembles. The whole text is checked after each candidate. An edit that
//! removes its mistake and adds no error is suggested. Of several, the cheapest is suggested, and an edit that removes
//! more mistakes is cheaper.

use std::ops::Range;

use super::edits::Words;
use super::{Check, MOST_BYTES};
use crate::codes::{Code, Severity};
use crate::diagnostic::{Diagnostic, MOST_DIAGNOSTICS, Reporter, Suggestion};
use crate::lexer::{self, Kind, Lexed};
use crate::line;
use crate::nearest::nearest;
use crate::span::Source;

/// Maximum number of diagnostics whose edits are searched.
const MOST_SEARCHED: usize = 6;
/// Maximum number of bytes that are checked, and of checks for one diagnostic.
const MOST_WORK: usize = 256 << 10;
const MOST_CHECKS: usize = 8;
/// Maximum number of tokens at a mistake whose names are replaced.
const MOST_TOKENS: usize = 6;

/// The costs of an edit that a rule is certain of, of replacing a name or all names that resemble it, of a line in a
/// hint, of an edit that a person must confirm, of adding a line elsewhere, and of removing a type.
const CERTAIN: u32 = 4;
const RENAMED: u32 = 5;
const DECLARED: u32 = 7;
const LINE: u32 = 8;
const PROPOSED: u32 = 9;
const ADDED: u32 = 10;
const UNTYPED: u32 = 10;
/// The costs of a warning that an edit causes, and of another mistake that the edit does not remove.
const WARNING: u32 = 6;
const REMAINS: u32 = 3;
/// The cost by which an edit for another mistake is worse.
const ELSEWHERE: u32 = 1;

/// The hint that belongs to an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    /// The hint of the rule.
    Own,
    /// A hint to write the edited item.
    Write,
    /// A hint to add the text of the edit after a statement.
    Add,
}

/// An edit that may resolve a mistake.
struct Candidate {
    range: Range<usize>,
    text: String,
    cost: u32,
    hint: Hint,
    certain: bool,
}

/// An edit that resolves mistakes.
struct Found {
    /// The diagnostic for which the edit was tried.
    of: usize,
    candidate: Candidate,
    score: u32,
    /// For each diagnostic, whether the edit removes it.
    gone: Vec<bool>,
    /// The edited text.
    edited: String,
}

/// Adds edits to the diagnostics of a text.
pub(super) fn improve(source: &Source, mut diagnostics: Vec<Diagnostic>, check: Check) -> Vec<Diagnostic> {
    let is_candidate = |found: &&Diagnostic| !found.code.is_syntax();
    let text = source.all().filter(|text| text.len() <= MOST_BYTES && diagnostics.len() < MOST_DIAGNOSTICS);
    let Some(text) = text.filter(|_| diagnostics.iter().any(|found| is_candidate(&found))) else {
        return diagnostics;
    };
    let Some(lexed) = lexer::lex(text, source.start, &mut Reporter::new(source)) else { return diagnostics };
    let mut search =
        Search { text, words: Words::new(text, &lexed), tokens: Tokens { text, lexed }, before: &diagnostics, check };
    let mut work = MOST_WORK;
    let mut found: Vec<Found> = Vec::new();
    let is_error = |index: &usize| diagnostics.get(*index).is_some_and(|found| found.severity == Severity::Error);
    let all = (0..diagnostics.len()).filter(|index| !diagnostics[*index].code.is_syntax());
    let (mut indices, warnings): (Vec<usize>, Vec<usize>) = all.partition(is_error);
    indices.extend(warnings);
    for index in indices.iter().take(MOST_SEARCHED) {
        found.extend(search.best(*index, &mut work));
    }
    let mut changes = Vec::new();
    for index in indices {
        let score = |found: &&Found| found.score + if found.of == index { 0 } else { ELSEWHERE };
        // A new section resolves the diagnostic for which it was suggested.
        let is_shared = |found: &&Found| found.of == index || found.candidate.range.end < text.len();
        let removes = |found: &&Found| found.gone.get(index) == Some(&true) && is_shared(found);
        if let Some(best) = found.iter().filter(removes).min_by_key(score) {
            // Of the diagnostics with this edit, the one with the mistake has it applied automatically.
            let mut suggestion = best.candidate.suggestion();
            suggestion.certain &= best.of == index;
            changes.push((index, search.help(index, best), suggestion));
        }
    }
    for (index, help, suggestion) in changes {
        diagnostics[index].help = help.or(diagnostics[index].help.take());
        diagnostics[index].suggestion = Some(suggestion);
    }
    diagnostics
}

impl Found {
    /// Returns the number of diagnostics that the edit removes.
    fn removed(&self) -> usize {
        self.gone.iter().filter(|gone| **gone).count()
    }
}

impl Candidate {
    fn suggestion(&self) -> Suggestion {
        Suggestion { span: self.range.clone(), text: self.text.clone(), certain: self.certain }
    }
}

/// A text with mistakes.
struct Search<'t> {
    text: &'t str,
    tokens: Tokens<'t>,
    words: Words<'t>,
    before: &'t [Diagnostic],
    check: Check<'t>,
}

impl Search<'_> {
    /// Returns the best edit for a diagnostic. `work` is the number of bytes that may be checked.
    fn best(&mut self, index: usize, work: &mut usize) -> Option<Found> {
        let mut best: Option<Found> = None;
        let mut candidates = self.candidates(self.before.get(index)?);
        candidates.sort_by_key(|candidate| candidate.cost);
        for candidate in candidates.into_iter().take(MOST_CHECKS) {
            if best.as_ref().is_some_and(|best| best.score <= candidate.cost) {
                break;
            }
            let Some(rest) = work.checked_sub(self.text.len()) else { break };
            *work = rest;
            if let Some(found) = self.tried(index, candidate)
                && best.as_ref().is_none_or(|best| found.score < best.score)
            {
                best = Some(found);
            }
        }
        best
    }

    /// Checks the text after an edit, and returns the edit if it removes a diagnostic and adds no error.
    fn tried(&self, index: usize, candidate: Candidate) -> Option<Found> {
        let edited = candidate.suggestion().apply(self.text.as_bytes())?;
        let after = (self.check)(&edited).1.diagnostics;
        let count = |list: &[Diagnostic], found: &Diagnostic| {
            list.iter().filter(|other| other.code == found.code && other.message == found.message).count()
        };
        let is_fresh = |found: &&Diagnostic| count(&after, found) > count(self.before, found);
        let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
        let fresh: Vec<&Diagnostic> = after.iter().filter(is_fresh).collect();
        let gone = |(other, found): (usize, &Diagnostic)| match count(&after, found) {
            0 => true,
            left => other == index && left < count(self.before, found),
        };
        let gone: Vec<bool> = self.before.iter().enumerate().map(gone).collect();
        if fresh.iter().any(is_error) || gone.get(index) != Some(&true) {
            return None;
        }
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX / 64).min(u32::MAX / 64);
        let score = candidate.cost + WARNING * number(fresh.len()) + REMAINS * number(after.len());
        Some(Found { of: index, candidate, score, gone, edited: String::from_utf8(edited).ok()? })
    }

    /// Returns the hint for an edit, unless the diagnostic's own hint describes it.
    fn help(&self, index: usize, found: &Found) -> Option<String> {
        let Candidate { range, text, hint, .. } = &found.candidate;
        let is_own = found.of == index && (*hint == Hint::Own || found.removed() == 1 && *hint == Hint::Add);
        // Another diagnostic with the same edit.
        if is_own || self.before.get(index)?.suggestion.as_ref().is_some_and(|own| *own == found.candidate.suggestion())
        {
            return None;
        }
        let line = |at: usize| 1 + self.text.get(..at).unwrap_or_default().matches('\n').count();
        if *hint == Hint::Add {
            let before = line::item(self.text, range.start.saturating_sub(1), false)?;
            return Some(format!("add `{}` after `{before}` in line {}", text.trim(), line(range.start)));
        }
        let is_whole = text.contains([',', '(', ')']);
        let shown = line::item(&found.edited, range.start + text.len() - text.trim_start().len(), is_whole)?;
        if self.before.get(index)?.help.as_ref().is_some_and(|help| help.contains(&shown)) {
            return None;
        }
        let (here, there) = (self.before.get(index)?.primary.line as usize, line(range.start));
        let place = if here == there { String::new() } else { format!(" in line {there}") };
        Some(format!("write `{shown}`{place}"))
    }

    fn candidates(&self, of: &Diagnostic) -> Vec<Candidate> {
        let mut out = Vec::new();
        if let Some(Suggestion { span, text, certain }) = of.suggestion.clone() {
            let cost = if certain { CERTAIN } else { PROPOSED };
            out.push(Candidate { range: span, text, cost, hint: Hint::Own, certain });
        }
        let place = of.primary.span.start;
        // The lines in a hint are in backticks.
        let quoted = of.help.iter().flat_map(|help| help.split('`').skip(1).step_by(2));
        for line in quoted.filter(|line| line.contains([':', '=', '*', '{'])) {
            for (range, hint) in self.tokens.places(line, place) {
                if let Some((range, text)) = self.tokens.narrowed(range, line) {
                    let cost = if hint == Hint::Add { ADDED } else { LINE };
                    out.push(Candidate { range, text, cost, hint, certain: false });
                }
            }
        }
        if of.severity == Severity::Error {
            self.names(of, &mut out);
        }
        out
    }

    /// Adds edits of the names at a mistake.
    fn names(&self, of: &Diagnostic, out: &mut Vec<Candidate>) {
        let at = self.tokens.at(of.primary.span.start);
        let inside = |index: &usize| self.tokens.start(*index) < of.primary.span.end;
        for index in (at..at + MOST_TOKENS).take_while(inside).filter(|index| self.tokens.is_name(*index)) {
            let (word, range) = (self.tokens.word(index), self.tokens.range(index));
            let listed = self.tokens.listed_with(index);
            let others = || self.words.all().filter(|name| *name != word && !listed.contains(name));
            let mut add = |range, text: &str, cost| {
                out.push(Candidate { range, text: text.to_owned(), cost, hint: Hint::Write, certain: false });
            };
            if let Some(near) = nearest(word, others()).or_else(|| begun(word, others())) {
                add(range.clone(), near, RENAMED);
                // The declaration may be misspelled instead.
                let mut same = (0..self.tokens.len()).filter(|other| self.tokens.word(*other) == near);
                if let (Some(declared), None) = (same.next(), same.next()) {
                    add(self.tokens.range(declared), word, DECLARED);
                }
            }
            if of.code == Code::UnknownType && self.tokens.word(index.wrapping_sub(1)) == ":" {
                add(self.tokens.end(index - 1)..range.end, "", UNTYPED);
            }
        }
    }
}

/// Returns the only name that begins with a word.
fn begun<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut names = names.filter(|name| word.len() > 2 && name.starts_with(word));
    names.next().filter(|_| names.next().is_none())
}

/// The tokens of a text.
struct Tokens<'t> {
    text: &'t str,
    lexed: Lexed,
}

impl<'t> Tokens<'t> {
    fn len(&self) -> usize {
        self.lexed.tokens.len()
    }

    fn range(&self, index: usize) -> Range<usize> {
        self.lexed.tokens.get(index).map_or(self.text.len()..self.text.len(), |token| token.span.range())
    }

    fn word(&self, index: usize) -> &'t str {
        self.text.get(self.range(index)).unwrap_or_default()
    }

    fn is_name(&self, index: usize) -> bool {
        self.lexed.tokens.get(index).is_some_and(|token| token.kind == Kind::Name)
    }

    fn start(&self, index: usize) -> usize {
        self.range(index).start
    }

    /// Returns the end of the token before an index.
    fn end(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.range(before).end)
    }

    /// Returns the token at an offset, or else the next one.
    fn at(&self, offset: usize) -> usize {
        self.lexed.tokens.partition_point(|token| token.span.end() <= offset)
    }

    fn is_end(&self, index: usize) -> bool {
        matches!(self.word(index), ";" | "{" | "}" | "")
    }

    /// Returns the first token of the statement or of the head of the definition that contains a token.
    fn first(&self, at: usize) -> usize {
        (0..at).rev().find(|index| self.is_end(*index)).map_or(0, |index| index + 1)
    }

    /// Returns the index of the mark that ends the statement or the head that contains a token.
    fn last(&self, at: usize) -> usize {
        (at..self.len()).find(|index| self.is_end(*index)).unwrap_or(self.len())
    }

    /// Returns the tokens of the innermost item of a list that contains a token. Counts are not lists.
    fn item(&self, at: usize) -> Option<Range<usize>> {
        let (first, last) = (self.first(at), self.last(at));
        let mut depth = 0_usize;
        let before = (first..at).rev().find(|index| match self.word(*index) {
            ")" => {
                depth += 1;
                false
            }
            "(" | "," if depth == 0 => true,
            "(" => {
                depth -= 1;
                false
            }
            _ => false,
        })?;
        depth = 0;
        let after = (at..last).find(|index| match self.word(*index) {
            "(" => {
                depth += 1;
                false
            }
            ")" | "," if depth == 0 => true,
            ")" => {
                depth -= 1;
                false
            }
            _ => false,
        })?;
        match self.word(after + 1) {
            "*" if self.word(after) == ")" => self.item(before.checked_sub(1)?).map(|item| item.start..after),
            _ => Some(before + 1..after),
        }
    }

    /// Returns the names in the list of which a token is an item. A count and a type may have the name of another item.
    fn listed_with(&self, index: usize) -> Vec<&'t str> {
        let is_item = self.word(index + 1) != "*" && matches!(self.word(index.wrapping_sub(1)), "(" | "," | "*");
        let is_list = is_item && self.word(self.first(index) + 1) == ":";
        let all = if is_list { self.first(index)..self.last(index) } else { 0..0 };
        all.filter(|other| *other != index && self.is_name(*other) && self.word(other.wrapping_sub(1)) != ":")
            .map(|other| self.word(other))
            .collect()
    }

    /// Returns the tokens that a line of a hint may replace, or the place where it may be added, near an offset.
    fn places(&self, line: &str, offset: usize) -> Vec<(Range<usize>, Hint)> {
        let at = self.at(offset);
        let (first, last) = (self.first(at), self.last(at));
        if line.starts_with("section ") && line.ends_with('}') {
            return vec![(self.len()..self.len(), Hint::Own)];
        }
        if line.ends_with('{') {
            return vec![(first..last + 1, Hint::Own)];
        }
        if let Some((path, _)) = line.strip_suffix(';').and_then(|line| line.split_once('=')) {
            let path = path.trim();
            let is_statement = |index: &usize| {
                self.text
                    .get(self.start(*index)..)
                    .is_some_and(|rest| rest.strip_prefix(path).is_some_and(|rest| rest.trim_start().starts_with('=')))
            };
            let starts = |index: &usize| *index == 0 || self.is_end(index - 1);
            let all = || (0..self.len()).filter(starts);
            let mut out = Vec::new();
            if (first..last).any(|index| self.word(index) == "=") {
                out.push((first..last + 1, Hint::Own));
            } else if let Some(same) = all().filter(|index| self.start(*index) > offset).find(is_statement) {
                out.push((same..self.last(same) + 1, Hint::Own));
            }
            // The statement may be added after one of another property of the field.
            let field = path.rsplit_once('.').map_or("", |(field, _)| field);
            let is_sibling = |index: &usize| {
                let rest = self.text.get(self.start(*index)..).and_then(|rest| rest.strip_prefix(field));
                rest.is_some_and(|rest| rest.starts_with('.')) && !field.is_empty()
            };
            out.extend(all().filter(is_sibling).take(2).map(|index| {
                let end = self.last(index) + 1;
                (end..end, Hint::Add)
            }));
            return out;
        }
        let name = line.split_once(": (").map(|(name, _)| name).filter(|_| line.ends_with(')'));
        let is_head = |index: &usize| Some(self.word(*index)) == name && self.word(index + 1) == ":";
        let heads = (0..=at.min(self.len())).rev().filter(|index| self.first(*index) == *index);
        if let Some(head) = name.and_then(|_| { heads }.find(is_head)) {
            return vec![(head..self.last(head), Hint::Own)];
        }
        // A statement about a field may show that the type of the field is wrong.
        let name = line.split_once(": ").map(|(name, _)| name);
        let is_typed = |index: &usize| Some(self.word(*index)) == name && self.word(index + 1) == ":";
        let typed = (0..=at.min(self.len())).rev().find(is_typed).filter(|_| self.item(at).is_none());
        let mut item = typed.or(Some(at)).and_then(|at| self.item(at));
        // A line without a count keeps the count of the item.
        if let Some(item) = item.as_mut().filter(|_| !line.contains('*')) {
            let count = item.clone().rev().find(|index| self.word(*index) == "*");
            item.start = count.map_or(item.start, |count| count + 1);
        }
        item.into_iter().map(|item| (item, Hint::Own)).collect()
    }

    /// Returns the smallest edit that replaces tokens by a line. Comments between the tokens must remain.
    fn narrowed(&self, old: Range<usize>, line: &str) -> Option<(Range<usize>, String)> {
        let source = Source::new(line.as_bytes());
        let new = Tokens { text: line, lexed: lexer::lex(line, 0, &mut Reporter::new(&source))? };
        if old.is_empty() {
            let before = self.end(old.start);
            let is_whole = old.start == self.len();
            return Some(match is_whole {
                true => (self.text.len()..self.text.len(), format!("\n{line}\n")),
                false => (before..before, format!(" {line}")),
            });
        }
        let (end, most) = (old.end.min(self.len()), old.len().min(new.len()));
        let same = (0..most).take_while(|n| self.word(old.start + n) == new.word(*n)).count();
        let is_same = |n: &usize| self.word(end - 1 - n) == new.word(new.len() - 1 - n);
        let after = (0..most - same).take_while(is_same).count();
        let (removed, added) = (old.start + same..end - after, same..new.len() - after);
        // An insertion keeps the space before it, and a removal the space after it.
        let is_close = matches!(new.word(added.start), "," | ")" | ";" | ":");
        let from_end = added.is_empty() || removed.is_empty() || is_close;
        let start = if from_end { self.end(removed.start) } else { self.start(removed.start) };
        let stop = self.end(removed.end).max(start);
        let text = line.get(if from_end { new.end(added.start) } else { new.start(added.start) }..new.end(added.end));
        let has_comment = self.lexed.comments.iter().any(|c| start < c.span.end() && c.span.start() < stop);
        let text = text.unwrap_or_default().to_owned();
        (!has_comment && self.text.get(start..stop)? != text).then_some((start..stop, text))
    }
}
