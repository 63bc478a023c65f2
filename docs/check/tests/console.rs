//! The commands that the pages show print what the pages say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use metatf_docs_check::{matches, pages};
use metatf_test::golden::bless;
use metatf_test::page::{Block, blocks, replace};
use metatf_test::{Folder, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the project's commands: where cargo put this test's, built now if they are not there.
fn commands() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    for package in ["metatfc", "hatf"] {
        if !folder.join(package).exists() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = Command::new(cargo);
            build.args(["build", "--quiet", "--package", package, "--bin", package]).current_dir(root());
            if folder.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.status().unwrap().success(), "{package} does not build");
        }
    }
    folder
}

/// Runs a line of a `console` block; what it printed, and `[exit status N]` where that is not 0.
fn run(line: &str, folder: &Path, commands: &Path) -> Vec<String> {
    let mut path = commands.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1\n{line}")]).current_dir(folder).env("PATH", path);
    for name in ["METATF_PATH", "RUST_BACKTRACE", "COLUMNS", "CLICOLOR_FORCE", "METATF_BLESS"] {
        shell.env_remove(name);
    }
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    if !output.status.success() {
        lines.push(format!("[exit status {}]", output.status.code().unwrap_or(-1)));
    }
    lines
}

/// Runs a block's commands; its lines as they should be, and whether they are.
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
        // Each page has its folder, which sees the project's DTDs and the book's samples.
        let folder = Folder::new();
        for (name, target) in [("dtds", "dtds"), ("samples", "docs/samples"), ("examples", "examples")] {
            let target = root().join(target).canonicalize().unwrap();
            std::os::unix::fs::symlink(target, folder.join(name)).unwrap();
        }
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
