//! How prose reads: words and turns of phrase that are not used, and how long a line may be.
//!
//! Checked are the lines of Markdown outside of code, and the comments of Rust sources. Inline code, the targets of
//! links, HTML comments and what programs write between `<!-- begin: .. -->` and `<!-- end .. -->` are left out.

use crate::root;
use std::path::{Path, PathBuf};

/// The files whose prose is checked, by path from the root: pages, and the comments of Rust sources. `*` stands for any part of
/// a name, `**` for any folders.
pub const SOURCES: &[&str] = &["*.md", "docs/**/*.md", "**/*.rs"];

/// The most characters of a line of prose. Tables are as long as they need.
pub const LONGEST: usize = 240;

/// Words that are not used, each with what to use instead. They match whole words, whatever their case.
pub const WORDS: &[(&str, &str)] = &[
    // Words of earlier versions for which the field has a term.
    ("crew", "worker pool"),
    ("foretell", "predict"),
    ("foretells", "predicts"),
    ("foretold", "predicted"),
    ("gathered", "streamed (values), collected"),
    ("grade", "tier"),
    ("grades", "tiers"),
    ("hindsight", "live-set carry-over"),
    ("lane", "cursor"),
    ("lanes", "cursors"),
    ("lends", "borrows, gives"),
    ("lent", "borrowed, in place"),
    ("packers", "pipeline"),
    ("phrases", "record dictionary (the filter), entries"),
    ("relay", "pipeline"),
    ("shaped", "planned"),
    ("spares", "buffer pool"),
    ("tails", "split suffix (the filter), suffixes"),
    ("tape", "owned record"),
    ("tapes", "owned records"),
    ("told", "stateful (a tier), reported, given"),
    ("without ado", "plain, on the fast path"),
    // Words that a reader has to read twice.
    ("anew", "again"),
    ("but for", "except for, except"),
    ("for nothing", "as a trial, in vain"),
    ("hitherto", "until now"),
    ("in its turn", "too"),
    ("in no way", "not"),
    ("in so many words", "explicitly"),
    ("in the place of", "instead of"),
    ("likewise", "too, also"),
    ("no heap trace", "not a heap trace"),
    ("thereof", "of it"),
    ("thereto", "to it"),
    ("wherefore", "why"),
    ("wherein", "in which"),
    ("whither", "to where"),
    ("whence", "from where"),
    ("whereby", "by which"),
    ("whoever", "anyone who"),
];

/// Turns of phrase that are not used, each with what to use instead. They match as [`WORDS`] do; "there is no" is not one of them.
pub const PHRASES: &[(&str, &str)] = &[
    ("are no", "are not, X has no, no X .."),
    ("is no", "is not a, X has no, no X .."),
    ("so many", "the number itself, as many as, that number of"),
    ("that one's", "its, or its name"),
];

/// What may follow a phrase of [`PHRASES`]: "is no longer" is not one of them.
const GOES_ON: &str = "longer";
/// What may come before one: "there is no x".
const GOES_BEFORE: &str = "there";

/// Words that are used all the same in some files, where they mean something else.
pub const ALLOWED: &[(&str, &str)] = &[
    // Of a vector, whose parts everybody calls so.
    ("lane", "metatf-tools/src/recode/*.rs"),
    ("lanes", "metatf-tools/src/recode/*.rs"),
];

/// A line of prose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number in the file, from 1.
    pub number: usize,
    /// Its text, without inline code and the targets of links.
    pub text: String,
    /// Whether it is a row of a table.
    pub table: bool,
}

/// The files that [`SOURCES`] names, by path from the root. Build output and the copied vectors are left out.
///
/// # Errors
/// A folder that cannot be read.
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

/// Whether a path is one that the pattern stands for.
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

