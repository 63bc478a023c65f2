//! Responses to requests that do not change the text.

use super::document::Document;
use super::place::{position, range};
use super::widths::Widths;
use metatf_parser::index::{Declared, Role, SymbolKind};
use metatf_parser::{Code, Diagnostic, Label, Lines, Rule, Severity, TokenKind};
use serde_json::{Value, json};
use std::ops::Range;

/// The token type names of the protocol, in the order of [`token_type`].
pub(super) const TOKEN_TYPES: [&str; 10] =
    ["comment", "string", "number", "keyword", "namespace", "struct", "variable", "property", "decorator", "operator"];

/// Returns an index in [`TOKEN_TYPES`].
fn token_type(kind: TokenKind) -> u32 {
    match kind {
        TokenKind::Comment => 0,
        TokenKind::Text => 1,
        TokenKind::Number => 2,
        TokenKind::Keyword => 3,
        TokenKind::Section => 4,
        TokenKind::Record => 5,
        TokenKind::Field => 6,
        TokenKind::Property => 7,
        TokenKind::Annotation => 8,
        TokenKind::Operator => 9,
    }
}

/// Returns errors, warnings and suggestions.
pub(super) fn diagnostics(document: &Document, uri: &str) -> Vec<Value> {
    let lines = document.lines();
    document.diagnostics().map(|found| diagnostic(&lines, uri, found)).collect()
}

/// Converts a diagnostic. The help becomes the last line of the message, because editors do not show it otherwise.
/// Suggestions become hints, which editors show unobtrusively, and code without an effect is faded.
pub(super) fn diagnostic(lines: &Lines<'_>, uri: &str, found: &Diagnostic) -> Value {
    let mut message = found.message.clone();
    for more in [&found.primary.text, found.help.as_ref().unwrap_or(&String::new())] {
        if !more.is_empty() {
            message += "\n";
            message += more;
        }
    }
    let unnecessary = matches!(found.code, Code::Lint(Rule::OverriddenProperty | Rule::EmptySection));
    json!({
        "range": range(lines, &found.primary.span),
        "severity": match found.severity { Severity::Error => 1, Severity::Warning => 2, Severity::Suggestion => 4 },
        "code": found.code.as_str(),
        "source": "metatfc",
        "message": message,
        "tags": if unnecessary { vec![1] } else { Vec::new() },
        "relatedInformation": related(lines, uri, &found.secondary),
    })
}

fn related(lines: &Lines<'_>, uri: &str, labels: &[Label]) -> Vec<Value> {
    let of = |label: &Label| json!({ "location": { "uri": uri, "range": range(lines, &label.span) }, "message": label.text });
    labels.iter().map(of).collect()
}

pub(super) fn hover(document: &Document, offset: usize, widths: Option<&Widths>) -> Value {
    let found = metatf_parser::hover(document.text.as_bytes(), document.index(), offset);
    let Some(found) = found else { return Value::Null };
    let mut markdown = found.markdown;
    if let Some(lines) = widths.map(|widths| widths.lines(&found.fields)).filter(|lines| !lines.is_empty()) {
        markdown = format!("{markdown}\n\n{lines}");
    }
    json!({
        "contents": { "kind": "markdown", "value": markdown },
        "range": range(&document.lines(), &found.span),
    })
}

fn location(lines: &Lines<'_>, uri: &str, bytes: &Range<usize>) -> Value {
    json!({ "uri": uri, "range": range(lines, bytes) })
}

pub(super) fn definition(document: &Document, uri: &str, offset: usize) -> Value {
    let (index, lines) = (document.index(), document.lines());
    let symbol = index.use_at(offset).and_then(|found| index.symbol(found.symbol));
    let places = symbol.map(|symbol| symbol.definitions.as_slice()).unwrap_or_default();
    places.iter().map(|place| location(&lines, uri, place)).collect()
}

pub(super) fn references(document: &Document, uri: &str, offset: usize, with_definitions: bool) -> Value {
    let (index, lines) = (document.index(), document.lines());
    let Some(found) = index.use_at(offset) else { return json!([]) };
    let uses = index.references(found.symbol).filter(|u| with_definitions || u.role != Role::Definition);
    uses.map(|u| location(&lines, uri, &u.span)).collect()
}

pub(super) fn highlights(document: &Document, offset: usize) -> Value {
    let (index, lines) = (document.index(), document.lines());
    let Some(found) = index.use_at(offset) else { return json!([]) };
    // In the protocol, 3 is a write and 2 is a read.
    let kind = |role: Role| if role == Role::Setting { 3 } else { 2 };
    let uses = index.references(found.symbol);
    uses.map(|u| json!({ "range": range(&lines, &u.span), "kind": kind(u.role) })).collect()
}

