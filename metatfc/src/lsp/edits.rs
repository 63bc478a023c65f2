//! LSP responses that contain or offer text edits.

use super::answers::diagnostic;
use super::document::{Document, Refusal};
use super::place::{edit, range};
use lsp_server::ErrorCode;
use metatf_parser::{CompletionKind, Lines, Suggestion};
use serde_json::{Map, Value, json};
use std::ops::Range;

/// Returns the edits of a single document.
fn of_document(lines: &Lines<'_>, uri: &str, edits: &[Suggestion]) -> Value {
    let edits: Vec<Value> = edits.iter().map(|e| edit(lines, &e.span, &e.text)).collect();
    let changes: Map<String, Value> = Map::from_iter([(uri.to_owned(), edits.into())]);
    json!({ "changes": changes })
}

/// Returns the range of the name that would be renamed, or `null`.
pub(super) fn prepare_rename(document: &Document, offset: usize) -> Value {
    let (index, lines) = (document.index(), document.lines());
    let found = index.use_at(offset).filter(|u| index.symbol(u.symbol).is_some_and(|symbol| !symbol.predefined));
    found.map_or(
        Value::Null,
        |found| json!({ "range": range(&lines, &found.span), "placeholder": document.text.get(found.span.clone()) }),
    )
}

pub(super) fn rename(document: &Document, uri: &str, offset: usize, name: &str) -> Result<Value, Refusal> {
    let edits = metatf_parser::rename(document.text.as_bytes(), document.index(), offset, name);
    let edits = edits.map_err(|message| (ErrorCode::RequestFailed, message))?;
    Ok(of_document(&document.lines(), uri, &edits))
}

pub(super) fn completion(document: &Document, offset: usize) -> Value {
    let lines = document.lines();
    let found = metatf_parser::complete(document.text.as_bytes(), document.recent_index(), offset);
    // Sort by position in the list, which contains the most likely fields first.
    let items = found.into_iter().enumerate().map(|(at, completion)| {
        let kind = match completion.kind {
            CompletionKind::Keyword => 14,
            CompletionKind::Property => 10,
            CompletionKind::Field => 5,
            CompletionKind::Record => 22,
            CompletionKind::Value => 12,
        };
        json!({
            "label": completion.label,
            "kind": kind,
            "documentation": { "kind": "markdown", "value": completion.doc },
            "sortText": format!("{at:04}"),
            "filterText": completion.text,
            "textEdit": edit(&lines, &completion.replace, &completion.text),
        })
    });
    json!({ "isIncomplete": false, "items": items.collect::<Vec<_>>() })
}

/// Returns the edit that formats the text. The edit covers the first to the last changed line. A text with syntax
/// errors is left unchanged.
pub(super) fn formatting(document: &Document) -> Value {
    let (old, lines) = (document.text.as_str(), document.lines());
    let Ok(new) = metatf_parser::format("", old.as_bytes()) else { return json!([]) };
    if new == old {
        return json!([]);
    }
    let same = |(a, b): &(&str, &str)| a == b;
    let before: usize =
        old.split_inclusive('\n').zip(new.split_inclusive('\n')).take_while(same).map(|(line, _)| line.len()).sum();
    let (old_rest, new_rest) = (old.get(before..).unwrap_or_default(), new.get(before..).unwrap_or_default());
    let from_end = old_rest.split_inclusive('\n').rev().zip(new_rest.split_inclusive('\n').rev());
    let after: usize = from_end.take_while(same).map(|(line, _)| line.len()).sum();
    let text = new_rest.get(..new_rest.len() - after).unwrap_or_default();
    json!([edit(&lines, &(before..old.len() - after), text)])
}

/// Returns the edits suggested by diagnostics in a range.
pub(super) fn actions(document: &Document, uri: &str, within: Option<Range<usize>>) -> Value {
    let lines = document.lines();
    let touches = |place: &Range<usize>| {
        within.as_ref().is_none_or(|within| place.start <= within.end && within.start <= place.end)
    };
    let action = |title: &str, diagnostic: Value, suggestion: &Suggestion| {
        json!({
            "title": title,
            "kind": "quickfix",
            "diagnostics": [diagnostic],
            "isPreferred": suggestion.certain,
            "edit": of_document(&lines, uri, std::slice::from_ref(suggestion)),
        })
    };
    let found = document.diagnostics().filter(|found| touches(&found.primary.span));
    let actions = found.filter_map(|found| {
        let title = found.help.as_ref().unwrap_or(&found.message);
        Some(action(title, diagnostic(&lines, uri, found), found.suggestion.as_ref()?))
    });
    actions.collect()
}
