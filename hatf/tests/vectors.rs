//! The conformance vectors of HATF 1.0's native form, as `tests/vectors/run.py` runs them: good streams are printed
//! right, bad ones are refused, and the message names the place.
#![expect(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The cases of a folder that are of this form.
fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors").join(folder);
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = paths.filter(|path| path.join("trace.hatf").exists()).collect();
    cases.sort();
    assert!(cases.len() >= 4);
    cases
}

fn convert(case: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatf"));
    command.args(["convert", "--from", "hatf1", "--to", "jsonl"]).arg(case.join("trace.hatf")).output().unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line["@record"] != "comment").collect()
}

#[test]
fn good_streams() {
    for case in cases("good") {
        let output = convert(&case);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && told.is_empty(), "{}: {told}", case.display());
        let expected = lines(&std::fs::read_to_string(case.join("expected.jsonl")).unwrap());
        let found = lines(&String::from_utf8(output.stdout).unwrap());
        // As text: the order of the keys counts.
        assert_eq!(
            found.iter().map(Value::to_string).collect::<Vec<_>>(),
            expected.iter().map(Value::to_string).collect::<Vec<_>>()
        );
    }
}

#[test]
fn bad_streams() {
    for case in cases("bad/trace") {
        let output = convert(&case);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{}: {told}", case.display());
        let note: Value = serde_json::from_slice(&std::fs::read(case.join("note.json")).unwrap()).unwrap();
        let place = format!("offset {}", note["offsets"][0]);
        let rest = told.split(&place).nth(1).unwrap_or_else(|| panic!("{}: no {place} in {told}", case.display()));
        assert!(!rest.starts_with(|c: char| c.is_ascii_digit()), "{told}");
    }
}
