//! Mistakes of newcomers: `mistakes.txt` lists DTDs, each with the first lines and the help of the diagnostics that the
//! parser reports. Each DTD begins after a line `== NAME`, and its diagnostics begin after a line `--`.
//!
//! Run the test with `METATF_BLESS=1` to update the diagnostics, and read the changes.
#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers may panic.

use std::fmt::Write as _;

use metatf_parser::{Diagnostic, Parsed, Severity, fix, parse};

fn cases(table: &str) -> Vec<(&str, &str, &str)> {
    let cases = table.split("\n== ").map(|case| case.trim_start_matches("== "));
    cases
        .map(|case| {
            let (name, rest) = case.split_once('\n').unwrap();
            let (text, shown) = rest.split_once("\n--\n").unwrap_or((rest, ""));
            (name, text, shown.trim_end())
        })
        .collect()
}

fn shown(diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for found in diagnostics {
        let kind = if found.severity == Severity::Error { "error" } else { "warning" };
        let (line, column) = (found.primary.line, found.primary.column);
        writeln!(out, "{line}:{column} {kind}[{}]: {}", found.code.as_str(), found.message).unwrap();
        writeln!(out, "  help: {}", found.help.as_deref().unwrap_or_default()).unwrap();
    }
    out.trim_end().to_owned()
}

#[test]
fn each_mistake_has_a_line_to_write() {
    let path = metatf_test::root().join("metatf-parser/tests/mistakes.txt");
    let table = std::fs::read_to_string(&path).unwrap();
    let found: Vec<_> = cases(&table)
        .into_iter()
        .map(|(name, text, _)| (name, text, shown(&parse("", text.as_bytes()).diagnostics)))
        .collect();
    if std::env::var_os("METATF_BLESS").is_some() {
        let case = |(name, text, shown): &(&str, &str, String)| format!("== {name}\n{text}\n--\n{shown}\n");
        std::fs::write(&path, found.iter().map(case).collect::<Vec<_>>().join("\n")).unwrap();
        return;
    }
    assert!(found.len() > 200, "{}", found.len());
    for ((name, text, now), (.., before)) in found.iter().zip(cases(&table)) {
        assert_eq!(now, before, "{name}: {text}");
        assert!(!now.is_empty(), "{name}: nothing is reported for {text}");
        assert!(!now.contains("section 2 of the language"), "{name}: {now}");
    }
}

/// Editors can apply the lines of most hints for mistakes that are not syntax errors.
#[test]
fn lines_are_edits() {
    let path = metatf_test::root().join("metatf-parser/tests/mistakes.txt");
    let table = std::fs::read_to_string(&path).unwrap();
    let (mut lines, mut edits) = (0, 0);
    for (_, text, _) in cases(&table) {
        let all = parse("", text.as_bytes()).diagnostics;
        let has_line = |d: &&Diagnostic| d.help.as_ref().is_some_and(|help| help.contains("write `"));
        for found in all.iter().filter(|d| !d.code.as_str().starts_with("E00")).filter(has_line) {
            lines += 1;
            edits += usize::from(found.suggestion.is_some());
        }
    }
    println!("{edits} of {lines}");
    assert!(lines > 100 && edits * 100 > lines * 75, "{edits} of {lines}");
}

/// One edit may resolve several mistakes, and is suggested for each of them.
#[test]
fn one_edit_for_several_mistakes() {
    let text = b"section log 1 { r: (path: u16 sectionOffset 2) { tag.value = 4; } }\n\
        section paths 1 { p: (vfield: text); }\n";
    let found = parse("", text).diagnostics;
    let helps: Vec<_> = found.iter().map(|d| (d.code.as_str(), d.help.as_deref())).collect();
    let wanted = [("E0701", Some("write `section paths 2 {` in line 2")), ("E0102", Some("write `section paths 2 {`"))];
    assert_eq!(helps, wanted);
    assert_eq!(found[0].suggestion, found[1].suggestion);
    let edited = found[0].suggestion.as_ref().unwrap().apply(text).unwrap();
    assert!(parse("", &edited).dtd.is_some());
}

/// An edit that `--fix` makes never adds an error or replaces it with another.
#[test]
fn fixes_improve() {
    let path = metatf_test::root().join("metatf-parser/tests/mistakes.txt");
    let table = std::fs::read_to_string(&path).unwrap();
    let mut fixed = 0;
    for (name, text, _) in cases(&table) {
        let (before, found) = (parse("", text.as_bytes()), fix(text.as_bytes()));
        if found.fixed.is_empty() {
            continue;
        }
        fixed += 1;
        let after = parse("", &found.text);
        let text = String::from_utf8_lossy(&found.text).into_owned();
        // A syntax error may hide errors elsewhere.
        let syntax = |parsed: &Parsed| parsed.diagnostics.iter().filter(|d| d.code.as_str().starts_with("E00")).count();
        let counts = |parsed: &Parsed| (syntax(parsed), parsed.errors(), parsed.warnings());
        assert!(counts(&after) < counts(&before), "{name}: {text}");
    }
    assert!(fixed > 60, "{fixed}");
}
