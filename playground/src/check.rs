//! What is wrong in a DTD, where, and how it is laid out.

use crate::Result;
use metatf_parser::{Diagnostic, Severity, parse};
use serde::Serialize;

/// What messages call the DTD of the page.
pub const NAME: &str = "page.dtd";

/// A DTD, checked.
#[derive(Serialize)]
pub struct Checked {
    /// Errors and warnings, in the parser's order.
    pub diagnostics: Vec<Found>,
    /// Errors among them.
    pub errors: usize,
    /// Sections that it declares; none where it has errors.
    pub sections: usize,
    /// Records that it declares, without those that every DTD has.
    pub records: usize,
}

/// A mistake, or a warning.
#[derive(Serialize)]
pub struct Found {
    /// Its code.
    pub code: String,
    /// Whether it is an error.
    pub error: bool,
    /// What is wrong.
    pub message: String,
    /// Where: UTF-16 units of the text, as JavaScript counts.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// Its line, from 1.
    pub line: u32,
    /// All of it, with the lines of the text.
    pub shown: String,
}

/// A DTD's text, laid out.
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
    // The first three records are those that every DTD has.
    let own = |dtd: &metatf_parser::Dtd| dtd.records.len().saturating_sub(3);
    Checked {
        errors: parsed.errors(),
        // The first is the global section.
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

/// Lays a DTD out as `metatfc fmt` does.
///
/// # Errors
/// It has mistakes of syntax.
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
        // The first letter of the comment takes four bytes, and two units.
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
