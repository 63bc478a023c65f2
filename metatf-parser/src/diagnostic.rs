//! Diagnostics, which describe mistakes in a DTD and their locations (spec 3.5, 7).

use std::collections::HashSet;
use std::ops::Range;

use crate::codes::{Code, Severity};
use crate::nearest::nearest;
use crate::rules::Rule;
use crate::span::{Source, Span};

/// An error, a warning or a suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code of the rule.
    pub code: Code,
    /// Whether this is an error, a warning or a suggestion.
    pub severity: Severity,
    /// One sentence that describes the mistake or the possible improvement.
    pub message: String,
    /// The location.
    pub primary: Label,
    /// Related locations, such as "first defined here".
    pub secondary: Vec<Label>,
    /// A hint for correcting the mistake or improving the DTD.
    pub help: Option<String>,
    /// An edit that resolves the diagnostic, if any.
    pub suggestion: Option<Suggestion>,
}

impl Diagnostic {
    /// Returns a suggestion of a lint rule, without related locations or an edit.
    #[must_use]
    pub fn suggestion(rule: Rule, primary: Label, message: String, help: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code: Code::Lint(rule),
            severity: Severity::Suggestion,
            message,
            primary,
            secondary: Vec::new(),
            help: Some(help.into()),
            suggestion: None,
        }
    }
}

/// An edit of the DTD's text that implements `help`, for tools.
///
/// # Examples
///
/// ```
/// let text = b"section heap 1 { free: (tag, address) { tag.value = 4; adress.width = 8; } }";
/// let parsed = metatf_parser::parse("heap.dtd", text);
/// let misspelled = parsed.diagnostics.iter().find(|found| found.code.as_str() == "E0301").ok_or("no mistake")?;
/// let suggestion = misspelled.suggestion.as_ref().ok_or("no suggestion")?;
/// assert_eq!((suggestion.text.as_str(), suggestion.certain), ("address", true));
/// let edited = suggestion.apply(text).ok_or("a range outside the text")?;
/// assert!(edited.ends_with(b"{ tag.value = 4; address.width = 8; } }"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The byte range to replace, including any byte-order mark in the offsets; empty for an insertion.
    pub span: Range<usize>,
    /// The replacement text.
    pub text: String,
    /// Whether the edit is certain to match the author's intent, so that tools can apply it. Otherwise, the edit
    /// contains a number or a property that a person must confirm.
    pub certain: bool,
}

impl Suggestion {
    /// Returns the text with this edit applied, or `None` if the range is outside the text.
    #[must_use]
    pub fn apply(&self, text: &[u8]) -> Option<Vec<u8>> {
        let (before, after) = (text.get(..self.span.start)?, text.get(self.span.end..)?);
        text.get(self.span.clone())?;
        Some([before, self.text.as_bytes(), after].concat())
    }
}

/// A location in the DTD with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The byte range in the text, including any byte-order mark.
    pub span: Range<usize>,
    /// The line, starting at 1.
    pub line: u32,
    /// The column in Unicode code points, starting at 1 and not counting a byte-order mark.
    pub column: u32,
    /// The message, which may be empty.
    pub text: String,
}

/// A place in a help, where the edited item of the text is inserted.
pub(crate) const LINE: &str = "$LINE";

/// A diagnostic whose locations do not have lines and columns yet.
pub(crate) struct Draft {
    code: Code,
    message: String,
    span: Span,
    label: String,
    secondary: Vec<(Span, String)>,
    help: Option<String>,
    /// The location and the new text of the item that replaces [`LINE`] in the help.
    line: Option<(Span, String)>,
    suggestion: Option<Suggestion>,
    /// Whether the hint only describes the grammar.
    is_general: bool,
}

impl Draft {
    pub(crate) fn new(code: Code, span: Span, message: impl Into<String>) -> Draft {
        let (label, secondary) = (String::new(), Vec::new());
        let message = message.into();
        Draft { code, message, span, label, secondary, help: None, line: None, suggestion: None, is_general: false }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Adds a message to the location of the mistake.
    pub(crate) fn label(mut self, text: impl Into<String>) -> Draft {
        self.label = text.into();
        self
    }

    /// Adds a related location, unless it is in a predefined record, which is not part of the text.
    pub(crate) fn also(mut self, span: Span, text: impl Into<String>) -> Draft {
        if !span.is_predefined() {
            self.secondary.push((span, text.into()));
        }
        self
    }

    /// Adds a hint for correcting the mistake.
    pub(crate) fn help(mut self, text: impl Into<String>) -> Draft {
        self.help = Some(text.into());
        self
    }

    /// Adds a suggestion if `name`, located at `span`, is close to a known name.
    pub(crate) fn did_you_mean<'a>(self, span: Span, name: &str, known: impl IntoIterator<Item = &'a str>) -> Draft {
        match nearest(name, known) {
            Some(near) => self.write(span, near).replace(span, near),
            None => self,
        }
    }

    /// Replaces the hint by one to write the item at a location with another text there.
    pub(crate) fn write(self, span: Span, text: impl Into<String>) -> Draft {
        self.help(format!("write `{LINE}`")).line(span, text)
    }

    /// Replaces [`LINE`] in the hint by the item at a location.
    pub(crate) fn quote(self, span: Span) -> Draft {
        self.line(Span::at(span.start()), "")
    }

    /// Replaces [`LINE`] in the hint by the item at a location, with another text there.
    pub(crate) fn line(mut self, span: Span, text: impl Into<String>) -> Draft {
        self.line = Some((span, text.into()));
        self
    }

    /// Declares that the hint only describes the grammar, so that a repair of the text is better.
    pub(crate) fn general(mut self) -> Draft {
        self.is_general = true;
        self
    }

