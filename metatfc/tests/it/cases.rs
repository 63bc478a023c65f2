//! Runs the cases in `tests/cases`, which cover `dump` options that the conformance vectors do not use.
//! `dev/scripts/make-vectors` generates them from the specification.

use crate::common::metatfc;
use metatf_test::root;
use serde_json::Value;
use std::path::Path;

#[test]
fn dump_prints_what_the_cases_expect() {
    let entries = std::fs::read_dir(root().join("tests/cases")).expect("the cases are there");
    let mut cases: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    cases.sort();
    assert!(cases.len() > 15, "only {} cases", cases.len());
    let failures: Vec<String> = cases.iter().filter_map(|case| failure(case)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Returns why a case failed, or `None` if it passed.
fn failure(case: &Path) -> Option<String> {
    let read = |name: &str| std::fs::read_to_string(case.join(name)).expect("a file of the case");
    let info: Value = serde_json::from_str(&read("case.json")).expect("JSON");
    let texts = |key: &str| -> Vec<&str> {
        info[key].as_array().expect("a list").iter().map(|text| text.as_str().expect("a text")).collect()
    };
    let mut args = vec!["dump"];
    args.extend(texts("args"));
    let run = metatfc(case, &args);
    let lines = String::from_utf8_lossy(&run.out);
    let mut rest = run.err.as_str();
    let said = texts("stderr").into_iter().all(|text| {
        let found = rest.split_once(text);
        rest = found.map_or(rest, |(_, behind)| behind);
        found.is_some()
    });
    let same = lines == read("expected.jsonl") && info["status"] == run.status && said;
    (!same).then(|| format!("{}: status {}\n{lines}{}", case.display(), run.status, run.err))
}
