//! Suggested edits: each resolves its diagnostic, and `fix` makes nothing worse.
#![allow(clippy::expect_used, reason = "a test")]

use metatf_parser::{Diagnostic, Severity, fix, parse};
use std::path::PathBuf;

fn texts() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = metatf_test::root().join("metatf-parser/tests/diagnostics");
    let files = std::fs::read_dir(folder).expect("the folder is there").flatten().map(|file| file.path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "dtd")).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).expect("it can be read"))).collect()
}

fn errors(diagnostics: &[Diagnostic]) -> usize {
    diagnostics.iter().filter(|d| d.severity == Severity::Error).count()
}

#[test]
fn an_edit_removes_its_diagnostic() {
    let mut edits = 0;
    for (path, text) in texts() {
        for diagnostic in parse("", &text).diagnostics {
            let Some(suggestion) = &diagnostic.suggestion else { continue };
            edits += 1;
            let edited = suggestion.apply(&text).expect("the edit is in the text");
            let same = |d: &Diagnostic| d.code == diagnostic.code && d.message == diagnostic.message;
            let (before, after) = (parse("", &text).diagnostics, parse("", &edited).diagnostics);
            let count = |list: &[Diagnostic]| list.iter().filter(|d| same(d)).count();
            assert!(count(&after) < count(&before), "{}: {diagnostic:?} is reported all the same", path.display());
        }
    }
    assert!(edits > 30, "{edits}");
}

#[test]
fn fixing_makes_nothing_worse() {
    let mut fixed = 0;
    for (path, text) in texts() {
        let found = fix(&text);
        let (before, after) = (parse("", &text).diagnostics, parse("", &found.text).diagnostics);
        assert_eq!(found.text == text, found.fixed.is_empty(), "{}", path.display());
        assert!(fix(&found.text).fixed.is_empty(), "{}: once is enough", path.display());
        let hidden = before.iter().any(|d| d.code.as_str().starts_with("E00"));
        assert!(hidden || errors(&after) <= errors(&before), "{}", path.display());
        fixed += found.fixed.len();
    }
    assert!(fixed > 30, "{fixed}");
}
