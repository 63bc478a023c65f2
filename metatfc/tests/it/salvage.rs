//! `verify` and `--salvage`: intact parts are kept, and losses are reported.

use super::common::{NO_STACK, metatfc, run};
use super::folder;
use metatf_test::Folder;
use std::fmt::Write as _;

/// Salvaging copies an intact trace, even if recoding has narrowed its stream elements and no record refers to them.
#[test]
fn whole_traces_are_copied() {
    let folder = folder();
    let here = &folder;
    let mut lines = NO_STACK.to_owned() + r#"{"@section":"heap","@record":"thread","id":1}"#;
    for i in 0..400 {
        let address = 0x1_0000 + 48 * i * i;
        write!(lines, "\n{{\"@section\":\"heap\",\"@record\":\"malloc\",\"time\":0,\"stack\":0,\"usable\":0,\"size\":24,\"address\":{address}}}")
            .expect("a string");
        if i % 3 == 0 {
            write!(
                lines,
                "\n{{\"@section\":\"heap\",\"@record\":\"free\",\"time\":0,\"stack\":0,\"address\":{address}}}"
            )
            .expect("a string");
        }
    }
    run(here, &["convert", "--dtd", "heap", "-", "wide.mtf"], lines.as_bytes()).exits(0);
    metatfc(here, &["convert", "wide.mtf", "heap.mtf"]).exits(0);
    metatfc(here, &["verify", "--salvage", "copy.mtf", "heap.mtf"]).exits(0).prints("whole");
    metatfc(here, &["diff", "heap.mtf", "copy.mtf"]).exits(0);
}

/// Closing a trace writes the record count to the header, so a different count is reported as a loss.
#[test]
fn the_headers_count_is_checked() {
    let folder = folder();
    let here = &folder;
    let mut bytes = here.read("a.mtf");
    let at = bytes.windows(8).position(|bytes| bytes == 4_u64.to_le_bytes()).expect("the number of records");
    bytes[at] = 40;
    here.write("more.mtf", &bytes);
    let bad = metatfc(here, &["verify", "more.mtf"]).exits(1);
    let bad = bad
        .says("the header declares 40 records, but the trace contains 4")
        .says("lost: 36 records, according to the header");
    assert_eq!(bad.text(), "");
}

/// If a trace ends between two groups, its records are intact, but every command reports that the header declares more.
#[test]
fn every_reader_tells_what_is_missing() {
    let folder = folder();
    let here = &folder;
    let record =
        |time: u32| format!("{{\"@section\":\"heap\",\"@record\":\"list\",\"time\":{time},\"n\":0,\"value\":[]}}\n");
    let group = |group: u32| {
        (0..50).map(|n| record(100 * group + n)).chain(["{\"@group\":true}\n".to_owned()]).collect::<String>()
    };
    let lines: String = (0..4).map(group).collect();
    run(here, &["convert", "--dtd", "a.dtd", "-", "whole.mtf"], lines.as_bytes()).exits(0);
    let whole = here.read("whole.mtf");
    let mut reader = metatf::container::Reader::from_slice(&whole).expect("a trace");
    let chunks = reader.chunks().expect("chunks");
    let cut = chunks.iter().filter(|chunk| chunk.is_group_start()).nth(2).expect("four groups").offset;
    here.write("cut.mtf", &whole[..usize::try_from(cut).expect("a length")]);
    last_records(here);
    let runs: &[&[&str]] = &[
        &["dump", "cut.mtf"],
        &["dump", "--format", "jsonl", "--threads", "1", "cut.mtf"],
        &["dump", "--tail", "3", "cut.mtf"],
        &["diff", "cut.mtf", "cut.mtf"],
        &["convert", "cut.mtf", "r.mtf"],
        &["convert", "--threads", "1", "cut.mtf", "r.mtf"],
        &["sort", "--by", "time", "cut.mtf", "-o", "s.mtf"],
        &["stat", "cut.mtf"],
        &["stat", "--threads", "1", "--format", "json", "cut.mtf"],
        &["verify", "cut.mtf"],
    ];
    let lost = "cut.mtf: the header declares 200 records, but the trace contains 100\n";
    for args in runs {
        let err = metatfc(here, args).exits(1).err;
        assert_eq!(err.matches(lost).count(), 1, "{args:?}: {err}");
    }
    run(here, &["stat", "-"], &here.read("cut.mtf")).exits(1).says("standard input: the header declares 200 records");
    // A partial read does not check the count.
    metatfc(here, &["dump", "--head", "3", "cut.mtf"]).exits(0);
    metatfc(here, &["dump", "whole.mtf"]).exits(0);
    // An unfinished trace has no count, so the only warning is that it has no footer.
    let mut open = here.read("cut.mtf");
    let at = open.windows(8).position(|bytes| bytes == 200_u64.to_le_bytes()).expect("the number of records");
    open[at] = 0;
    here.write("open.mtf", &open);
    let warning = "open.mtf: warning: the trace has no footer";
    metatfc(here, &["stat", "open.mtf"]).exits(0).says(warning);
    metatfc(here, &["dump", "open.mtf"]).exits(0).says(warning);
    // Scripts can recognize an unfinished trace by the exit status.
    metatfc(here, &["verify", "open.mtf"]).exits(3);
    // Corruption takes precedence over a missing footer.
    run(here, &["dump", "-"], &open[..open.len() - 3]).exits(1);
}

/// Checks `--tail` with 200 records. The index contains the position of the last records, so preceding ones are not
/// read.
fn last_records(here: &Folder) {
    let all = metatfc(here, &["dump", "whole.mtf"]).exits(0).text();
    let lines: Vec<_> = all.lines().collect();
    for tail in [0, 1, 3, 49, 50, 51, 199, 200, 201] {
        let last = metatfc(here, &["dump", "--tail", &tail.to_string(), "whole.mtf"]).exits(0).text();
        let expected = &lines[200_usize.saturating_sub(tail)..];
        assert_eq!(last.lines().collect::<Vec<_>>(), expected, "{tail}");
    }
    let whole = here.read("whole.mtf");
    let mut damaged = whole.clone();
    let mut reader = metatf::container::Reader::from_slice(&whole).expect("a trace");
    let groups = reader.chunks().expect("chunks").iter().filter(|chunk| chunk.is_group_start());
    let starts: Vec<_> = groups.map(|chunk| usize::try_from(chunk.offset).expect("a length")).collect();
    // Change the last byte of the third group and then of the first.
    for (next, before) in [(3, "; 100 records before it are intact"), (1, "CRC-32C mismatch")] {
        damaged.clone_from(&whole);
        damaged[starts[next] - 1] ^= 0xff;
        here.write("damaged.mtf", &damaged);
        metatfc(here, &["dump", "damaged.mtf"]).exits(1).says(before);
        metatfc(here, &["dump", "--threads", "1", "damaged.mtf"]).exits(1).says(before);
    }
    let last = metatfc(here, &["dump", "--tail", "3", "damaged.mtf"]).exits(0).text();
    assert_eq!(last.lines().collect::<Vec<_>>(), &lines[197..]);
}
