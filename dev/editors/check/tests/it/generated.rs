//! Checks that the checked-in parser was generated from the grammar.

use std::process::Command;

use metatf_test::{Folder, root, run, skip};

/// Version of the generator that created the checked-in parser.
const VERSION: &str = "0.27.1";

#[test]
fn from_the_grammar() {
    let generator = std::env::var("TREE_SITTER").unwrap_or_else(|_| "tree-sitter".to_owned());
    let version = Command::new(&generator).arg("--version").output();
    if !version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(VERSION)) {
        skip(&format!(
            "tree-sitter {VERSION} is not there (cargo install tree-sitter-cli --version {VERSION} --no-default-features)"
        ));
        return;
    }
    let checked_in = root().join("dev/editors/tree-sitter-metatf");
    let folder = Folder::new();
    for name in ["grammar.js", "tree-sitter.json"] {
        std::fs::copy(checked_in.join(name), folder.join(name)).unwrap();
    }
    let _ = run(Command::new(&generator).args(["generate", "grammar.js"]).current_dir(&*folder)).exits(0);
    for name in ["src/parser.c", "src/grammar.json", "src/node-types.json"] {
        let made = folder.text(name);
        let found = std::fs::read_to_string(checked_in.join(name)).unwrap();
        assert!(
            made == found,
            "dev/editors/tree-sitter-metatf/{name} is not current: run `tree-sitter generate` there"
        );
    }
}
