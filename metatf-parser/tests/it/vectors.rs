//! The shared vectors: every valid DTD is accepted with the warnings listed in its case, and every invalid DTD is
//! rejected at a location listed in its note.
#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers may panic.

use std::fs;
use std::path::{Path, PathBuf};

use metatf_parser::{Severity, format, parse};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors")
}

/// Returns the directories in `place` that contain a DTD.
fn cases(place: &str) -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = fs::read_dir(vectors().join(place))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|folder| folder.join("format.dtd").exists())
        .collect();
    cases.sort();
    assert!(cases.len() > 40, "only {} cases in {place}", cases.len());
    cases
}

/// Returns the numbers between `"key":` and the next key of a note.
fn numbers_after(json: &str, key: &str) -> Vec<u32> {
    let Some((_, rest)) = json.split_once(&format!("\"{key}\":")) else { return Vec::new() };
    let end = rest.find('"').unwrap_or(rest.len());
    rest[..end].split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

#[test]
fn good_ones_are_accepted() {
    let mut wrong = Vec::new();
    for case in cases("good") {
        let text = fs::read(case.join("format.dtd")).unwrap();
        let note = fs::read_to_string(case.join("case.json")).unwrap_or_default();
        // The paper's HATF10.dtd causes one warning (spec 9), even in cases that list no warnings.
        let paper = u32::from(text.starts_with(b"// HATF10.dtd"));
        let warnings = numbers_after(&note, "warnings").first().copied().unwrap_or(paper);
        let parsed = parse("format.dtd", &text);
        if parsed.dtd.is_none() || parsed.errors() > 0 || parsed.warnings() != warnings as usize {
            wrong.push(format!("{}: {:#?}", case.display(), parsed.diagnostics));
        }
        if let Some(dtd) = parsed.dtd {
            for section in &dtd.sections {
                assert_eq!(section.records.len(), section.cells.len());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn bad_ones_are_rejected_at_the_right_place() {
    let mut wrong = Vec::new();
    for case in cases("bad/dtd") {
        let text = fs::read(case.join("format.dtd")).unwrap();
        let note = fs::read_to_string(case.join("note.json")).unwrap();
        let places: Vec<(u32, u32)> = numbers_after(&note, "at").chunks(2).map(|p| (p[0], p[1])).collect();
        let parsed = parse("format.dtd", &text);
        assert!(parsed.dtd.is_none(), "{} is accepted", case.display());
        let errors = parsed.diagnostics.iter().filter(|d| d.severity == Severity::Error);
        let found: Vec<(u32, u32)> = errors.map(|d| (d.primary.line, d.primary.column)).collect();
        if !found.iter().any(|place| places.contains(place)) {
            wrong.push(format!("{}: {places:?}, not {found:?}: {:#?}", case.display(), parsed.diagnostics));
        }
        assert!(parsed.diagnostics.iter().all(|d| d.help.is_some()), "{}: no help", case.display());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn formatting_keeps_the_meaning_and_is_stable() {
    for case in cases("good") {
        let text = fs::read(case.join("format.dtd")).unwrap();
        let once = format("format.dtd", &text).unwrap();
        let twice = format("format.dtd", once.as_bytes()).unwrap();
        assert_eq!(once, twice, "{}", case.display());
        let before = parse("format.dtd", &text).dtd.unwrap();
        let mut after = parse("format.dtd", once.as_bytes()).dtd.unwrap();
        assert!(before.same_meaning(&after) && before.fingerprint() == after.fingerprint());
        after.text.clone_from(&before.text);
        assert_eq!(before, after, "{}", case.display());
        assert!(once.lines().all(|line| line.trim_end() == line), "{}: space at a line's end", case.display());
    }
}
