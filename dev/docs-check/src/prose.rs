//! Lines of prose: Markdown outside code blocks, and comments in Rust sources.
//!
//! Inline code, link targets, HTML comments and generated text between `<!-- begin: .. -->` and `<!-- end .. -->` are
//! omitted.

use crate::root;
use std::path::{Path, PathBuf};

/// Patterns of the files to check, relative to the root. `*` matches any part of a name, `**` any directories.
pub const SOURCES: &[&str] = &["*.md", "docs/**/*.md", "dev/internals/*.md", "**/*.rs"];

/// The maximum number of characters in a line of prose. Table rows may be longer.
pub const LONGEST: usize = 240;

/// A line of prose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line number, from 1.
    pub number: usize,
    /// The text without inline code and link targets.
    pub text: String,
    /// Whether the line is a table row.
    pub table: bool,
}

/// Returns the files that match a pattern, relative to the root, except build output and the copied vectors.
///
/// # Errors
/// Returns an error if a directory cannot be read.
pub fn files(patterns: &[&str]) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() && !skipped(&path) {
                folders.push(path);
            } else if kind.is_file() && patterns.iter().any(|pattern| is_match(pattern, &path)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn skipped(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name == "target" || name.starts_with('.') || folder == Path::new("tests/vectors")
}

/// Returns whether a path matches a pattern.
#[must_use]
pub fn is_match(pattern: &str, path: &Path) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path = path.to_string_lossy();
    let path: Vec<&str> = path.split('/').collect();
    parts_match(&pattern, &path)
}

fn parts_match(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => (0..path.len()).any(|folders| parts_match(rest, &path[folders..])),
        (Some((first, rest)), Some((name, more))) => name_matches(first, name) && parts_match(rest, more),
        _ => false,
    }
}

fn name_matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail),
    }
}

/// Returns the prose of a file, which is the comments of a Rust source or the text of a Markdown file.
#[must_use]
pub fn prose(path: &Path, text: &str) -> Vec<Line> {
    if path.extension().is_some_and(|extension| extension == "rs") {
        let comments = text.lines().map(|line| comment(line).unwrap_or_default());
        markdown(comments)
    } else {
        markdown(text.lines())
    }
}

/// Returns the comment on a line of Rust that contains no code.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    let text = text.strip_prefix(['/', '!']).unwrap_or(text);
    Some(text.strip_prefix(' ').unwrap_or(text))
}

fn markdown<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<Line> {
    let (mut fenced, mut generated) = (false, false);
    let mut found = Vec::new();
    for (at, line) in lines.enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") {
            fenced = !fenced;
        } else if start.starts_with("<!--") {
            generated = start.starts_with("<!-- begin: ") || generated && !start.starts_with("<!-- end");
        } else if !fenced && !generated && !start.is_empty() && !line.starts_with("    ") {
            found.push(Line { number: at + 1, text: plain(line), table: start.starts_with('|') });
        }
    }
    found
}

/// Returns a line without inline code and link targets.
fn plain(line: &str) -> String {
    let without_code: String = line.split('`').step_by(2).collect();
    let mut parts = without_code.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_paths() {
        assert!(is_match("*.md", Path::new("README.md")));
        assert!(!is_match("*.md", Path::new("docs/errors.md")));
        assert!(is_match("docs/**/*.md", Path::new("docs/errors.md")));
        assert!(is_match("docs/**/*.md", Path::new("docs/cookbook/README.md")));
        assert!(!is_match("metatf/src/**/*.rs", Path::new("metatf/tests/a.rs")));
    }

    #[test]
    fn code_and_link_targets_are_not_prose() {
        let page = "a `tape`\n```\ncrew\n```\n<!-- begin: x -->\nrelay\n<!-- end -->\n| b |\n[c](crew.md) d\n";
        let line = |number, text: &str, table| Line { number, text: text.to_owned(), table };
        let lines = prose(Path::new("page.md"), page);
        assert_eq!(lines, [line(1, "a ", false), line(8, "| b |", true), line(9, "[c d", false)]);
    }

    #[test]
    fn rust_comments_are_prose() {
        let source = "//! Head.\nfn f() {} // no\n    /// Doc.\n";
        let lines = prose(Path::new("a.rs"), source);
        let lines: Vec<(usize, &str)> = lines.iter().map(|line| (line.number, line.text.as_str())).collect();
        assert_eq!(lines, [(1, "Head."), (3, "Doc.")]);
    }
}
