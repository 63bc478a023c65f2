//! A text that is open in the editor.

use super::place;
use lsp_server::ErrorCode;
use metatf_parser::index::Index;
use metatf_parser::{Columns, Finding, Lines, Rule};
use serde_json::Value;
use std::cell::OnceCell;

/// What a request about a text gets in place of a result: code and message.
pub(super) type Refusal = (ErrorCode, String);

/// A text, and what is known of it.
pub(super) struct Document {
    pub(super) text: String,
    /// The editor's number of this text.
    pub(super) version: Value,
    columns: Columns,
    /// Made when it is first asked for, as several changes may come at once.
    index: OnceCell<Index>,
    findings: OnceCell<Vec<Finding>>,
    /// That of an earlier text.
    before: Option<Index>,
    /// Whether the editor has the diagnostics of this text.
    pub(super) published: bool,
}

impl Document {
    pub(super) fn new(text: String, version: Value, columns: Columns) -> Self {
        Self {
            text,
            version,
            columns,
            index: OnceCell::new(),
            findings: OnceCell::new(),
            before: None,
            published: false,
        }
    }

    /// Returns its index. A text that is too long has an empty one, with a diagnostic that says so.
    pub(super) fn index(&self) -> &Index {
        self.index.get_or_init(|| metatf_parser::index(self.text.as_bytes()))
    }

    /// Returns what could be better in it, by the rules that are on and need no trace.
    pub(super) fn findings(&self) -> &[Finding] {
        self.findings.get_or_init(|| metatf_parser::lint(self.text.as_bytes(), self.index(), Rule::is_on))
    }

    /// Returns its index, or that of an earlier text: for what has to be there with the next key press, and goes by names.
    pub(super) fn recent_index(&self) -> &Index {
        self.index.get().or(self.before.as_ref()).unwrap_or_else(|| self.index())
    }

    pub(super) fn lines(&self) -> Lines<'_> {
        Lines::new(&self.text, self.columns)
    }

    /// Applies the changes of a message, one after the other. A change without a range is the whole text.
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
        self.findings.take();
        self.before = self.index.take().or(self.before.take());
        self.published = false;
    }
}