pub(super) fn outline(document: &Document) -> Value {
    let lines = document.lines();
    document.index().outline.iter().map(|declared| symbol(&lines, declared)).collect()
}

/// Converts a symbol. Sections contain records, and records contain fields, so the depth is three.
fn symbol(lines: &Lines<'_>, declared: &Declared) -> Value {
    let kind = match declared.kind {
        SymbolKind::Section | SymbolKind::SectionNumber => 3, // namespace
        SymbolKind::Record => 23,                             // struct
        SymbolKind::Field => 8,                               // field
    };
    json!({
        "name": declared.name,
        "detail": declared.detail,
        "kind": kind,
        "range": range(lines, &declared.extent),
        "selectionRange": range(lines, &declared.span),
        "children": declared.children.iter().map(|child| symbol(lines, child)).collect::<Vec<_>>(),
    })
}

/// Returns the sections, records and comments that have more than one line.
pub(super) fn folds(document: &Document) -> Value {
    let lines = document.lines();
    let line = |offset: usize| lines.position(offset).0;
    let mut folds = Vec::new();
    let mut blocks: Vec<&Declared> = document.index().outline.iter().collect();
    while let Some(block) = blocks.pop() {
        let (first, last) = (line(block.extent.start), line(block.extent.end));
        // The line with the closing brace remains visible.
        let is_closed = document.text.get(block.extent.clone()).is_some_and(|text| text.ends_with('}'));
        let last = if is_closed { last.saturating_sub(1) } else { last };
        folds.push((first, last, "region"));
        blocks.extend(&block.children);
    }
    let tokens = metatf_parser::tokens(document.text.as_bytes(), document.index());
    let comments = tokens.into_iter().filter(|(_, kind)| *kind == TokenKind::Comment);
    let mut run: Option<(u32, u32)> = None;
    for (bytes, _) in comments {
        let before = document.text.get(..bytes.start).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
        if !before.trim().is_empty() {
            continue;
        }
        let (first, last) = (line(bytes.start), line(bytes.end));
        run = match run {
            Some((start, end)) if first <= end + 1 => Some((start, last)),
            _ => {
                folds.extend(run.map(|(start, end)| (start, end, "comment")));
                Some((first, last))
            }
        };
    }
    folds.extend(run.map(|(start, end)| (start, end, "comment")));
    folds.retain(|(first, last, _)| first < last);
    folds.sort_unstable();
    let fold = |(first, last, kind)| json!({ "startLine": first, "endLine": last, "kind": kind });
    folds.into_iter().map(fold).collect()
}

/// Returns five numbers for each token: the line and column relative to the previous token, the length, the type, and
/// no modifiers. A token must be on a single line, so a multi-line comment becomes a token for each line.
pub(super) fn semantic_tokens(document: &Document) -> Value {
    let lines = document.lines();
    let mut data: Vec<u32> = Vec::new();
    let mut last = (0, 0);
    for (bytes, kind) in metatf_parser::tokens(document.text.as_bytes(), document.index()) {
        for piece in on_one_line(&document.text, bytes) {
            let (line, column) = lines.position(piece.start);
            let length = lines.position(piece.end).1.saturating_sub(column);
            let from = if line == last.0 { last.1 } else { 0 };
            data.extend([line.saturating_sub(last.0), column.saturating_sub(from), length, token_type(kind), 0]);
            last = (line, column);
        }
    }
    json!({ "data": data })
}

fn on_one_line(text: &str, bytes: Range<usize>) -> Vec<Range<usize>> {
    let start = bytes.start;
    let pieces = text.get(bytes).unwrap_or_default().split(['\n', '\r']);
    let mut at = start;
    let ranges = pieces.map(|piece| {
        let range = at..at + piece.len();
        at = range.end + 1;
        range
    });
    ranges.filter(|range| !range.is_empty()).collect()
}

pub(super) fn hints(document: &Document, within: Option<Range<usize>>) -> Value {
    let lines = document.lines();
    let hints = metatf_parser::hints(&document.text, document.index()).into_iter();
    hints
        .filter(|hint| within.as_ref().is_none_or(|within| (within.start..=within.end).contains(&hint.offset)))
        .map(|hint| {
            json!({ "position": position(&lines, hint.offset), "label": hint.label, "kind": 1, "tooltip": hint.tip })
        })
        .collect()
}
