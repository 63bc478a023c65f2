//! Lints a valid DTD with the rules of `metatfc check --lint` that do not need a trace.

mod docs;
mod names;
mod settings;
mod streams;

use std::ops::Range;

use crate::codes::{Code, Severity};
use crate::diagnostic::{Diagnostic, Label};
use crate::index::Index;
use crate::lexer::Lexed;
use crate::parse::lex;
use crate::rules::Rule;
use crate::span::Source;

/// Checks the rules for which `wanted` returns true and which do not need a trace. `index` is the
/// [index](crate::index()) of the text. Returns suggestions in text order, or none if the text contains errors, because
/// the errors must be fixed first.
///
/// A comment `lint: allow RULE, RULE` suppresses the rules on its line. If the comment precedes the first word of the
/// DTD, it suppresses the rules in the entire text.
#[must_use]
pub fn lint(text: &[u8], index: &Index, wanted: impl Fn(Rule) -> bool) -> Vec<Diagnostic> {
    if index.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return Vec::new();
    }
    let Some((decoded, lexed)) = lex(text) else { return Vec::new() };
    let source = Source::new(text);
    let mut linter = Linter { text: decoded, source: &source, lexed: &lexed, index, findings: Vec::new() };
    docs::check(&mut linter, &wanted);
    names::check(&mut linter);
    settings::check(&mut linter);
    streams::check(&mut linter);
    let mut findings = linter.findings;
    let allowed = Allowed::new(decoded, &lexed, &source);
    findings.retain(|found| matches!(found.code, Code::Lint(rule) if wanted(rule)) && !allowed.allows(found));
    findings.sort_by_key(|finding| (finding.primary.span.start, finding.code));
    findings
}

/// The comments of a DTD that suppress rules.
///
/// [`lint`] omits suppressed suggestions. This type is for checks outside this crate, such as those that need traces.
///
/// # Examples
///
/// ```
/// use metatf_parser::{Allowed, Diagnostic, Label, Rule};
///
/// let text = b"section a 1 { r: (tag) { tag.value = 4; } } // lint: allow unused-record";
/// let here = Label { span: 14..15, line: 1, column: 15, text: String::new() };
/// let message = "no trace contains record `r`".to_owned();
/// let found = Diagnostic::suggestion(Rule::UnusedRecord, here, message, "remove the record");
/// assert!(Allowed::of(text).allows(&found));
///
/// let elsewhere = Label { line: 2, ..found.primary.clone() };
/// assert!(!Allowed::of(text).allows(&Diagnostic { primary: elsewhere, ..found }));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// Pairs of a line, starting at 1, and a rule suppressed on that line; `None` suppresses the rule on all lines.
    lines: Vec<(Option<u32>, Rule)>,
}

impl Allowed {
    /// Finds the suppression comments in a text.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let Some((decoded, lexed)) = lex(text) else { return Self::default() };
        Self::new(decoded, &lexed, &Source::new(text))
    }

    fn new(decoded: &str, lexed: &Lexed, source: &Source) -> Self {
        let mut lines = Vec::new();
        for comment in &lexed.comments {
            let written = decoded.get(comment.span.range()).unwrap_or_default();
            let Some((_, names)) = written.split_once("lint: allow ") else { continue };
            let is_head = lexed.tokens.first().is_none_or(|first| comment.span.start() < first.span.start());
            let line = (!is_head).then(|| source.position(comment.span.start()).0);
            let names = names.trim_end_matches("*/").split(',');
            lines.extend(names.filter_map(|name| Some((line, Rule::named(name.trim())?))));
        }
        Self { lines }
    }

    /// Returns whether the rule of this suggestion is suppressed on its line.
    #[must_use]
    pub fn allows(&self, found: &Diagnostic) -> bool {
        let is_here = |at: Option<u32>| at.is_none_or(|at| at == found.primary.line);
        self.lines.iter().any(|(at, rule)| Code::Lint(*rule) == found.code && is_here(*at))
    }
}

/// The text being linted and the findings so far.
struct Linter<'l> {
    text: &'l str,
    source: &'l Source<'l>,
    lexed: &'l Lexed,
    index: &'l Index,
    findings: Vec<Diagnostic>,
}

impl Linter<'_> {
    fn add(&mut self, rule: Rule, place: &Range<usize>, message: String, help: impl Into<String>) -> &mut Diagnostic {
        let primary = self.label(place, "");
        let at = self.findings.len();
        self.findings.push(Diagnostic::suggestion(rule, primary, message, help));
        // The index is valid, because the finding has just been pushed.
        #[expect(clippy::indexing_slicing, reason = "the index of what was pushed")]
        &mut self.findings[at]
    }

    fn label(&self, place: &Range<usize>, text: &str) -> Label {
        let (line, column) = self.source.position(place.start);
        Label { span: place.clone(), line, column, text: text.to_owned() }
    }
}
