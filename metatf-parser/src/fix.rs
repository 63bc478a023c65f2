//! Applies fixes that are certain, for example for misspelled names, missing punctuation and missing quotes.

use crate::codes::Severity;
use crate::diagnostic::{Diagnostic, MOST_DIAGNOSTICS};
use crate::parse::{Parsed, parse, parse_once};
use crate::text::MOST_BYTES;

/// Maximum total number of bytes to parse in all attempts. Parsing this many bytes takes a few seconds at most. Real
/// DTDs need far fewer bytes.
const MOST_WORK: usize = 8 * MOST_BYTES;

/// The result of [`fix`].
#[derive(Clone, Debug)]
pub struct Fixed {
    /// The text with all edits applied.
    pub text: Vec<u8>,
    /// The fixed diagnostics, in the order in which they were fixed. The locations in each diagnostic refer to the text
    /// just before its fix.
    pub fixed: Vec<Diagnostic>,
}

/// Applies the [suggestions](crate::Suggestion) marked as certain one by one, as long as they improve the text. An edit
/// is kept only if its diagnostic disappears, there are fewer errors (or fewer warnings and no more errors), and no other
/// kind of error appears. A syntax error hides other errors, which may appear elsewhere after it is fixed. Comments,
/// layout and the order of definitions are preserved.
#[must_use]
pub fn fix(text: &[u8]) -> Fixed {
    let (mut text, mut fixed, mut work) = (text.to_vec(), Vec::new(), 0);
    let mut parsed = parse("", &text);
    while work < MOST_WORK {
        let better = parsed.diagnostics.iter().find_map(|diagnostic| {
            let suggestion = diagnostic.suggestion.as_ref().filter(|s| s.certain && work < MOST_WORK)?;
            let edited = suggestion.apply(&text)?;
            work += edited.len().max(1);
            let again = parse_once(&edited);
            let edit =
                Edit { diagnostic, start: suggestion.span.start, inserted: suggestion.text.len(), text: &edited };
            edit.improves(&parsed, &again).then(|| (diagnostic.clone(), edited))
        });
        let Some((diagnostic, edited)) = better else { break };
        fixed.push(diagnostic);
        text = edited;
        parsed = parse("", &text);
    }
    Fixed { text, fixed }
}

/// An edit that has been applied to a text.
struct Edit<'a> {
    diagnostic: &'a Diagnostic,
    start: usize,
    inserted: usize,
    /// The edited text.
    text: &'a [u8],
}

impl Edit<'_> {
    /// Checks whether the edit removes its diagnostic and adds no error.
    fn improves(&self, before: &Parsed, after: &Parsed) -> bool {
        let same = |d: &&Diagnostic| d.code == self.diagnostic.code && d.message == self.diagnostic.message;
        let is_full = before.diagnostics.len() >= MOST_DIAGNOSTICS;
        // If the limit on diagnostics is reached, the score does not count all of them, so an equal score may hide an
        // improvement.
        let (old, new) = (score(before), score(after));
        let is_gone = after.diagnostics.iter().filter(same).count() < before.diagnostics.iter().filter(same).count();
        if !(new < old && is_gone || is_full && new == old) {
            return false;
        }
        let is_known = |d: &Diagnostic| before.diagnostics.iter().any(|known| known.code == d.code);
        let errors = after.diagnostics.iter().filter(|d| d.severity == Severity::Error);
        let mut fresh = errors.filter(|d| !is_full && !is_known(d));
        let item = self.item();
        // A syntax error hides errors. The edit does not cause those that are elsewhere, or that an edit can fix.
        let can_be_fixed = |d: &Diagnostic| d.suggestion.as_ref().is_some_and(|suggestion| suggestion.certain);
        fresh.all(|d| old.0 > 0 && !d.code.is_syntax() && (can_be_fixed(d) || !item.contains(&d.primary.span.start)))
    }

    /// Returns the range of the edited items, which commas, parentheses, braces or semicolons delimit.
    fn item(&self) -> std::ops::Range<usize> {
        let is_mark = |byte: &u8| matches!(byte, b',' | b'(' | b')' | b';' | b'{' | b'}');
        let end = self.start + self.inserted;
        let before = self.text.get(..self.start).unwrap_or_default().iter().rposition(is_mark);
        let after = self.text.get(end..).unwrap_or_default().iter().position(is_mark);
        before.map_or(0, |at| at + 1)..after.map_or(self.text.len(), |at| end + at)
    }
}

/// Returns the counts of syntax errors, errors and warnings, most important first. Syntax errors come first because
/// they hide other errors.
fn score(parsed: &Parsed) -> (usize, usize, usize) {
    let of = |severity| parsed.diagnostics.iter().filter(|d| d.severity == severity).count();
    let syntax = parsed.diagnostics.iter().filter(|d| d.code.is_syntax()).count();
    (syntax, of(Severity::Error), of(Severity::Warning))
}

#[cfg(test)]
mod tests {
    use super::{fix, parse};

    #[test]
    fn several_mistakes() {
        let text = "tag.widht = 1;\nsection s 1 {\n    r: (tag, size name) {\n        tag.value = 4;\n        sise.width = \"4\"\n        size.interpretation none;\n        name.width = 1; name.interpretation = \"delta 0\"; name.format = hex;\n    }\n";
        let found = fix(text.as_bytes());
        let wanted = "tag.width = 1;\nsection s 1 {\n    r: (tag, size, name) {\n        tag.value = 4;\n        size.width = 4;\n        size.interpretation = none;\n        name.width = 1; name.interpretation = delta 0; name.format = \"hex\";\n    }\n}\n";
        assert_eq!(String::from_utf8_lossy(&found.text), wanted);
        assert_eq!(found.fixed.len(), 9, "{:#?}", found.fixed);
        assert!(fix(wanted.as_bytes()).fixed.is_empty());
    }

    /// A misspelled name is known only after the missing semicolon is inserted.
    #[test]
    fn two_mistakes_in_a_statement() {
        let text = b"section s 1 {\n    r: (tag, size) {\n        tag.value = 4;\n        sise.width = 2\n        size.interpretation = none;\n    }\n}\n";
        let found = fix(text);
        assert!(parse("", &found.text).dtd.is_some(), "{}", String::from_utf8_lossy(&found.text));
        assert_eq!(found.fixed.len(), 2);
    }

    /// A comma would turn one error into another.
    #[test]
    fn an_edit_that_causes_another_error_is_not_kept() {
        let text = b"section s 1 { r: (optional time) { tag.value = 4; time.width = 1; time.interpretation = none; } }";
        let parsed = parse("", text);
        let suggestion = parsed.diagnostics[0].suggestion.as_ref().filter(|_| parsed.errors() == 1);
        let certain = suggestion.map(|suggestion| (suggestion.text.as_str(), suggestion.certain));
        assert!(certain.is_some(), "{:?}", parsed.diagnostics);
        let comma = text.iter().position(|b| *b == b'l').map(|at| at + 1).unwrap_or_default();
        let edited = [&text[..comma], b",", &text[comma..]].concat();
        let edit = super::Edit { diagnostic: &parsed.diagnostics[0], start: comma, inserted: 1, text: &edited };
        assert!(!edit.improves(&parsed, &parse("", &edited)), "the field `optional` has no width");
        assert_eq!(fix(text).text, text);
    }

    #[test]
    fn what_is_not_certain_stays() {
        let text = b"r: (tag, a) { a.interpretation = none; }";
        assert_eq!(fix(text).text, text);
        assert_eq!(fix(b"\xff;").text, b"\xff;");
    }
}
