//! Checks the README and the book against the code.
//!
//! - A fenced block after `<!-- file: PATH -->` or `<!-- file: PATH#REGION -->` must match that file, or the part of it
//!   between lines that end in `region: REGION` and `endregion`.
//! - In a `console` block, lines that begin with `$ ` are run in page order, and the lines below each command must
//!   match its output. A line `...` matches any number of lines.
//!
//! `METATF_BLESS=1` rewrites differing blocks in place. The blocks are surrounded by prose, so they cannot be `insta`
//! snapshots, which are separate files.

pub mod prose;
mod shell;

pub use shell::{commands, run, sandbox};

use metatf_test::root;
use std::path::{Path, PathBuf};

/// The directories whose Markdown is checked.
const FOLDERS: [&str; 5] = ["", "docs", "docs/cookbook", "docs/course", "dev/internals"];

/// Returns the pages to check, which are all Markdown files in `FOLDERS`. Paths are relative to the root.
///
/// # Errors
/// Fails if a directory cannot be read.
pub fn pages() -> std::io::Result<Vec<PathBuf>> {
    let root = root();
    let mut pages = Vec::new();
    for folder in FOLDERS {
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

/// Returns the lines of a file, or of a region in it, without their common indentation.
///
/// # Errors
/// Returns a description of the missing file or region.
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

/// Returns whether output matches a page, on which a line `...` matches any number of lines.
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
    fn dots_stand_for_lines() {
        assert!(matches(&lines("a\n...\nd"), &lines("a\nb\nc\nd")));
        assert!(matches(&lines("a\n..."), &lines("a")));
        assert!(!matches(&lines("a\n...\nd"), &lines("a\nb")));
        assert!(!matches(&lines("a"), &lines("a\nb")));
    }
}
