//! The Meta-TF language: a DTD's text to its resolved schema, with diagnostics.
//!
//! ```
//! let text = b"section heap 1 { free: (tag, address) { tag.value = 4; address.width = 8; address.interpretation = none; } }";
//! let parsed = metatf_parser::parse("heap.dtd", text);
//! let dtd = parsed.dtd.ok_or("errors")?;
//! let heap = dtd.section_named("heap").ok_or("no section")?;
//! let free = dtd.find_record(heap, "free").ok_or("no record")?;
//! assert_eq!(free.tag, Some(4));
//! # Ok::<(), &str>(())
//! ```
//!
//! A mistake has a stable code, a place, often a second place, and a line with what would be right; one run
//! reports all of them:
//!
//! ```
//! let text = b"section heap 1 { free: (tag, address) { tag.value = 4; adress.width = 8; } }";
//! let parsed = metatf_parser::parse("heap.dtd", text);
//! let shown = metatf_parser::render(&parsed.diagnostics[1], "heap.dtd", text, false);
//! assert!(shown.starts_with("error[E0301]: record `free` has no field `adress`"));
//! assert!(shown.contains("heap.dtd:1:56") && shown.contains("did you mean `address`?"));
//! ```
//!
//! The stages: `text` (UTF-8) -> `lexer` (tokens, comments, depth) -> `syntax` (pest, item by item, to a syntax tree) ->
//! `resolve` (names, look-up, checks, one file for each family of rules) -> [`schema`]. Modules import downwards only, in the order
//! `schema`, `vocabulary`, `nearest`, `span`, `codes`, `diagnostic`, `suggest`, `render`, `text`, `lexer`, `words`, `ast`, `syntax`, `add_field`,
//! `format`, `resolve`. [`Code`] lists the rules, with the section
//! of the specification that each comes from. No input panics, and no step recurses deeper than the 32 levels that a
//! DTD may nest.
#![forbid(unsafe_code)]

mod add_field;
mod ast;
mod codes;
#[cfg(feature = "index")]
mod complete;
mod diagnostic;
mod fix;
mod format;
#[cfg(feature = "index")]
mod hover;
#[cfg(feature = "index")]
pub mod index;
mod lexer;
mod nearest;
#[cfg(feature = "index")]
mod position;
#[cfg(feature = "index")]
mod rename;
mod render;
mod resolve;
pub mod schema;
mod span;
mod suggest;
mod syntax;
mod text;
#[cfg(feature = "index")]
mod tokens;
mod vocabulary;
mod words;

pub use add_field::add_field;
pub use codes::{Code, Severity, explain};
#[cfg(feature = "index")]
pub use complete::{Completion, CompletionKind, complete};
use diagnostic::Reporter;
pub use diagnostic::{Diagnostic, Label, Suggestion};
pub use fix::{Fixed, fix};
pub use format::format;
#[cfg(feature = "index")]
pub use hover::{Hint, Hover, hints, hover, width_text};
#[cfg(feature = "index")]
pub use position::{Columns, Lines};
#[cfg(feature = "index")]
pub use rename::rename;
pub use render::render;
pub use schema::Dtd;
use span::Source;
pub use text::{MOST_BYTES, MOST_EMBEDDED_BYTES};
#[cfg(feature = "index")]
pub use tokens::{TokenKind, tokens};
pub use vocabulary::Property;

/// What became of a DTD's text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The schema; `None` if there are errors.
    pub dtd: Option<Dtd>,
    /// Errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// What the caller calls the text: a file name.
    pub name: String,
}

impl Parsed {
    /// How many errors there are.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|d| d.severity == Severity::Error).count()
    }

    /// How many warnings there are.
    #[must_use]
    pub fn warnings(&self) -> usize {
        self.diagnostics.len() - self.errors()
    }
}

/// Parses and checks a DTD. `name` is a file name for the caller's messages. Never panics, whatever the text is, and
/// takes time and memory in proportion to it.
#[must_use]
pub fn parse(name: &str, text: &[u8]) -> Parsed {
    let source = Source::new(text);
    let mut report = Reporter::new(&source);
    let dtd = syntax_tree(text, &source, &mut report).and_then(|(text, ast)| resolve::resolve(&ast, text, &mut report));
    let failed = report.failed();
    Parsed { dtd: dtd.filter(|_| !failed), diagnostics: report.finish(), name: name.to_owned() }
}

fn syntax_tree<'t>(text: &'t [u8], source: &Source, report: &mut Reporter) -> Option<(&'t str, ast::Ast<'t>)> {
    let text = text::decode(text, report)?;
    text::misleading(text, report);
    let lexed = lexer::lex(text, source.start, report)?;
    let ast = syntax::parse(text, &lexed, report);
    Some((text, ast))
}

/// Lexes without reporting: for what looks at a text that an index was made of.
#[cfg(feature = "index")]
fn lex(text: &[u8]) -> Option<(&str, lexer::Lexed)> {
    let source = Source::new(text);
    let mut report = Reporter::new(&source);
    let text = text::decode(text, &mut report)?;
    Some((text, lexer::lex(text, source.start, &mut report)?))
}

/// Finds out what the names in a text mean, whatever is wrong with it: see [`index::Index`]. Never panics, whatever the text is, and takes
/// time and memory in proportion to it.
#[cfg(feature = "index")]
#[must_use]
pub fn index(text: &[u8]) -> index::Index {
    let source = Source::new(text);
    let mut report = Reporter::new(&source);
    let index = syntax_tree(text, &source, &mut report).map(|(text, ast)| resolve::index(&ast, text, &mut report));
    index::Index { diagnostics: report.finish(), ..index.unwrap_or_default() }
}
