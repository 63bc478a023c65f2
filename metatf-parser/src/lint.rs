//! What is right in a DTD and could be better: the rules of `metatfc lint` that need no trace.

mod docs;
mod names;
mod rules;
mod settings;
mod streams;

use std::ops::Range;

use crate::codes::Severity;
use crate::diagnostic::{Label, Suggestion};
use crate::index::Index;
use crate::lexer::Lexed;
use crate::parse::lex;
use crate::span::Source;

pub use rules::Rule;

/// A place in a DTD that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// One sentence that says what could be better.
    pub message: String,
    /// The place.
    pub primary: Label,
    /// Other places that matter ("the other one").
    pub secondary: Vec<Label>,
    /// What would be better.
    pub help: String,
    /// An edit that does so, where there is one.
    pub suggestion: Option<Suggestion>,
}

/// Looks for what the rules that need no trace are about, as far as they are wanted. `index` is the [index](crate::index()) of the text.
/// A text with errors has no findings: it is to be made right first. The findings are in the order of the text.
///
/// A comment `lint: allow RULE, RULE` on the line of a place keeps the rules silent there; one before the first word of the DTD does so
/// for all of it.
#[must_use]
pub fn lint(text: &[u8], index: &Index, wanted: impl Fn(Rule) -> bool) -> Vec<Finding> {
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
    findings.retain(|finding| wanted(finding.rule) && !allowed.allows(finding.rule, finding.primary.line));
    findings.sort_by_key(|finding| (finding.primary.span.start, finding.rule));
    findings
}

/// The comments of a DTD that keep rules silent on their lines.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// Lines, from 1, and the rule of each. `None`: for all.
    lines: Vec<(Option<u32>, Rule)>,
}

impl Allowed {
    /// Finds the comments of a text.
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

    /// Returns whether a rule is silent on a line, from 1.
    #[must_use]
    pub fn allows(&self, rule: Rule, line: u32) -> bool {
        self.lines.iter().any(|(at, allowed)| *allowed == rule && at.is_none_or(|at| at == line))
    }
}

/// What the rules look at, and what they find.
struct Linter<'l> {
    text: &'l str,
    source: &'l Source<'l>,
    lexed: &'l Lexed,
    index: &'l Index,
    findings: Vec<Finding>,
}

impl Linter<'_> {
    fn add(&mut self, rule: Rule, place: &Range<usize>, message: String, help: impl Into<String>) -> &mut Finding {
        let primary = self.label(place, "");
        let (secondary, suggestion) = (Vec::new(), None);
        let at = self.findings.len();
        self.findings.push(Finding { rule, message, primary, secondary, help: help.into(), suggestion });
        // It was just put there.
        #[expect(clippy::indexing_slicing, reason = "the index of what was pushed")]
        &mut self.findings[at]
    }

    fn label(&self, place: &Range<usize>, text: &str) -> Label {
        let (line, column) = self.source.position(place.start);
        Label { span: place.clone(), line, column, text: text.to_owned() }
    }
}
