//! Each `diagnostics/NAME.dtd` contains mistakes, and the snapshot `NAME.snap` contains the resulting diagnostics. The
//! test fails if a DTD or a snapshot is missing.
#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers may panic.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use metatf_parser::{Code, explain, parse, render};

/// Codes that only large input triggers; `hostile.rs` tests them.
const LARGE: [Code; 2] = [Code::TooLarge, Code::LargeSchema];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics")
}

fn names(extension: &str) -> BTreeSet<String> {
    fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

#[test]
fn diagnostics_read_as_before() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let _bound = settings.bind_to_scope();
    for name in names("dtd") {
        let file = format!("{name}.dtd");
        let text = fs::read(folder().join(&file)).unwrap();
        let parsed = parse(&file, &text);
        let shown: Vec<String> = parsed.diagnostics.iter().map(|d| render(d, &file, &text, false) + "\n").collect();
        let shown = shown.join("\n");
        assert!(parsed.diagnostics.iter().all(|d| d.help.is_some()), "{name}: a diagnostic without help");
        insta::assert_snapshot!(name.as_str(), &shown);
        let code = name.split('-').next().unwrap();
        let has_code = parsed.diagnostics.iter().any(|d| d.code.as_str().eq_ignore_ascii_case(code));
        assert!(has_code, "{name} does not show {code}:\n{shown}");
        assert_eq!(parsed.dtd.is_none(), code.starts_with('e'), "{name}");
    }
    assert_eq!(names("dtd"), names("snap"), "snapshots without a DTD, or the reverse");
}

#[test]
fn every_code_has_an_example() {
    let shown: BTreeSet<String> = names("dtd").iter().map(|n| n[..5].to_uppercase()).collect();
    for code in Code::ALL {
        assert!(LARGE.contains(code) || shown.contains(code.as_str()), "no example of {code}");
        assert!(explain(code.as_str()).is_some_and(|text| text.contains("Specification: section")));
    }
    let codes: BTreeSet<&str> = Code::ALL.iter().map(|c| c.as_str()).collect();
    assert_eq!(codes.len(), Code::ALL.len(), "two codes are the same");
    assert_eq!(explain("E9999"), None);
}
