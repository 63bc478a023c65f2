//! The tree-sitter grammar of `editors/tree-sitter-metatf`, compiled as editors compile it. The tests hold it to the parser of
//! `metatf-parser`, and the TextMate grammar of `editors/vscode` to it.

use tree_sitter::ffi::TSLanguage;
use tree_sitter::{Language, Parser, Tree};

unsafe extern "C" {
    fn tree_sitter_metatf() -> *const TSLanguage;
}

/// Returns the grammar.
#[must_use]
pub fn language() -> Language {
    // SAFETY: the function of the generated parser returns its static table, which build.rs has compiled for this very crate; the
    // version of its layout is checked by `Parser::set_language`.
    unsafe { Language::from_raw(tree_sitter_metatf()) }
}

/// Parses a text, which may have mistakes. `None` if the crate `tree-sitter` does not know the version of the checked-in parser.
#[must_use]
pub fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&language()).ok()?;
    parser.parse(text, None)
}
