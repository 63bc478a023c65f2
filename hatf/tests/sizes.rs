//! Sizes of a long trace do not creep up: what is right for the first few thousand events may be wrong for chunks of
//! megabytes, where codecs and filters are chosen by trying. `METATF_BLESS=1` writes `data/sizes.json` anew.
//!
//! The trace is that of the benchmark's seven programs, one after the other: 700,000 events.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Forms and profiles.
const KINDS: [(&str, &str); 2] = [("heap", "default"), ("heap", "archive")];

fn convert(arguments: &[&str], input: &Path, output: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatf"));
    let status = command.args(["convert"]).args(arguments).args([input, output]).status().unwrap();
    assert!(status.success(), "{arguments:?} {}", input.display());
}

#[test]
fn a_long_trace_is_as_long_as_it_was() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let (one, all) = (folder.path().join("one.raw32"), folder.path().join("all.raw32"));
    let mut events: Vec<_> =
        std::fs::read_dir(here.join("../benches/events")).unwrap().map(|e| e.unwrap().path()).collect();
    events.retain(|path| path.extension().is_some_and(|e| e == "mtf"));
    events.sort();
    let mut raw = Vec::new();
    for program in &events {
        convert(&["--to", "raw32"], program, &one);
        raw.extend(std::fs::read(&one).unwrap());
    }
    std::fs::write(&all, &raw).unwrap();
    let mut sizes = BTreeMap::from([("events".to_owned(), raw.len() as u64 / 32)]);
    for (form, profile) in KINDS {
        let output = folder.path().join("out.mtf");
        convert(&["--from", "raw32", "--to", form, "--profile", profile], &all, &output);
        sizes.insert(format!("{form}, {profile}"), output.metadata().unwrap().len());
    }
    let golden = here.join("tests/data/sizes.json");
    if std::env::var_os("METATF_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&golden, serde_json::to_string_pretty(&sizes).unwrap() + "\n").unwrap();
    }
    let wanted: BTreeMap<String, u64> = serde_json::from_slice(&std::fs::read(&golden).unwrap()).unwrap();
    assert_eq!(sizes, wanted, "not as in sizes.json (METATF_BLESS=1 takes the new ones)");
}
