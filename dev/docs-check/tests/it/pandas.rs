//! The Python code in section "CSV and pandas" of `docs/tables.md` prints the output shown there, if pandas is installed.
//! Its CSV is in `console` blocks, which are checked everywhere. `METATF_PYTHON` selects an interpreter other than
//! `python3`.
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf_docs_check::{commands, run, sandbox};
use metatf_test::page::blocks;
use metatf_test::root;

/// Splits lines into words, because versions of pandas differ in spacing.
fn words<'l>(lines: impl IntoIterator<Item = &'l String>) -> Vec<Vec<&'l str>> {
    lines.into_iter().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn python_prints_what_the_page_says() {
    let page = std::fs::read_to_string(root().join("docs/tables.md")).unwrap();
    let (_, section) = page.split_once("\n## CSV and pandas\n").unwrap();
    let (section, _) = section.split_once("\n## Export\n").unwrap();
    let blocks = blocks(section);
    let (folder, commands) = (sandbox(), commands());
    let lines = blocks.iter().filter(|block| block.info == "console").flat_map(|block| &block.lines);
    for line in lines.filter_map(|line| line.strip_prefix("$ ")).filter(|line| !line.starts_with("cat ")) {
        let _ = run(line, &folder, &commands);
    }
    assert!(std::fs::read_to_string(folder.join("request.csv")).unwrap().lines().count() > 2);
    let python = std::env::var("METATF_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if !run(&format!("{python} -c 'import pandas'"), &folder, &commands).is_empty() {
        eprintln!("{python} has no pandas: only the CSV was checked");
        return;
    }
    let printed = run(&format!("{python} samples/trace.py"), &folder, &commands);
    let shown = blocks.iter().filter(|block| block.info == "text").flat_map(|block| &block.lines);
    assert_eq!(words(&printed), words(shown));
}