/// The prose of a file: of its comments if it is a Rust source, else of its Markdown.
#[must_use]
pub fn prose(path: &Path, text: &str) -> Vec<Line> {
    if path.extension().is_some_and(|extension| extension == "rs") {
        let comments = text.lines().map(|line| comment(line).unwrap_or_default());
        markdown(comments)
    } else {
        markdown(text.lines())
    }
}

/// What a line of Rust has as a comment, if it has nothing else.
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

/// A line without inline code and the targets of links.
fn plain(line: &str) -> String {
    let without_code: String = line.split('`').step_by(2).collect();
    let mut parts = without_code.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    text
}

/// Whether a file may use a word.
#[must_use]
pub fn is_allowed(word: &str, path: &Path) -> bool {
    ALLOWED.iter().any(|(allowed, pattern)| *allowed == word && is_match(pattern, path))
}

/// The words of [`WORDS`] that stand in a line, each with what to use instead.
pub fn unused_words(text: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let line = whole_words(text);
    WORDS.iter().copied().filter(move |(word, _)| line.contains(&whole_words(word)))
}

/// The turns of phrase of [`PHRASES`] that stand in a line, each with what to use instead.
pub fn unused_phrases(text: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let parts: Vec<String> = text.split(['.', ',', ';', ':', '|']).map(whole_words).collect();
    let stands = move |phrase: &str| {
        let mut around = parts.iter().flat_map(|part| part.match_indices(phrase).map(move |(at, _)| part.split_at(at)));
        around.any(|(before, rest)| {
            let next = rest.get(phrase.len()..).unwrap_or_default().split(' ').next();
            next != Some(GOES_ON) && before.rsplit(' ').next() != Some(GOES_BEFORE)
        })
    };
    PHRASES.iter().copied().filter(move |(phrase, _)| stands(&whole_words(phrase)))
}

/// The words of a text in lower case, with a space before and after each.
fn whole_words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    format!(" {} ", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_paths() {
        assert!(is_match("*.md", Path::new("README.md")));
        assert!(!is_match("*.md", Path::new("docs/errors.md")));
        assert!(is_match("docs/**/*.md", Path::new("docs/errors.md")));
        assert!(is_match("docs/**/*.md", Path::new("docs/internals/planner.md")));
        assert!(!is_match("metatf/src/**/*.rs", Path::new("metatf/tests/a.rs")));
    }

    #[test]
    fn code_and_targets_are_no_prose() {
        let page = "a `tape`\n```\ncrew\n```\n<!-- begin: x -->\nrelay\n<!-- end -->\n| b |\n[c](crew.md) d\n";
        let line = |number, text: &str, table| Line { number, text: text.to_owned(), table };
        let lines = prose(Path::new("page.md"), page);
        assert_eq!(lines, [line(1, "a ", false), line(8, "| b |", true), line(9, "[c d", false)]);
    }

    #[test]
    fn comments_of_rust_are_prose() {
        let source = "//! Head.\nfn f() {} // no\n    /// Doc.\n";
        let lines = prose(Path::new("a.rs"), source);
        let lines: Vec<(usize, &str)> = lines.iter().map(|line| (line.number, line.text.as_str())).collect();
        assert_eq!(lines, [(1, "Head."), (3, "Doc.")]);
    }

    #[test]
    fn words_are_found_whole() {
        let found = |text| unused_words(text).map(|(word, _)| word).collect::<Vec<_>>();
        assert_eq!(found("Likewise the crew's, in no way."), ["crew", "in no way", "likewise"]);
        assert_eq!(found("details, untold, escrew"), [""; 0]);
    }

    #[test]
    fn phrases_are_found() {
        let found = |text| unused_phrases(text).map(|(phrase, _)| phrase).collect::<Vec<_>>();
        assert_eq!(found("There is no x; that is no x; of so many that one's."), ["is no", "so many", "that one's"]);
        assert_eq!(found("It is no longer, and they are no"), ["are no"]);
        assert_eq!(found("There is nothing; that one is; no more, no less"), [""; 0]);
    }
}
