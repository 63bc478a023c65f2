//! The stages in their order, from a text to its schema or its index.

use crate::ast::Ast;
use crate::codes::Severity;
use crate::diagnostic::{Diagnostic, Reporter};
#[cfg(feature = "index")]
use crate::index::Index;
#[cfg(feature = "index")]
use crate::lexer::Lexed;
use crate::schema::Dtd;
use crate::span::Source;
use crate::{lexer, resolve, syntax, text};

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

fn syntax_tree<'t>(text: &'t [u8], source: &Source, report: &mut Reporter) -> Option<(&'t str, Ast<'t>)> {
    let text = text::decode(text, report)?;
    text::misleading(text, report);
    let lexed = lexer::lex(text, source.start, report)?;
    let ast = syntax::parse(text, &lexed, report);
    Some((text, ast))
}

/// Lexes without reporting: for what looks at a text that an index was made of.
#[cfg(feature = "index")]
pub(crate) fn lex(text: &[u8]) -> Option<(&str, Lexed)> {
    let source = Source::new(text);
    let mut report = Reporter::new(&source);
    let text = text::decode(text, &mut report)?;
    Some((text, lexer::lex(text, source.start, &mut report)?))
}

/// Finds out what the names in a text mean, whatever is wrong with it: see [`Index`]. Never panics, whatever the text is, and takes
/// time and memory in proportion to it.
#[cfg(feature = "index")]
#[must_use]
pub fn index(text: &[u8]) -> Index {
    let source = Source::new(text);
    let mut report = Reporter::new(&source);
    let index = syntax_tree(text, &source, &mut report).map(|(text, ast)| resolve::index(&ast, text, &mut report));
    Index { diagnostics: report.finish(), ..index.unwrap_or_default() }
}
