//! The conformance vectors of HATF 1.0's native format, as in `tests/vectors/run.py`: good streams are printed
//! correctly, bad ones are refused, and the message names the offset.
#![expect(clippy::unwrap_used)]

use crate::common::hatf;
use metatf_test::{Run, vectors};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Returns the cases in a directory that have this format.
fn cases(folder: &str) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(vectors(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = paths.filter(|path| path.join("trace.hatf").exists()).collect();
    cases.sort();
    assert!(cases.len() >= 4);
    cases
}

fn convert(case: &Path) -> Run {
    let trace = case.join("trace.hatf");
    hatf(["convert", "--from", "hatf1", "--to", "jsonl"].map(OsStr::new).into_iter().chain([trace.as_os_str()]))
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line["@record"] != "comment").collect()
}

#[test]
fn good_streams() {
    for case in cases("good") {
        let run = convert(&case).exits(0);
        assert_eq!(run.err, "", "{}", case.display());
        let expected = lines(&std::fs::read_to_string(case.join("expected.jsonl")).unwrap());
        let found = lines(&run.text());
        // As text, because the order of the keys counts.
        assert_eq!(
            found.iter().map(Value::to_string).collect::<Vec<_>>(),
            expected.iter().map(Value::to_string).collect::<Vec<_>>()
        );
    }
}

#[test]
fn bad_streams() {
    for case in cases("bad/trace") {
        let error = convert(&case).exits(1).err;
        let note: Value = serde_json::from_slice(&std::fs::read(case.join("note.json")).unwrap()).unwrap();
        let place = format!("offset {}", note["offsets"][0]);
        let rest = error.split(&place).nth(1).unwrap_or_else(|| panic!("{}: no {place} in {error}", case.display()));
        assert!(!rest.starts_with(|c: char| c.is_ascii_digit()), "{error}");
    }
}
