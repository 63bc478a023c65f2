//! Runs the stages that convert a text to a schema or an index.

use crate::ast::Ast;
use crate::codes::Severity;
use crate::diagnostic::{Diagnostic, Finished, Reporter};
#[cfg(feature = "index")]
use crate::index::Index;
#[cfg(feature = "index")]
use crate::lexer::Lexed;
use crate::schema::Dtd;
use crate::span::Source;
use crate::{lexer, line, repair, resolve, syntax, text};

/// The result of parsing a DTD.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The schema; `None` if there are errors.
    pub dtd: Option<Dtd>,
    /// Errors and warnings, in text order.
    pub diagnostics: Vec<Diagnostic>,
    /// The caller's name for the text, such as a file name.
    pub name: String,
}

impl Parsed {
    /// Returns the number of errors.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|d| d.severity == Severity::Error).count()
    }

    /// Returns the number of warnings.
    #[must_use]
    pub fn warnings(&self) -> usize {
        self.diagnostics.iter().filter(|d| d.severity == Severity::Warning).count()
    }
}

/// Parses and checks a DTD. `name` is a file name for the caller's messages. Never panics, and takes time and memory
/// proportional to the length of the text.
#[must_use]
pub fn parse(name: &str, text: &[u8]) -> Parsed {
    let (dtd, finished) = check(text);
    let diagnostics = repair::improve(text, finished, &check);
    Parsed { dtd, diagnostics, name: name.to_owned() }
}

/// Works like [`parse`] without repairs.
pub(crate) fn parse_once(text: &[u8]) -> Parsed {
    let (dtd, finished) = check(text);
    Parsed { dtd, diagnostics: finished.diagnostics, name: String::new() }
}

fn check(text: &[u8]) -> (Option<Dtd>, Finished) {
    let source = Source::new(text);
    let mut report = Reporter::new(&source);
    let dtd = syntax_tree(text, &source, &mut report).and_then(|(text, ast)| resolve::resolve(&ast, text, &mut report));
    let failed = report.failed();
    (dtd.filter(|_| !failed), line::finish(report))
}

fn syntax_tree<'t>(text: &'t [u8], source: &Source, report: &mut Reporter) -> Option<(&'t str, Ast<'t>)> {
    let text = text::decode(text, report)?;
    text::misleading(text, report);
    let lexed = lexer::lex(text, source.start, report)?;
    let ast = syntax::parse(text, &lexed, report);
    Some((text, ast))
}

/// Lexes text without reporting mistakes, because the caller's index already contains them.
#[cfg(feature = "index")]
pub(crate) fn lex(text: &[u8]) -> Option<(&str, Lexed)> {
    let source = Source::new(text);
    let mut report = Reporter::new(&source);
    let text = text::decode(text, &mut report)?;
    Some((text, lexer::lex(text, source.start, &mut report)?))
}

/// Resolves the names in a text, even if the text contains mistakes; see [`Index`]. Never panics, and takes time and
/// memory proportional to the length of the text.
#[cfg(feature = "index")]
#[must_use]
pub fn index(text: &[u8]) -> Index {
    let source = Source::new(text);
    let mut report = Reporter::new(&source);
    let index = syntax_tree(text, &source, &mut report).map(|(text, ast)| resolve::index(&ast, text, &mut report));
    let diagnostics = repair::improve(text, line::finish(report), &check);
    Index { diagnostics, ..index.unwrap_or_default() }
}
