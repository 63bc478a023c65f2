//! Applies fixes that are certain, for example for misspelled names, missing punctuation and missing quotes.

use crate::codes::Severity;
use crate::diagnostic::{Diagnostic, MOST_DIAGNOSTICS};
use crate::parse::{Parsed, parse};
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

/// Applies the [suggestions](crate::Suggestion) marked as certain one by one, as long as they improve the text. A text is better
/// if it contains fewer syntax errors, the same number of syntax errors but fewer errors, or the same number of errors
/// but fewer warnings. Comments, layout and the order of definitions are preserved.
#[must_use]
pub fn fix(text: &[u8]) -> Fixed {
    let (mut text, mut fixed, mut work) = (text.to_vec(), Vec::new(), 0);
    let mut parsed = parse("", &text);
    while work < MOST_WORK {
        let better = parsed.diagnostics.iter().find_map(|diagnostic| {
            let suggestion = diagnostic.suggestion.as_ref().filter(|s| s.certain && work < MOST_WORK)?;
            let edited = suggestion.apply(&text)?;
            work += edited.len().max(1);
            let again = parse("", &edited);
            // If the limit on diagnostics is reached, the score does not count all of them, so an equal score may hide
            // an improvement.
            let is_full = parsed.diagnostics.len() >= MOST_DIAGNOSTICS && score(&again) == score(&parsed);
            (is_full || score(&again) < score(&parsed)).then(|| (diagnostic.clone(), edited, again))
        });
        let Some((diagnostic, edited, again)) = better else { break };
        fixed.push(diagnostic);
        (text, parsed) = (edited, again);
    }
    Fixed { text, fixed }
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
    use super::fix;

    #[test]
    fn several_mistakes() {
        let text = "tag.widht = 1;\nsection s 1 {\n    r: (tag, size name) {\n        tag.value = 4;\n        sise.width = \"4\"\n        size.interpretation none;\n        name.width = 1; name.interpretation = \"delta 0\"; name.format = hex;\n    }\n";
        let found = fix(text.as_bytes());
        let wanted = "tag.width = 1;\nsection s 1 {\n    r: (tag, size, name) {\n        tag.value = 4;\n        size.width = 4;\n        size.interpretation = none;\n        name.width = 1; name.interpretation = delta 0; name.format = \"hex\";\n    }\n}\n";
        assert_eq!(String::from_utf8_lossy(&found.text), wanted);
        assert_eq!(found.fixed.len(), 9, "{:#?}", found.fixed);
        assert!(fix(wanted.as_bytes()).fixed.is_empty());
    }

    #[test]
    fn what_is_not_certain_stays() {
        let text = b"r: (tag, a) { a.interpretation = none; }";
        assert_eq!(fix(text).text, text);
        assert_eq!(fix(b"\xff;").text, b"\xff;");
    }
}
