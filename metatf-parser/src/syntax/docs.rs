//! Doc comments, which are comments directly above the record, section or field property that they document (spec 2).

use crate::lexer::{Comment, Lexed};
use crate::span::Source;

/// Returns the doc of the item that starts with token `index`.
pub(super) fn doc_above(text: &str, source: &Source, lexed: &Lexed, index: usize) -> Option<String> {
    let token = lexed.tokens.get(index)?;
    let mut block = lexed.comments_before(index);
    if block.is_empty() {
        return None;
    }
    let mut line = source.line_of(token.span.start());
    let first_kept = block.iter().rposition(|comment| {
        let near = comment.starts_line && source.line_of(comment.span.end()) + 1 >= line;
        line = source.line_of(comment.span.start());
        !near
    });
    block = block.get(first_kept.map_or(0, |i| i + 1)..)?;
    join(text, block)
}

/// Checks whether the comments above the first token are a single block, which documents the DTD and not a property.
pub(super) fn is_head(source: &Source, lexed: &Lexed) -> bool {
    let all = lexed.comments_before(0);
    !all.is_empty() && head(source, all).len() == all.len()
}

/// Returns the first block of comments.
fn head<'c>(source: &Source, all: &'c [Comment]) -> &'c [Comment] {
    let line = |comment: &Comment| (source.line_of(comment.span.start()), source.line_of(comment.span.end()));
    all.chunk_by(|last, next| line(next).0 <= line(last).1 + 1).next().unwrap_or_default()
}

/// Returns the comment at the head of the DTD. This is the first block of comments, unless the block is directly above
/// a section, a record or a type, which it then documents.
pub(super) fn head_doc(text: &str, source: &Source, lexed: &Lexed, item_has_doc: bool) -> Option<String> {
    let head = head(source, lexed.comments_before(0));
    let last = head.last()?;
    let touches = lexed
        .tokens
        .first()
        .is_some_and(|token| source.line_of(last.span.end()) + 1 >= source.line_of(token.span.start()));
    if touches && item_has_doc { None } else { join(text, head) }
}

fn join(text: &str, comments: &[Comment]) -> Option<String> {
    let lines: Vec<String> = comments.iter().filter_map(|c| text.get(c.span.range())).flat_map(comment_lines).collect();
    let doc = lines.join("\n").trim_matches('\n').trim_end().to_owned();
    (!doc.is_empty()).then_some(doc)
}

/// Returns a comment's text without `//`, `/*`, `*/` and the leading `*` of inner lines.
fn comment_lines(comment: &str) -> Vec<String> {
    if let Some(line) = comment.strip_prefix("//") {
        let line = line.trim_start_matches(['/', '!']);
        return vec![line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()];
    }
    let inner = comment.strip_prefix("/*").unwrap_or(comment);
    let inner = inner.strip_suffix("*/").unwrap_or(inner).trim_start_matches('*');
    inner
        .lines()
        .map(|line| {
            let line = line.trim();
            line.strip_prefix('*').map_or(line, |l| l.strip_prefix(' ').unwrap_or(l)).to_owned()
        })
        .collect()
}
