//! A document open in the editor.

use super::place;
use lsp_server::ErrorCode;
use metatf_parser::index::Index;
use metatf_parser::{Columns, Diagnostic, Lines, Rule};
use serde_json::Value;
use std::cell::OnceCell;

/// The error code and message returned for a request.
pub(super) type Refusal = (ErrorCode, String);

/// A document and the results of its analysis.
pub(super) struct Document {
    pub(super) text: String,
    /// The editor's version number of this text.
    pub(super) version: Value,
    columns: Columns,
    /// The index. It is computed on first use, because several changes may arrive together.
    index: OnceCell<Index>,
    suggestions: OnceCell<Vec<Diagnostic>>,
    /// The index of an earlier text.
    before: Option<Index>,
    /// Whether the editor has received the diagnostics of this text.
    pub(super) published: bool,
}

impl Document {
    pub(super) fn new(text: String, version: Value, columns: Columns) -> Self {
        Self {
            text,
            version,
            columns,
            index: OnceCell::new(),
            suggestions: OnceCell::new(),
            before: None,
            published: false,
        }
    }

    /// Returns the index. If the text is too long, the index is empty except for a diagnostic.
    pub(super) fn index(&self) -> &Index {
        self.index.get_or_init(|| metatf_parser::index(self.text.as_bytes()))
    }

    /// Returns errors, warnings, and the suggestions of the enabled lint rules that need no trace.
    pub(super) fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        let lint = || metatf_parser::lint(self.text.as_bytes(), self.index(), Rule::is_on);
        self.index().diagnostics.iter().chain(self.suggestions.get_or_init(lint))
    }

    /// Returns the index if it has been computed. Otherwise, returns the index of an earlier text if there is one, or
    /// else computes the index. Use this for responses that are needed before the next key press and depend only on
    /// names.
    pub(super) fn recent_index(&self) -> &Index {
        self.index.get().or(self.before.as_ref()).unwrap_or_else(|| self.index())
    }

    pub(super) fn lines(&self) -> Lines<'_> {
        Lines::new(&self.text, self.columns)
    }

    /// Applies the changes of a message in order. A change without a range replaces the entire text.
    pub(super) fn change(&mut self, changes: &[Value], version: Value) {
        for change in changes {
            let Some(new) = change.get("text").and_then(Value::as_str) else { continue };
            let bytes = change.get("range").and_then(|range| place::bytes(&self.lines(), range));
            match bytes {
                Some(bytes) => self.text.replace_range(bytes, new),
                None => new.clone_into(&mut self.text),
            }
        }
        self.version = version;
        self.suggestions.take();
        self.before = self.index.take().or(self.before.take());
        self.published = false;
    }
}
