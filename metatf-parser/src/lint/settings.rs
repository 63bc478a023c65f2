//! The rule for properties that have no effect because a nearer setting overrides them for every field (spec 3.1).

use std::collections::HashSet;
use std::ops::Range;

use super::{Linter, Rule};
use crate::diagnostic::Suggestion;
use crate::lexer::{Kind, Token};
use crate::vocabulary::Property;

pub(super) fn check(linter: &mut Linter) {
    let index = linter.index;
    let fields = || index.records.iter().flat_map(|record| &record.fields);
    let settings = fields().flat_map(|field| &field.settings);
    let mut used: Vec<usize> = settings.filter_map(|set| Some(set.span.as_ref()?.start)).collect();
    used.sort_unstable();
    // The parser already warns about names that do not occur in any record.
    let known: HashSet<&str> = fields().map(|field| field.leaf.name.as_str()).collect();
    let reported: HashSet<usize> = index.diagnostics.iter().map(|found| found.primary.span.start).collect();
    let lexed = linter.lexed;
    for at in 0..lexed.tokens.len() {
        let Some(statement) = Statement::at(linter, at) else { continue };
        let unused =
            used.binary_search(&statement.target.start).is_err() && !reported.contains(&statement.target.start);
        if unused && known.contains(statement.field) {
            let (path, property) = (statement.path, statement.property.name());
            let message =
                format!("`{path}.{property}` has no effect: a nearer setting overrides it for each of its fields");
            let help = "remove the property";
            let edit = statement.removal(linter);
            linter.add(Rule::OverriddenProperty, &statement.target, message, help).suggestion = Some(edit);
        }
    }
}

/// A statement `path.property = value;`.
struct Statement<'l> {
    path: &'l str,
    /// The last name of the path.
    field: &'l str,
    property: Property,
    /// The byte range of the path and the property name.
    target: Range<usize>,
    /// The indices of the first token and of the `;`.
    tokens: (usize, usize),
}

impl<'l> Statement<'l> {
    /// Returns the statement whose `=` is this token, if it sets a property that fields inherit.
    fn at(linter: &Linter<'l>, equals: usize) -> Option<Self> {
        let tokens = &linter.lexed.tokens;
        let is = |at: usize, mark: u8| tokens.get(at).is_some_and(|token| token.kind == Kind::Mark(mark));
        let name = |at: usize| tokens.get(at).filter(|token| token.kind == Kind::Name);
        let word = |token: &Token| linter.text.get(token.span.range());
        if !is(equals, b'=') {
            return None;
        }
        let last = name(equals.checked_sub(1)?)?;
        let property = Property::named(word(last)?)?;
        // These properties are not inherited in the same way: `doc` may belong to a record, and `was` to a tag.
        if matches!(property, Property::Doc | Property::Was) {
            return None;
        }
        let end_of_path = equals.checked_sub(3).filter(|at| is(at + 1, b'.'))?;
        let mut first = end_of_path;
        while let Some(before) = first.checked_sub(2).filter(|at| is(at + 1, b'.') && name(*at).is_some()) {
            first = before;
        }
        let (begin, field) = (name(first)?, name(end_of_path)?);
        let path = linter.text.get(begin.span.start()..field.span.end())?;
        let field = word(field)?;
        if field == "tag" {
            return None;
        }
        let semicolon = (equals..tokens.len()).find(|at| is(*at, b';'))?;
        let target = begin.span.start()..last.span.end();
        Some(Self { path, field, property, target, tokens: (first, semicolon) })
    }

    /// Returns the edit that removes the statement, and also the line if it contains nothing else.
    fn removal(&self, linter: &Linter) -> Suggestion {
        let (first, semicolon) = self.tokens;
        let text = linter.text;
        let end = linter.lexed.tokens.get(semicolon).map_or(self.target.end, |token| token.span.end());
        let mut span = self.target.start..end;
        let before = text.get(..span.start).unwrap_or_default();
        let indent = before.len() - before.trim_end_matches([' ', '\t']).len();
        let behind = text.get(span.end..).unwrap_or_default();
        let blank = behind.len() - behind.trim_start_matches([' ', '\t']).len();
        let starts_line =
            before.get(..before.len() - indent).is_some_and(|rest| rest.is_empty() || rest.ends_with('\n'));
        let rest = behind.get(blank..).unwrap_or_default();
        let line_end = if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
        if starts_line && line_end > 0 {
            span = span.start - indent..span.end + blank + line_end;
        } else if line_end == 0 {
            span.end += blank;
        } else {
            span.start -= indent;
        }
        // If a comment precedes the statement, removing the statement would attach the comment to the next definition.
        let certain = linter.lexed.comments_before(first).is_empty();
        Suggestion { span, text: String::new(), certain }
    }
}
