//! Snapshots of command output for a trace with each kind of field and for the samples in the book.

use crate::common::metatfc;
use crate::folder;
use insta::assert_snapshot;
use metatf_test::{Folder, root};

/// Returns the standard output of a command.
fn printed(folder: &Folder, args: &[&str]) -> String {
    metatfc(folder, args).exits(0).text()
}

#[test]
fn a_trace_in_every_format() {
    let folder = &folder();
    assert_snapshot!("dump-text", printed(folder, &["dump", "--all", "a.mtf"]));
    assert_snapshot!("dump-resolved", printed(folder, &["dump", "--resolve", "a.mtf"]));
    assert_snapshot!("dump-jsonl", printed(folder, &["dump", "--format", "jsonl", "--all", "a.mtf"]));
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

/// The book shows parts of these dumps, with long byte lists abbreviated.
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
        metatfc(folder, &["convert", "--dtd", &dtd, "--codec", "stored", &lines, "sample.mtf"]).exits(0);
        assert_snapshot!(
            format!("sample-{sample}"),
            printed(folder, &["dump", "--format", "hex", "--all", "sample.mtf"])
        );
    }
}

/// The terminator of a byte array is part of the record, so the offsets after it are correct.
#[test]
fn bytes_that_end_at_a_byte() {
    let folder = &Folder::new();
    folder.write("s.dtd", "section s 1 { r: (tag, line, n) { tag.value = 4; line.width = until 10; line.interpretation = none; n.width = 1; n.interpretation = none; } }");
    folder.write("s.jsonl", "{\"@section\":\"s\",\"@record\":\"r\",\"line\":\"6869\",\"n\":7}\n");
    metatfc(folder, &["convert", "--dtd", "s.dtd", "--codec", "stored", "s.jsonl", "s.mtf"]).exits(0);
    let dump = printed(folder, &["dump", "--format", "hex", "s.mtf"]);
    let rows: Vec<Vec<&str>> = dump.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let start: u64 = rows[0][0].parse().unwrap();
    let place = |behind: u64| (start + behind).to_string();
    assert_eq!(rows[1], [&*place(1), "68", "69", "0a", "line", "2", "bytes"], "{dump}");
    assert_eq!(rows[2], [&*place(4), "07", "n", "7"], "{dump}");
}
