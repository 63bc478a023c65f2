//! Lines to write in place of a mistake: the item of the text that contains the mistake, with another text in its place.

use std::ops::Range;

use crate::diagnostic::{Finished, Reporter};
use crate::lexer::{self, Kind, Lexed, Token};
use crate::span::{Source, Span};

/// Maximum number of bytes in a line and of tokens in an item, because nobody would read a longer one.
const MOST_BYTES: usize = 200;
const MOST_TOKENS: usize = 400;

/// Inserts the items of the text in the hints, and returns the diagnostics.
pub(crate) fn finish(mut report: Reporter) -> Finished {
    if report.needs_lines() {
        let items = Items::new(report.source);
        report.insert_lines(|place, text| items.as_ref()?.edited(place, text));
    }
    report.finish()
}

/// Returns the item at an offset of a text, or the whole definition or statement that contains the item.
pub(crate) fn item(text: &str, offset: usize, is_whole: bool) -> Option<String> {
    let source = Source::new(text.as_bytes());
    let items = Items::new(&source)?;
    items.around(Span::at(offset), "", is_whole).or_else(|| items.around(Span::at(offset), "", false))
}

/// The items of a text.
struct Items<'t> {
    text: &'t str,
    lexed: Lexed,
}

impl<'t> Items<'t> {
    /// Finds the tokens of a text, unless it is not valid UTF-8 or contains too many tokens.
    fn new(source: &Source<'t>) -> Option<Items<'t>> {
        let text = source.all()?;
        let lexed = lexer::lex(text, source.start, &mut Reporter::new(source))?;
        Some(Items { text, lexed })
    }

    /// Returns the item at a location, with another text in place of the location: a statement, the head of a
    /// definition, or an item of a field list.
    fn edited(&self, place: Span, text: &str) -> Option<String> {
        self.around(place, text, false)
    }

    /// Works like [`edited`](Self::edited), but if `is_whole` is set, does not return only an item of a list.
    fn around(&self, place: Span, text: &str, is_whole: bool) -> Option<String> {
        let tokens = &self.lexed.tokens;
        // An insertion belongs to the token before it.
        let is_insertion = place.start() == place.end() && !text.is_empty();
        let at = tokens.partition_point(|token| match is_insertion {
            true => token.span.end() < place.start(),
            false => token.span.end() <= place.start(),
        });
        let is_open = |token: &Token| {
            token.kind == Kind::Text && !self.text.get(token.span.range()).is_some_and(|text| text.ends_with('"'))
        };
        let ends = |index: usize| {
            tokens.get(index).is_none_or(|token| matches!(token.kind, Kind::Mark(b';' | b'{' | b'}')) || is_open(token))
        };
        let start = (at.saturating_sub(MOST_TOKENS)..at).rev().find(|index| ends(*index)).map_or(0, |index| index + 1);
        // A string that is not terminated contains the end of its statement.
        let end = match tokens.get(at).is_some_and(is_open) {
            true => at + 1,
            false => (at..at + MOST_TOKENS).find(|index| ends(*index))?,
        };
        let kind = |index: usize| tokens.get(index).map(|token| token.kind);
        let equals = (start..end).find(|index| kind(*index) == Some(Kind::Mark(b'=')));
        if let Some(mut first) = equals.and_then(|equals| equals.checked_sub(1)) {
            // The head of a record without `;` may precede the path of a statement.
            while first > start + 1 && kind(first - 1) == Some(Kind::Mark(b'.')) {
                first -= 2;
            }
            if first <= at {
                return Some(format!("{};", self.shown(first, end, place, text)?));
            }
        }
        match self.list_item(start, at, end).filter(|_| !is_whole) {
            Some(List { item, .. }) if item.len() > 1 => self.shown(item.start, item.end, place, text),
            // The name and the list of a record.
            Some(List { open, close, .. })
                if kind(open.wrapping_sub(1)) == Some(Kind::Mark(b':')) && open > start + 1 =>
            {
                let mark = if kind(close + 1) == Some(Kind::Mark(b'{')) { " {" } else { ";" };
                Some(format!("{}{mark}", self.shown(open - 2, close + 1, place, text)?))
            }
            _ => {
                let mark = if kind(end) == Some(Kind::Mark(b'{')) { " {" } else { ";" };
                Some(format!("{}{mark}", self.shown(start, end, place, text)?))
            }
        }
    }

    /// Returns the innermost list that contains a token. Counts in parentheses are not lists.
    fn list_item(&self, start: usize, at: usize, end: usize) -> Option<List> {
        let kind = |index: usize| self.lexed.tokens.get(index).map(|token| token.kind);
        let mut lists = Vec::new();
        for index in start..at {
            match kind(index) {
                Some(Kind::Mark(b'(')) => lists.push((index, index + 1)),
                Some(Kind::Mark(b')')) => drop(lists.pop()),
                Some(Kind::Mark(b',')) => lists.last_mut().into_iter().for_each(|(_, item)| *item = index + 1),
                _ => {}
            }
        }
        let (mut depth, mut last) = (0_usize, None);
        for index in at..end {
            match kind(index) {
                Some(Kind::Mark(b'(')) => depth += 1,
                Some(Kind::Mark(b',')) if depth == 0 => last = last.or(Some(index)),
                Some(Kind::Mark(b')')) if depth > 0 => depth -= 1,
                Some(Kind::Mark(b')')) => {
                    let (open, first) = lists.pop()?;
                    if kind(index + 1) != Some(Kind::Mark(b'*')) {
                        return Some(List { open, item: first..last.unwrap_or(index), close: index });
                    }
                    last = None;
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the text of tokens on one line without comments, with another text in place of a location.
    fn shown(&self, first: usize, end: usize, place: Span, text: &str) -> Option<String> {
        let start = self.lexed.tokens.get(first)?.span.start().min(place.start());
        let end = self.lexed.tokens.get(end.checked_sub(1)?)?.span.end().max(place.end());
        let mut out = String::new();
        let mut at = start;
        let comments = self.lexed.comments.iter().map(|comment| (comment.span, " "));
        let mut changes: Vec<(Span, &str)> = comments.chain([(place, text)]).collect();
        changes.retain(|(span, _)| start <= span.start() && span.end() <= end);
        changes.sort_by_key(|(span, _)| span.start());
        for (span, text) in changes {
            out.push_str(self.text.get(at..span.start())?);
            out.push_str(text);
            at = span.end();
        }
        out.push_str(self.text.get(at..end)?);
        let line = out.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = line.replace("( ", "(").replace(" )", ")").replace(",)", ")");
        (line.len() <= MOST_BYTES).then_some(line)
    }
}

/// The tokens of a list in parentheses.
struct List {
    open: usize,
    /// The item that contains the mistake.
    item: Range<usize>,
    close: usize,
}
