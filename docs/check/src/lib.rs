//! Holds the README and the book to the code.
//!
//! - A fenced block after `<!-- file: PATH -->` or `<!-- file: PATH#REGION -->` is the text of that file, or of the
//!   part of it between lines that end in `region: REGION` and `endregion`.
//! - In a `console` block, lines that begin with `$ ` are run, in the order of the page; the lines below each are what
//!   it prints. A line `...` stands for any number of lines.
//!
//! `METATF_BLESS=1` rewrites what differs.

pub mod prose;

use std::path::{Path, PathBuf};

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether what differs is to be rewritten.
#[must_use]
pub fn bless() -> bool {
    std::env::var_os("METATF_BLESS").is_some_and(|v| v == "1")
}

/// The pages that are checked: all Markdown at the root, in `docs/` and in `docs/internals/`, by path from the root.
///
/// # Errors
/// A folder that cannot be read.
pub fn pages() -> std::io::Result<Vec<PathBuf>> {
    let root = root();
    let mut pages = Vec::new();
    for folder in ["", "docs", "docs/internals"] {
        for entry in std::fs::read_dir(root.join(folder))? {
            let path = Path::new(folder).join(entry?.file_name());
            if path.extension().is_some_and(|e| e == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// A fenced block of a page.
#[derive(Clone, Debug)]
pub struct Block {
    /// Number of the line with the opening fence, from 1.
    pub line: usize,
    /// The words after the opening fence.
    pub info: String,
    /// The comment on the line above the fence, without `<!--` and `-->`.
    pub above: Option<String>,
    /// The lines inside.
    pub lines: Vec<String>,
}

/// The fenced blocks of a page, in order. Only fences at the start of a line count.
#[must_use]
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut above = "";
    while let Some((at, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            above = line;
            continue;
        };
        let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```"));
        blocks.push(Block {
            line: at + 1,
            info: info.trim().to_owned(),
            above: above.strip_prefix("<!-- ").and_then(|a| a.strip_suffix(" -->")).map(str::to_owned),
            lines: inside.map(str::to_owned).collect(),
        });
        above = "";
    }
    blocks
}

/// The text of a page with the lines of some blocks replaced: (line of the opening fence, new lines).
#[must_use]
pub fn replace(text: &str, changes: &[(usize, Vec<String>)]) -> String {
    let mut out = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        out.push(line);
        if let Some((_, new)) = changes.iter().find(|(fence, _)| *fence == at + 1) {
            out.extend(new.iter().map(String::as_str));
            let close = lines.by_ref().find(|(_, line)| line.starts_with("```"));
            out.extend(close.map(|(_, line)| line));
        }
    }
    out.join("\n") + "\n"
}

/// The lines of a file, or of a region in it, with the indentation that all share taken off.
///
/// # Errors
/// In words, where there is no such file or region.
pub fn quoted(reference: &str) -> Result<Vec<String>, String> {
    let (path, region) = reference.split_once('#').map_or((reference, None), |(path, region)| (path, Some(region)));
    let text = std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))?;
    let Some(region) = region else {
        return Ok(text.lines().map(str::to_owned).collect());
    };
    let begin = format!(" region: {region}");
    let mut lines = text.lines().skip_while(|line| !line.ends_with(&begin));
    lines.next().ok_or_else(|| format!("{path} has no line that ends in `{begin}`"))?;
    let lines: Vec<&str> = lines.take_while(|line| !line.ends_with(" endregion")).collect();
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let shared = lines.iter().filter(|line| !line.is_empty()).map(indent).min().unwrap_or(0);
    Ok(lines.iter().map(|line| line.get(shared..).unwrap_or_default().to_owned()).collect())
}

/// Whether output is as a page shows it, where `...` alone on a line stands for any number of lines.
#[must_use]
pub fn matches(shown: &[String], output: &[String]) -> bool {
    match shown.split_first() {
        None => output.is_empty(),
        Some((first, rest)) if first == "..." => (0..=output.len()).any(|n| matches(rest, &output[n..])),
        Some((first, rest)) => output.split_first().is_some_and(|(line, more)| line == first && matches(rest, more)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn blocks_are_found_and_replaced() {
        let page = "a\n<!-- file: x -->\n```rust\nold\n```\nb\n```\n```\n";
        let found = blocks(page);
        assert_eq!((found.len(), found[0].line, found[0].info.as_str()), (2, 3, "rust"));
        assert_eq!((found[0].above.as_deref(), found[1].above.as_deref()), (Some("file: x"), None));
        let new = replace(page, &[(3, lines("new\nnewer"))]);
        assert_eq!(new, page.replace("old", "new\nnewer"));
        assert_eq!(replace(page, &[]), page);
    }

    #[test]
    fn dots_stand_for_lines() {
        assert!(matches(&lines("a\n...\nd"), &lines("a\nb\nc\nd")));
        assert!(matches(&lines("a\n..."), &lines("a")));
        assert!(!matches(&lines("a\n...\nd"), &lines("a\nb")));
        assert!(!matches(&lines("a"), &lines("a\nb")));
    }
}
