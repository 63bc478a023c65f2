//! The formatter, which uses a single layout for every DTD and preserves all comments.
//!
//! Each level is indented by four spaces, and lines contain up to 100 columns. Properties of one field that were
//! written on the same line stay on one line if they fit. A record or section that was written on one line also stays
//! on one line if it fits. Single blank lines are kept.
//!
//! The formatter works on tokens because the syntax tree does not contain all of the text, such as comments. It adds or
//! removes only optional tokens: it removes a `,` before `)` and a `;` after `}`, and adds a `;` after a record without
//! a block. A comment stays at the start or end of its line, because a comment directly above a definition documents
//! that definition (spec 2).

mod nodes;
mod print;
mod short;

pub use short::shorten;

use crate::diagnostic::{Diagnostic, Reporter};
use crate::span::Source;
use crate::{lexer, line, syntax, text};

/// Formats a DTD. The text must follow the grammar, but may contain other mistakes.
///
/// # Errors
/// Returns the syntax errors of the text.
pub fn format(_name: &str, text: &[u8]) -> Result<String, Vec<Diagnostic>> {
    let source = Source::new(text);
    let mut report = Reporter::new(&source);
    let text = text::decode(text, &mut report);
    let lexed = text.and_then(|text| Some((text, lexer::lex(text, source.start, &mut report)?)));
    if let Some((text, lexed)) = &lexed {
        syntax::parse(text, lexed, &mut report);
    }
    let Some((text, lexed)) = lexed.filter(|_| !report.failed()) else { return Err(line::finish(report).diagnostics) };
    let tree = nodes::tree(&lexed);
    Ok(print::print(text, &source, &lexed, &tree))
}
