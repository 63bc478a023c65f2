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

/// Where a thing of a dump with bytes begins: its chunk, and the offset in it.
type Place = (String, u64);

/// Of the dump of a trace with every kind of field: the bytes of each record are behind those of the one before, in the same chunk.
#[test]
fn fields_with_their_bytes_are_the_whole_record() {
    let trace = root().join("tests/golden/1.0/every.zlib-none-64-big.mtf").display().to_string();
    let dump = printed(&Folder::new(), &["dump", "--format", "hex", "--all", &trace]);
    // The end of the thing before, and of how many the end was compared.
    let (mut end, mut compared): (Option<Place>, usize) = (None, 0);
    for line in dump.lines() {
        if let Some((_, place)) = line.split_once(" at ").filter(|_| !line.starts_with(' ')) {
            let (offset, chunk) = place.split_once(" of ").expect("a place in a chunk");
            let begin = (chunk.to_owned(), offset.parse().unwrap());
            if let Some(end) = end.take().filter(|end| end.0 == begin.0) {
                assert_eq!(begin.1, end.1, "{line}");
                compared += 1;
            }
            end = Some(begin);
        } else if let Some(end) = &mut end {
            let Some(bytes) = line.get(14..).filter(|_| line.starts_with("  ")) else { continue };
            let count = bytes.split_inclusive(' ').take_while(|byte| {
                byte.trim_end().len() == 2 && byte.trim_end().bytes().all(|b| b.is_ascii_hexdigit())
            });
            end.1 += count.take(8).count() as u64;
        }
    }
    assert!(compared > 100, "{compared}");
}
