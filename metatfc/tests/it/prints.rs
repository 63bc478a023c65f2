//! What the commands print, as snapshots: a trace with each kind of field, and the samples of the book.

use crate::common::metatfc;
use crate::folder;
use insta::assert_snapshot;
use metatf_test::{Folder, root};

/// What a command prints to standard output.
fn printed(folder: &Folder, args: &[&str]) -> String {
    metatfc(folder, args).exits(0).text()
}

#[test]
fn a_trace_in_every_format() {
    let folder = &folder();
    assert_snapshot!("dump-text", printed(folder, &["dump", "--all", "a.mtf"]));
    assert_snapshot!("dump-resolved", printed(folder, &["dump", "--resolve", "a.mtf"]));
    assert_snapshot!("dump-jsonl", printed(folder, &["dump", "--format", "jsonl", "--all", "a.mtf"]));
    assert_snapshot!("dump-csv", printed(folder, &["dump", "--format", "csv", "a.mtf"]));
    assert_snapshot!("dump-csv-one", printed(folder, &["dump", "--format", "csv", "--record", "list", "a.mtf"]));
    assert_snapshot!("dump-hex", printed(folder, &["dump", "--format", "hex", "--all", "a.mtf"]));
}

#[test]
fn a_format_and_a_trace_described() {
    let folder = &folder();
    assert_snapshot!("show-text", printed(folder, &["show", "a.dtd"]));
    assert_snapshot!("show-json", printed(folder, &["show", "--format", "json", "a.dtd"]));
    assert_snapshot!("stat-text", printed(folder, &["stat", "a.mtf"]));
    assert_snapshot!("stat-json", printed(folder, &["stat", "--format", "json", "a.mtf"]));
    assert_snapshot!("verify", printed(folder, &["verify", "a.mtf"]));
}

/// The pages show parts of these, and text where bytes would be too many.
#[test]
fn the_samples_of_the_book() {
    for (sample, dtd) in [
        ("based", "interpretations"),
        ("blocks", "HATF10"),
        ("changed", "interpretations"),
        ("constant", "interpretations"),
        ("plain", "interpretations"),
        ("predicted", "predicted"),
        ("requests", "requests"),
        ("sections", "interpretations"),
    ] {
        let folder = &Folder::new();
        let samples = root().join("docs/samples");
        let dtd = if dtd == "HATF10" {
            dtd.to_owned()
        } else {
            samples.join(dtd).with_extension("dtd").display().to_string()
        };
        let lines = samples.join(sample).with_extension("jsonl").display().to_string();
        metatfc(folder, &["encode", "--dtd", &dtd, "--codec", "stored", &lines, "sample.mtf"]).exits(0);
        assert_snapshot!(
            format!("sample-{sample}"),
            printed(folder, &["dump", "--format", "hex", "--all", "sample.mtf"])
        );
    }
}
