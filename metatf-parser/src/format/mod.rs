//! The formatter: one layout for every DTD, all comments kept.
//!
//! Four spaces a level; lines of up to 100 columns; properties of one field that stood on one line stay there while they
//! fit; a record or section that stood on one line stays there if it fits; single blank lines stay. It works on tokens,
//! so that nothing is lost that the syntax tree does not hold, and changes none but optional ones: a `,` before `)` and
//! a `;` after `}` go, a record without a block ends with `;`. A comment stays on its line's start or end, because a
//! comment directly above a definition is its doc (spec 2).

mod nodes;
mod print;

use crate::diagnostic::{Diagnostic, Reporter};
use crate::span::Source;
use crate::{lexer, syntax, text};

/// Formats a DTD. What does not follow the grammar cannot be formatted; other mistakes do not matter.
///
/// # Errors
/// The syntax errors.
pub fn format(_name: &str, text: &[u8]) -> Result<String, Vec<Diagnostic>> {
    let source = Source::new(text);
    let mut report = Reporter::new(&source);
    let text = text::decode(text, &mut report);
    let lexed = text.and_then(|text| Some((text, lexer::lex(text, source.start, &mut report)?)));
    if let Some((text, lexed)) = &lexed {
        syntax::parse(text, lexed, &mut report);
    }
    let Some((text, lexed)) = lexed.filter(|_| !report.failed()) else { return Err(report.finish()) };
    let tree = nodes::tree(&lexed);
    Ok(print::print(text, &source, &lexed, &tree))
}
