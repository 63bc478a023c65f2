//! Each rule of the models of predicted leaves is pinned by a vector of `tests/models`. With the rule broken, the
//! oracle reads it differently; with all rules intact, the oracle agrees with the runtime. `METATF_BLESS=1` searches
//! for the vectors again.
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf::dynamic::Schema;
use metatf_tests::conformance::kebab;
use metatf_tests::models::{lines, of_oracle, read, search, tables};
use metatf_tests::oracle::{Chapter, Rule};
use metatf_tests::runtime;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Maximum number of lines kept of a vector, from its end.
const KEPT: usize = 40;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

fn schema(folder: &Path) -> Schema {
    runtime::schema(&std::fs::read_to_string(folder.join("format.dtd")).unwrap())
}

fn crc(lines: &[String]) -> u32 {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let divided = |crc: u32| crc >> 1 ^ if crc & 1 == 1 { 0x82F6_3B78 } else { 0 };
    !text.bytes().fold(!0, |crc: u32, byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| divided(crc)))
}

/// Returns the expected content of a vector's files.
fn case(rule: Rule, schema: &Schema, trace: &[u8]) -> (Value, String) {
    let (records, error) = read(schema, trace);
    let lines = lines(schema, trace);
    assert_eq!(lines.len(), records.len());
    let kept: String = lines.iter().skip(lines.len().saturating_sub(KEPT)).map(|line| format!("{line}\n")).collect();
    let about = format!("{rule:?}, a rule of tests/src/oracle/rules.rs");
    (json!({ "about": about, "records": lines.len(), "error": error, "crc32c": crc(&lines) }), kept)
}

fn bless(rule: Rule) {
    let folder = folder().join(kebab(rule));
    std::fs::create_dir_all(&folder).unwrap();
    let found = tables(rule).unwrap_or_else(|| search(rule));
    std::fs::write(folder.join("format.dtd"), &found.dtd).unwrap();
    let trace = found.trace();
    std::fs::write(folder.join("trace.mtf"), &trace).unwrap();
    let (case, kept) = case(rule, &schema(&folder), &trace);
    std::fs::write(folder.join("case.json"), format!("{case}\n")).unwrap();
    std::fs::write(folder.join("expected.jsonl"), kept).unwrap();
}

#[test]
fn every_rule_is_pinned() {
    if std::env::var_os("METATF_BLESS").is_some() {
        Chapter::Models.rules().iter().copied().for_each(bless);
    }
    let mut unnoticed = Vec::new();
    for rule in Chapter::Models.rules().iter().copied() {
        let folder = folder().join(kebab(rule));
        let (schema, trace) = (schema(&folder), std::fs::read(folder.join("trace.mtf")).unwrap());
        let (case, kept) = case(rule, &schema, &trace);
        let file = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(format!("{case}\n"), file("case.json"), "{rule:?}");
        assert_eq!(kept, file("expected.jsonl"), "{rule:?}");
        if of_oracle(&schema, &trace, Some(rule)) == of_oracle(&schema, &trace, None) {
            unnoticed.push(rule);
        }
    }
    assert!(unnoticed.is_empty(), "no vector notices {unnoticed:?}");
}

#[test]
fn every_vector_is_of_a_rule() {
    let names: Vec<String> = Chapter::Models.rules().iter().copied().map(kebab).collect();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let found = entry.unwrap().file_name().into_string().unwrap();
        assert!(found == "README.md" || names.contains(&found), "{found}");
    }
}
