//! The tree-sitter grammar in `dev/editors/tree-sitter-metatf`, compiled as in editors. The tests compare it with the
//! parser of `metatf-parser` and with the TextMate grammar of `dev/editors/vscode`.

use tree_sitter::ffi::TSLanguage;
use tree_sitter::{Language, Parser, Tree};

unsafe extern "C" {
    fn tree_sitter_metatf() -> *const TSLanguage;
}

/// Returns the grammar.
#[must_use]
pub fn language() -> Language {
    // SAFETY: the function of the generated parser returns its static table, which build.rs has compiled for this
    // crate; `Parser::set_language` checks the layout version.
    unsafe { Language::from_raw(tree_sitter_metatf()) }
}

/// Parses a text, which may contain errors. Returns `None` if the crate `tree-sitter` does not support the version of
/// the checked-in parser.
#[must_use]
pub fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&language()).ok()?;
    parser.parse(text, None)
}
