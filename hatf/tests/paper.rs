//! Sizes do not creep up: `hatf paper` on the first events of real programs, held against `data/paper.json`.
//! `METATF_BLESS=1` writes that anew.
//!
//! The traces are the first 20,000 calls (gawk: 6,000) of a C++ compiler, of perl with hashes of hashes, of python building
//! syntax trees, and of gawk counting words, as raw records of 32 bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const TRACES: [&str; 4] = ["cc1plus", "gawk", "perl_hash", "python_ast"];
/// All but those that only make the paper's tables 7 and 8, and compressors of others.
const COLUMNS: &str = "naive,best,split-stream,split-addr,optimal,split,values,heap";

fn measured() -> Vec<Value> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let traces = TRACES.map(|name| data.join(format!("{name}.raw32.zst")));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatf"));
    let output = command.args(["paper", "--format", "json", "--only", COLUMNS]).args(traces).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The bytes of a column.
fn bytes(trace: &Value, column: &str, packing: &str) -> u64 {
    trace["bytes"][column][packing].as_u64().unwrap()
}

#[test]
fn sizes_are_what_they_were() {
    let measured = measured();
    for trace in &measured {
        let of = |column, packing| bytes(trace, column, packing);
        let name = &trace["name"];
        // What the encodings are for, whatever the figures.
        assert!(of("optimal", "raw") < of("best", "raw") && of("best", "raw") <= of("naive", "raw"), "{name}");
        assert!(of("heap", "zstd-19") <= of("heap", "zstd-3"), "{name}");
        assert!(of("split", "zstd-19") < of("split-addr", "gzip") * 2, "{name}");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/paper.json");
    let text = serde_json::to_string_pretty(&measured).unwrap() + "\n";
    if std::env::var_os("METATF_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&path, &text).unwrap();
    }
    let golden: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for (trace, golden) in measured.iter().zip(&golden) {
        for (column, packings) in golden["bytes"].as_object().unwrap() {
            for (packing, was) in packings.as_object().unwrap() {
                let now = bytes(trace, column, packing);
                if Some(now) != was.as_u64() {
                    wrong.push(format!("{}, {column}, {packing}: {was} bytes, now {now}", trace["name"]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "not as in paper.json (METATF_BLESS=1 takes the new ones):\n{}", wrong.join("\n"));
    assert_eq!(measured, golden);
}

#[test]
fn tables_and_chart() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("sizes.svg");
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gawk.raw32.zst");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatf"));
    command.args(["paper", "--format", "markdown", "--times", "1", "--only", "simple,ascii,naive,heap", "--svg"]);
    let peer = format!("some tool={}", trace.display());
    let output = command.arg(&svg).args(["--peer", &peer]).arg(&trace).arg(&trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    for table in ["Table 3", "Table 4", "Table 5", "Table 6", "Table 7", "Beyond the paper", "| some tool |"] {
        assert!(text.contains(table), "{table} is missing:\n{text}");
    }
    assert!(text.contains("| mean | 32.000 / ") && text.contains("memcpy"));
    assert!(std::fs::read_to_string(&svg).unwrap().ends_with("</svg>\n"));
    let wrong = Command::new(env!("CARGO_BIN_EXE_hatf")).args(["paper", "--only", "nothing", "x"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("a column is one of simple, parquet, ascii"));
}