    /// Adds an edit that replaces `span` with `text`. Predefined records are not part of the text, so nothing is added
    /// for them.
    pub(crate) fn replace(mut self, span: Span, text: impl Into<String>) -> Draft {
        if !span.is_predefined() {
            self.suggestion = Some(Suggestion { span: span.range(), text: text.into(), certain: true });
        }
        self
    }

    /// Calls [`propose`](Self::propose) if there is a location.
    pub(crate) fn maybe_propose(self, span: Option<Span>, text: impl FnOnce() -> String) -> Draft {
        match span {
            Some(span) => self.propose(span, text()),
            None => self,
        }
    }

    /// Adds an edit that a person must confirm.
    pub(crate) fn propose(self, span: Span, text: impl Into<String>) -> Draft {
        let mut draft = self.replace(span, text);
        draft.suggestion.iter_mut().for_each(|suggestion| suggestion.certain = false);
        draft
    }
}

/// The diagnostics of a text.
pub(crate) struct Finished {
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The locations of the diagnostics whose hints only describe the grammar.
    general: HashSet<(Code, Range<usize>)>,
}

impl Finished {
    /// Checks whether the hint of a diagnostic only describes the grammar.
    pub(crate) fn is_general(&self, found: &Diagnostic) -> bool {
        self.general.contains(&(found.code, found.primary.span.clone()))
    }
}

/// Maximum number of diagnostics. More of them would not help and would cost time on hostile input. Errors take
/// precedence over warnings.
pub(crate) const MOST_DIAGNOSTICS: usize = 100;

/// A collector that keeps one diagnostic for each rule and location.
pub(crate) struct Reporter<'a> {
    pub(crate) source: &'a Source<'a>,
    list: Vec<Diagnostic>,
    /// For each diagnostic, the edit of the item in its help.
    lines: Vec<Option<(Span, String)>>,
    seen: HashSet<(Code, Span)>,
    /// The diagnostics whose hints only describe the grammar.
    general: HashSet<(Code, Range<usize>)>,
    errors: usize,
    warnings: usize,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(source: &'a Source<'a>) -> Reporter<'a> {
        let (list, lines, seen, general) = (Vec::new(), Vec::new(), HashSet::new(), HashSet::new());
        Reporter { source, list, lines, seen, general, errors: 0, warnings: 0 }
    }

    pub(crate) fn add(&mut self, draft: Draft) {
        let severity = draft.code.severity();
        let count = if severity == Severity::Error { &mut self.errors } else { &mut self.warnings };
        if *count >= MOST_DIAGNOSTICS || !self.seen.insert((draft.code, draft.span)) {
            return;
        }
        *count += 1;
        if draft.is_general {
            self.general.insert((draft.code, draft.span.range()));
        }
        let secondary = draft.secondary.into_iter().map(|(span, text)| self.place(span, text)).collect();
        let primary = self.place(draft.span, draft.label);
        self.lines.push(draft.line);
        self.list.push(Diagnostic {
            code: draft.code,
            severity,
            message: draft.message,
            primary,
            secondary,
            help: draft.help,
            suggestion: draft.suggestion,
        });
    }

    /// Counts an error without adding a diagnostic, because a similar error has already been reported.
    pub(crate) fn add_again(&mut self) {
        self.errors += 1;
    }

    fn place(&self, span: Span, text: String) -> Label {
        let (line, column) = self.source.position(span.start());
        Label { span: span.range(), line, column, text }
    }

    /// Checks whether a violation of one of these rules has been reported at this location.
    pub(crate) fn has_reported(&self, codes: &[Code], span: Span) -> bool {
        codes.iter().any(|code| self.seen.contains(&(*code, span)))
    }

    /// Checks whether a violation of this rule has been reported with this message, at any location.
    pub(crate) fn has_message(&self, code: Code, message: &str) -> bool {
        self.list.iter().any(|found| found.code == code && found.message == message)
    }

    /// Checks whether an error was found.
    pub(crate) fn failed(&self) -> bool {
        self.errors > 0
    }

    /// Checks whether the error limit has been reached, in which case the rest of the text can be skipped.
    pub(crate) fn is_full(&self) -> bool {
        self.errors >= MOST_DIAGNOSTICS
    }

    /// Returns the diagnostics in text order. If there is a syntax error, removes diagnostics that it may have caused.
    pub(crate) fn finish(mut self) -> Finished {
        if self.list.iter().any(|d| d.code.is_syntax()) {
            self.list.retain(|d| !d.code.needs_whole_text());
        }
        self.list.sort_by_key(|d| (d.severity == Severity::Warning, d.primary.span.start, d.code));
        self.list.truncate(MOST_DIAGNOSTICS);
        self.list.sort_by_key(|d| (d.primary.span.start, d.code));
        Finished { diagnostics: self.list, general: self.general }
    }

    /// Checks whether a hint contains [`LINE`].
    pub(crate) fn needs_lines(&self) -> bool {
        self.lines.iter().any(Option::is_some)
    }

    /// Replaces [`LINE`] in the hints. `edited` returns the item of the text at a location, with another text there.
    pub(crate) fn insert_lines(&mut self, edited: impl Fn(Span, &str) -> Option<String>) {
        let lines = std::mem::take(&mut self.lines);
        for (found, line) in self.list.iter_mut().zip(lines) {
            let (Some(help), Some((place, text))) = (&mut found.help, line) else { continue };
            if help.contains(LINE) {
                let item = if place.is_predefined() { None } else { edited(place, &text) };
                let without = if text.is_empty() { "..." } else { &text };
                *help = help.replace(LINE, item.as_deref().unwrap_or(without));
            }
        }
    }
}
