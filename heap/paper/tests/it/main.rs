//! Sizes do not increase unnoticed: measurements of the first events of real programs are compared with a snapshot.
//!
//! The traces are the first 20,000 calls (gawk: 6,000) of a C++ compiler, of perl with hashes of hashes, of python
//! building syntax trees, and of gawk counting words, as raw 32-byte records.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::process::Command;

use insta::assert_snapshot;
use metatf_test::{Folder, Run, root, run};
use serde_json::Value;

const TRACES: [&str; 4] = ["cc1plus", "gawk", "perl_hash", "python_ast"];
/// All columns except those used only in the paper's tables 7 and 8, and other tools' compressors.
const COLUMNS: &str = "naive,best,split-stream,split-addr,address-section,optimal,split,values,heap";

fn paper<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Run {
    run(Command::new(env!("CARGO_BIN_EXE_metatf-paper")).args(arguments).env_remove("COLUMNS"))
}

fn measured() -> Vec<Value> {
    let traces = TRACES.map(trace);
    let run = paper(["--format", "json", "--only", COLUMNS].into_iter().chain(traces.iter().map(String::as_str)));
    let report: Value = serde_json::from_slice(&run.exits(0).out).unwrap();
    report["traces"].as_array().unwrap().clone()
}

/// Returns the path of a trace in `data`.
fn trace(name: &str) -> String {
    root().join("heap/hatf/tests/data").join(format!("{name}.raw32.zst")).display().to_string()
}

/// Returns the bytes of a column.
fn bytes(trace: &Value, column: &str, packing: &str) -> u64 {
    trace["bytes"][column][packing].as_u64().unwrap()
}

#[test]
fn sizes_are_what_they_were() {
    let measured = measured();
    for trace in &measured {
        let of = |column, packing| bytes(trace, column, packing);
        let name = &trace["name"];
        // The purpose of the encodings, regardless of the figures.
        assert!(of("optimal", "raw") < of("best", "raw") && of("best", "raw") <= of("naive", "raw"), "{name}");
        // As in the paper's table 4: splitting the addresses off HATF (best) costs nothing without compression.
        assert_eq!(of("split-addr", "raw"), of("best", "raw"), "{name}");
        assert!(of("split-addr", "gzip") < of("best", "gzip"), "{name}");
        assert!(of("heap", "zstd-19") <= of("heap", "zstd-3"), "{name}");
        assert!(of("split", "zstd-19") < of("split-addr", "gzip") * 2, "{name}");
    }
    assert_snapshot!(serde_json::to_string_pretty(&measured).unwrap());
}

#[test]
fn tables_and_chart() {
    let folder = Folder::new();
    let (svg, trace) = (folder.path("sizes.svg"), trace("gawk"));
    let peer = format!("some tool={trace}");
    let arguments =
        ["--format", "markdown", "--times", "1", "--only", "simple32,simple,ascii,naive,heap", "--svg", &svg];
    let text = paper(arguments.into_iter().chain(["--peer", &peer, &trace, &trace])).exits(0).text();
    for table in [
        "Table 3",
        "Table 4",
        "Table 5",
        "Table 6",
        "Table 7",
        "Beyond the paper",
        "| some tool |",
        "| average difference |",
        "ASCII/Perl",
    ] {
        assert!(text.contains(table), "{table} is missing:\n{text}");
    }
    assert!(text.contains("| mean | 16.000 / ") && text.contains(" | 32.000 / ") && text.contains("memcpy"));
    assert!(folder.text("sizes.svg").ends_with("</svg>\n"));
    paper(["--only", "nothing", "x"]).exits(2).says("expected one of simple32, simple, parquet, ascii");
}

/// For a long trace, the first records are measured, which the output states. The rest is not read.
#[test]
fn the_first_records() {
    let trace = trace("gawk");
    let arguments = ["--only", "simple,naive", "--records"];
    let text = paper(arguments.into_iter().chain(["1000", &trace])).exits(0).text();
    assert!(text.contains("1,000 ") && text.contains("All tables cover only the first records of gawk"), "{text}");
    let json = |records: &str| {
        let run = paper(arguments.into_iter().chain([records, "--format", "json", &trace])).exits(0);
        let report: Value = serde_json::from_slice(&run.out).unwrap();
        report["traces"][0].clone()
    };
    let (first, all) = (json("1000"), json("6000"));
    assert_eq!((&first["summary"]["records"], &first["is_all"]), (&1000.into(), &false.into()));
    assert_eq!(bytes(&first, "simple", "raw"), 32_000);
    assert_eq!((&all["summary"]["records"], &all["is_all"]), (&6000.into(), &true.into()));
}

/// The paper's metadata records have 12 bytes; shorter ones are worthwhile for shorter runs.
#[test]
fn short_metadata_records_make_smaller_traces() {
    let traces = ["cc1plus", "perl_hash"].map(trace);
    let columns = ["--format", "json", "--only", "same-size,same-size-12,best,best-12"];
    let run = paper(columns.into_iter().chain(traces.iter().map(String::as_str))).exits(0);
    let report: Value = serde_json::from_slice(&run.out).unwrap();
    for trace in report["traces"].as_array().unwrap() {
        let of = |column| bytes(trace, column, "raw");
        assert!(of("same-size") < of("same-size-12") && of("best") < of("best-12"), "{trace}");
    }
    let text = paper(["--only", "best,best-12", &traces[0]]).exits(0).text();
    assert!(
        text.contains("12-byte metadata records and shorter metadata records")
            && text.contains("HATF (best), 12 bytes*")
    );
    let text = paper(["--only", "best", &traces[0]]).exits(0).text();
    assert!(!text.contains("metadata records"));
}
