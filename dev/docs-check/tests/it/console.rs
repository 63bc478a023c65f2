//! The commands shown on pages print the output shown there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use metatf_docs_check::{commands, matches, pages, run, sandbox};
use metatf_test::golden::bless;
use metatf_test::page::{Block, blocks, replace};
use metatf_test::root;
use std::path::Path;

/// Runs the commands in a block. Returns its corrected lines, and whether the block was correct.
fn check(block: &Block, folder: &Path, commands: &Path) -> (Vec<String>, bool) {
    let mut right = true;
    let mut lines = Vec::new();
    for part in block.lines.chunk_by(|_, next| !next.starts_with("$ ")) {
        let Some(command) = part.first().and_then(|line| line.strip_prefix("$ ")) else {
            lines.extend_from_slice(part);
            continue;
        };
        let output = run(command, folder, commands);
        lines.push(format!("$ {command}"));
        if matches(&part[1..], &output) {
            lines.extend_from_slice(&part[1..]);
        } else {
            right = false;
            lines.extend(output);
        }
    }
    (lines, right)
}

#[test]
fn commands_print_what_the_pages_say() {
    let commands = commands();
    let mut wrong = Vec::new();
    for page in pages().unwrap() {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        // Each page has its own directory.
        let folder = sandbox();
        let mut changes = Vec::new();
        for block in blocks(&text).into_iter().filter(|block| block.info == "console") {
            let (lines, right) = check(&block, &folder, &commands);
            if !right && !bless() {
                let place = format!("{}:{}", page.display(), block.line);
                wrong.push(format!("{place}: prints\n{}\n", lines.join("\n")));
            } else if !right {
                changes.push((block.line, lines));
            }
        }
        if !changes.is_empty() {
            std::fs::write(root().join(&page), replace(&text, &changes)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}\nMETATF_BLESS=1 rewrites the pages", wrong.join("\n"));
}
