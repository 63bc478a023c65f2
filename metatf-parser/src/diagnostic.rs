//! What is wrong in a DTD, and where (spec 3.5, 7).

use std::collections::HashSet;
use std::ops::Range;

use crate::codes::{Code, Severity};
use crate::nearest::nearest;
use crate::span::{Source, Span};

/// One mistake, or one warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code of the rule.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// One sentence that says what is wrong.
    pub message: String,
    /// The place at fault.
    pub primary: Label,
    /// Other places that matter ("first defined here").
    pub secondary: Vec<Label>,
    /// What would be right.
    pub help: Option<String>,
    /// An edit after which this would not be reported, where there is one.
    pub suggestion: Option<Suggestion>,
}

/// An edit of the DTD's text: what `help` says, for tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The bytes that are replaced, a byte-order mark counted; empty for an insertion.
    pub span: Range<usize>,
    /// What stands there instead.
    pub text: String,
    /// Whether the text alone tells what is meant. If not, the edit has a number or a property that a person has to confirm.
    pub certain: bool,
}

impl Suggestion {
    /// Returns the text with this edit; `None` if the bytes are not in it.
    #[must_use]
    pub fn apply(&self, text: &[u8]) -> Option<Vec<u8>> {
        let (before, after) = (text.get(..self.span.start)?, text.get(self.span.end..)?);
        text.get(self.span.clone())?;
        Some([before, self.text.as_bytes(), after].concat())
    }
}

/// A place in the DTD and a remark on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Bytes of the text, a byte-order mark counted.
    pub span: Range<usize>,
    /// Line, from 1.
    pub line: u32,
    /// Column in Unicode code points, from 1; a byte-order mark is not counted.
    pub column: u32,
    /// The remark; may be empty.
    pub text: String,
}

/// A diagnostic before its places have lines and columns.
pub(crate) struct Draft {
    code: Code,
    message: String,
    span: Span,
    label: String,
    secondary: Vec<(Span, String)>,
    help: Option<String>,
    suggestion: Option<Suggestion>,
}

impl Draft {
    pub(crate) fn new(code: Code, span: Span, message: impl Into<String>) -> Draft {
        let (label, secondary) = (String::new(), Vec::new());
        Draft { code, message: message.into(), span, label, secondary, help: None, suggestion: None }
    }

    /// Adds a remark on the place at fault.
    pub(crate) fn label(mut self, text: impl Into<String>) -> Draft {
        self.label = text.into();
        self
    }

    /// Adds a second place; places in predefined records are left out.
    pub(crate) fn also(mut self, span: Span, text: impl Into<String>) -> Draft {
        if !span.is_predefined() {
            self.secondary.push((span, text.into()));
        }
        self
    }

    /// Adds what would be right.
    pub(crate) fn help(mut self, text: impl Into<String>) -> Draft {
        self.help = Some(text.into());
        self
    }

    /// Adds that `name`, which stands at `span`, is nearly one of the names that would be right.
    pub(crate) fn did_you_mean<'a>(self, span: Span, name: &str, known: impl IntoIterator<Item = &'a str>) -> Draft {
        match nearest(name, known) {
            Some(near) => self.help(format!("did you mean `{near}`?")).replace(span, near),
            None => self,
        }
    }

    /// Adds the edit that puts `text` in place of what stands at `span`. Predefined records have no text to be edited.
    pub(crate) fn replace(mut self, span: Span, text: impl Into<String>) -> Draft {
        if !span.is_predefined() {
            self.suggestion = Some(Suggestion { span: span.range(), text: text.into(), certain: true });
        }
        self
    }

    /// As [`propose`](Self::propose), if there is a place for it.
    pub(crate) fn maybe_propose(self, span: Option<Span>, text: impl FnOnce() -> String) -> Draft {
        match span {
            Some(span) => self.propose(span, text()),
            None => self,
        }
    }

    /// Adds an edit with something that a person has to confirm.
    pub(crate) fn propose(self, span: Span, text: impl Into<String>) -> Draft {
        let mut draft = self.replace(span, text);
        draft.suggestion.iter_mut().for_each(|suggestion| suggestion.certain = false);
        draft
    }
}

/// More diagnostics than this help nobody, and cost time on hostile input. Errors go before warnings.
pub(crate) const MOST_DIAGNOSTICS: usize = 100;

/// Collects diagnostics: one for each rule and place.
pub(crate) struct Reporter<'a> {
    pub(crate) source: &'a Source<'a>,
    list: Vec<Diagnostic>,
    seen: HashSet<(Code, Span)>,
    errors: usize,
    warnings: usize,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(source: &'a Source<'a>) -> Reporter<'a> {
        Reporter { source, list: Vec::new(), seen: HashSet::new(), errors: 0, warnings: 0 }
    }

    pub(crate) fn add(&mut self, draft: Draft) {
        let severity = draft.code.severity();
        let count = if severity == Severity::Error { &mut self.errors } else { &mut self.warnings };
        if *count >= MOST_DIAGNOSTICS || !self.seen.insert((draft.code, draft.span)) {
            return;
        }
        *count += 1;
        let secondary = draft.secondary.into_iter().map(|(span, text)| self.place(span, text)).collect();
        let primary = self.place(draft.span, draft.label);
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

    /// Counts an error that is not shown, because one like it is.
    pub(crate) fn add_again(&mut self) {
        self.errors += 1;
    }

    fn place(&self, span: Span, text: String) -> Label {
        let (line, column) = self.source.position(span.start());
        Label { span: span.range(), line, column, text }
    }

    /// Checks whether one of these rules has reported a place.
    pub(crate) fn has_reported(&self, codes: &[Code], span: Span) -> bool {
        codes.iter().any(|code| self.seen.contains(&(*code, span)))
    }

    /// Checks whether any error was found.
    pub(crate) fn failed(&self) -> bool {
        self.errors > 0
    }

    /// Checks whether there are enough errors that the rest of the text need not be looked at.
    pub(crate) fn is_full(&self) -> bool {
        self.errors >= MOST_DIAGNOSTICS
    }

    /// Returns the diagnostics in the order of the text. After a syntax error only those are kept that cannot be its consequence.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        if self.list.iter().any(|d| d.code.is_syntax()) {
            self.list.retain(|d| !d.code.needs_whole_text());
        }
        self.list.sort_by_key(|d| (d.severity == Severity::Warning, d.primary.span.start, d.code));
        self.list.truncate(MOST_DIAGNOSTICS);
        self.list.sort_by_key(|d| (d.primary.span.start, d.code));
        self.list
    }
}
