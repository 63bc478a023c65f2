//! Checks and formats DTDs.

use crate::Result;
use metatf_parser::{Diagnostic, Severity, parse};
use serde::Serialize;

/// Name of the page's DTD in messages.
pub const NAME: &str = "page.dtd";

/// The result of checking a DTD.
#[derive(Serialize)]
pub struct Checked {
    /// Errors and warnings, in the order of the parser.
    pub diagnostics: Vec<Found>,
    /// Number of errors.
    pub errors: usize,
    /// Number of declared sections; 0 if the DTD has errors.
    pub sections: usize,
    /// Number of declared records, without the predefined ones.
    pub records: usize,
}

/// An error or a warning.
#[derive(Serialize)]
pub struct Found {
    /// The diagnostic code.
    pub code: String,
    /// Whether the diagnostic is an error.
    pub error: bool,
    /// The message.
    pub message: String,
    /// Start of the source range in UTF-16 code units, as in JavaScript.
    pub from: usize,
    /// End of the source range.
    pub to: usize,
    /// Line number, from 1.
    pub line: u32,
    /// The complete diagnostic with source lines.
    pub shown: String,
}

/// A formatted DTD.
#[derive(Serialize)]
pub struct Formatted {
    /// The text.
    pub text: String,
}

/// Checks a DTD.
#[must_use]
pub fn check(text: &str) -> Checked {
    let parsed = parse(NAME, text.as_bytes());
    let dtd = parsed.dtd.as_ref();
    // The first three records are predefined.
    let own = |dtd: &metatf_parser::Dtd| dtd.records.len().saturating_sub(3);
    Checked {
        errors: parsed.errors(),
        // The first section is the global section.
        sections: dtd.map_or(0, |dtd| dtd.sections.len().saturating_sub(1)),
        records: dtd.map_or(0, own),
        diagnostics: parsed.diagnostics.iter().map(|diagnostic| found(diagnostic, text)).collect(),
    }
}

fn found(diagnostic: &Diagnostic, text: &str) -> Found {
    let units = |at: usize| text.get(..at).map_or(0, |before| before.encode_utf16().count());
    Found {
        code: diagnostic.code.to_string(),
        error: diagnostic.severity == Severity::Error,
        message: diagnostic.message.clone(),
        from: units(diagnostic.primary.span.start),
        to: units(diagnostic.primary.span.end),
        line: diagnostic.primary.line,
        shown: metatf_parser::render(diagnostic, NAME, text.as_bytes(), false),
    }
}

/// Formats a DTD like `metatfc fmt`.
///
/// # Errors
/// Returns an error if the DTD has syntax errors.
pub fn format(text: &str) -> Result<Formatted> {
    match metatf_parser::format(NAME, text.as_bytes()) {
        Ok(text) => Ok(Formatted { text }),
        Err(diagnostics) => {
            Err(diagnostics.first().map_or_else(String::new, |d| format!("line {}: {}", d.primary.line, d.message)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_javascript() {
        // The first letter of the comment occupies four bytes and two code units.
        let text = "// \u{1d538}\nsection s 1 { r: (tag, a) { tag.value = 4; b.width = 1; } }";
        let checked = check(text);
        assert!(checked.errors > 0 && checked.records == 0);
        let units: Vec<u16> = text.encode_utf16().collect();
        let found: Vec<String> =
            checked.diagnostics.iter().map(|d| String::from_utf16(&units[d.from..d.to]).unwrap()).collect();
        assert!(found.iter().any(|place| place.starts_with('b')), "{found:?}");
    }

    #[test]
    fn what_is_declared_is_counted() {
        let checked = check("section s 1 { r: (tag, a) { tag.value = 4; a.width = 1; a.interpretation = none; } }");
        assert_eq!((checked.errors, checked.sections, checked.records), (0, 1, 1));
    }
}
