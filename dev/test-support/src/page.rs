//! Finds and replaces the fenced blocks of Markdown pages.

/// A fenced block of a page.
#[derive(Clone, Debug)]
pub struct Block {
    /// The line number of the opening fence, from 1.
    pub line: usize,
    /// The words after the opening fence.
    pub info: String,
    /// The comment on the line above the fence, without `<!--` and `-->`.
    pub above: Option<String>,
    /// The lines inside.
    pub lines: Vec<String>,
}

/// Returns the fenced blocks of a page, in order. Only fences at the start of a line count.
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

/// Returns the page with the lines of some blocks replaced. Each change consists of the line of the opening fence and
/// the new lines.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_and_replaced() {
        let page = "a\n<!-- file: x -->\n```rust\nold\n```\nb\n```\n```\n";
        let found = blocks(page);
        assert_eq!((found.len(), found[0].line, found[0].info.as_str()), (2, 3, "rust"));
        assert_eq!((found[0].above.as_deref(), found[1].above.as_deref()), (Some("file: x"), None));
        let new = replace(page, &[(3, vec!["new".to_owned(), "newer".to_owned()])]);
        assert_eq!(new, page.replace("old", "new\nnewer"));
        assert_eq!(replace(page, &[]), page);
    }
}
