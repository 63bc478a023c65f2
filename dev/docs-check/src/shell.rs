//! Runs the commands shown on pages.
#![allow(clippy::unwrap_used, reason = "for tests")]

use metatf_test::{Folder, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The parts of the repository that are visible to a page's commands, by the names that the commands use.
const LINKS: [(&str, &str); 5] = [
    ("dtds", "dtds"),
    ("samples", "docs/samples"),
    ("examples", "examples"),
    ("logs", "metatfc/tests/logs"),
    ("scoped.mtf", "tests/golden/1.0/scoped.example-default.mtf"),
];

/// Creates a directory for a page's commands, with links to the project's DTDs, examples and logs, to the book's
/// samples, and to the example trace of scoped memory.
#[must_use]
pub fn sandbox() -> Folder {
    let folder = Folder::new();
    for (name, target) in LINKS {
        let target = root().join(target).canonicalize().unwrap();
        std::os::unix::fs::symlink(target, folder.join(name)).unwrap();
    }
    folder
}

/// Returns the directory with the project's commands, which is cargo's output directory of this test. Builds the
/// commands if they are missing.
#[must_use]
pub fn commands() -> PathBuf {
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

/// Runs a line of a `console` block. Returns its output, and `[exit status N]` if the status is not 0. Paths in the
/// directory are made relative.
#[must_use]
pub fn run(line: &str, folder: &Path, commands: &Path) -> Vec<String> {
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
    let text = text.replace(&format!("{}/", folder.canonicalize().unwrap().display()), "");
    let mut lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    if !output.status.success() {
        lines.push(format!("[exit status {}]", output.status.code().unwrap_or(-1)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{run, sandbox};
    use std::path::Path;

    #[test]
    fn paths_in_the_folder_are_relative() {
        let lines = run("echo $(pwd -P)/samples/a.c; exit 3", &sandbox(), Path::new("/"));
        assert_eq!(lines, ["samples/a.c", "[exit status 3]"]);
    }
}
