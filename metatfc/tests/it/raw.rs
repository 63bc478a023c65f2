//! Tests each command that reads headerless files, and salvaging of corrupt ones, with the beginning of a real log of
//! the Memory Pool System.

use super::common::{metatfc, run};
use metatf_test::{Folder, Run};
use std::collections::BTreeMap;

const LOG: &[u8] = include_bytes!("../mps/mps.raw");
const RAW: [&str; 3] = ["--raw", "--order", "little"];

fn mps(here: &Folder, command: &[&str]) -> Run {
    metatfc(here, &[command, &RAW, &["--dtd", "mps"]].concat())
}

fn lines(run: &Run) -> usize {
    run.out.iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn each_command_reads_one() {
    let here = &Folder::new();
    here.write("mps.log", LOG);
    let records = lines(&mps(here, &["dump", "mps.log"]).exits(0));
    mps(here, &["verify", "mps.log"]).exits(0).prints(&format!("whole: {records} records"));
    mps(here, &["stat", "mps.log"])
        .exits(0)
        .prints("raw, class 2, little-endian")
        .prints(&format!("{records}  and 0 stream"));
    mps(here, &["stat", "--format", "json", "mps.log"]).exits(0).prints("\"version\": null");
    // Converting to a trace and back yields the same file with any encoding.
    for profile in ["fast", "archive"] {
        mps(here, &["convert", "mps.log", "mps.mtf", "--profile", profile]).exits(0);
        metatfc(here, &["convert", "mps.mtf", "again.log", "--to", "raw"]).exits(0);
        assert_eq!(here.read("again.log"), LOG, "{profile}");
    }
    // The same holds with another DTD.
    mps(here, &["convert", "mps.log", "mps.mtf", "--to-dtd", "mps-split", "--profile", "archive"]).exits(0);
    metatfc(here, &["convert", "mps.mtf", "again.log", "--to-dtd", "mps", "--to", "raw"]).exits(0);
    assert_eq!(here.read("again.log"), LOG);
    run(here, &[&["verify", "-", "--dtd", "mps"][..], &RAW].concat(), LOG).exits(0).prints("standard input: whole");
    metatfc(here, &[&["stat", "mps.log"][..], &RAW].concat()).exits(2).says("--raw with --order requires a DTD");
    metatfc(here, &["stat", "mps.log", "--skip-bytes", "3"]).exits(2).says("--raw");
    // The file format is recognized.
    metatfc(here, &["verify", "mps.log"]).exits(0).prints(&format!("whole: {records} records"));
    metatfc(here, &["convert", "mps.log", "mps.mtf", "--to-dtd", "mps-split"]).exits(0);
    metatfc(here, &["convert", "mps.mtf", "again.log", "--to-dtd", "mps", "--to", "raw"]).exits(0);
    assert_eq!(here.read("again.log"), LOG);
    // A single event is not sufficient to recognize the format.
    here.write("first.log", &LOG[..50]);
    metatfc(here, &["dump", "first.log"]).exits(1).says("its first bytes match none of hprof, mps");
}

#[test]
fn what_is_whole_is_salvaged() {
    let here = &Folder::new();
    here.write("mps.log", LOG);
    let records = lines(&mps(here, &["dump", "mps.log"]).exits(0));
    let mut damaged = LOG.to_vec();
    damaged.truncate(LOG.len() - 5);
    damaged[LOG.len() / 2..][..100].fill(0xee);
    here.write("damaged.log", damaged);
    let run = mps(here, &["dump", "--salvage", "damaged.log"]).exits(0);
    let left = lines(&run);
    assert!(left < records && records - left < 10, "{left} of {records}");
    run.says("damaged (offset").says("the total number of lost records is unknown");
    let verified = mps(here, &["verify", "damaged.log", "--salvage", "whole.mtf"]).exits(1);
    verified.says("damaged.log: offset").says("lost: bytes").says(&format!("{left} records salvaged into"));
    metatfc(here, &["verify", "whole.mtf"]).exits(0).prints(&format!("whole: {left} records"));
    // A header precedes the log.
    here.write("headed.log", [b"a header\n", LOG].concat());
    // The first bytes of the header look like an event that the DTD does not define.
    mps(here, &["dump", "headed.log"]).exits(1).says("headed.log: offset");
    assert_eq!(lines(&mps(here, &["dump", "--skip-bytes", "9", "headed.log"]).exits(0)), records);
    assert_eq!(lines(&mps(here, &["dump", "--salvage", "headed.log"]).exits(0)), records);
    mps(here, &["dump", "--skip-bytes", "99999999", "headed.log"]).exits(0);
}

/// Returns the log with the codes of some events changed to undefined ones, and the number of events by code.
fn newer() -> (Vec<u8>, BTreeMap<u16, usize>) {
    let (mut log, mut codes, mut at) = (LOG.to_vec(), BTreeMap::new(), 0);
    for event in 0.. {
        let Some(head) = log.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>()) else { break };
        let [low, high, rest @ ..] = *head;
        at += usize::from(u16::from_le_bytes(rest));
        let code = match event % 7 {
            3 => 0x300 | u16::from_le_bytes([low, high]),
            5 => 0,
            _ => continue,
        };
        head[..2].copy_from_slice(&code.to_le_bytes());
        *codes.entry(code).or_default() += 1;
    }
    assert_eq!(at, log.len());
    (log, codes)
}

#[test]
fn events_of_another_version_are_stepped_over() {
    let here = &Folder::new();
    let (log, codes) = newer();
    here.write("mps.log", LOG);
    here.write("newer.log", &log);
    let records = lines(&mps(here, &["dump", "mps.log"]).exits(0));
    let unknown: usize = codes.values().sum();
    assert_eq!(lines(&mps(here, &["dump", "newer.log"]).exits(0)), records);
    for (code, count) in &codes {
        let wanted = format!("tag == {code}");
        let run = mps(here, &["dump", "--format", "jsonl", "--where", &wanted, "newer.log"]).exits(0);
        assert_eq!(lines(&run), *count, "{wanted}");
        run.prints(&format!("\"@record\":\"other\",\"tag\":{code},"));
    }
    let counted = mps(here, &["stat", "newer.log"]).exits(0);
    counted.prints(&format!("0x0 {}", codes[&0])).prints(&format!("{unknown} "));
    // Converting to a trace and back yields the same file, with columns of one DTD and with streams of the other.
    for how in [&["--profile", "fast"][..], &["--profile", "archive", "--to-dtd", "mps-split"]] {
        mps(here, &[&["convert", "newer.log", "newer.mtf"], how].concat()).exits(0);
        metatfc(here, &["convert", "newer.mtf", "again.log", "--to-dtd", "mps", "--to", "raw"]).exits(0);
        assert_eq!(here.read("again.log"), log, "{how:?}");
    }
    // The same holds through JSON lines.
    let json = mps(here, &["dump", "--format", "jsonl", "newer.log"]).exits(0);
    run(here, &["convert", "--dtd", "mps", "-", "again.mtf"], &json.out).exits(0);
    metatfc(here, &["convert", "again.mtf", "again.log", "--to", "raw"]).exits(0);
    assert_eq!(here.read("again.log"), log);
    // Sorting loses no event.
    mps(here, &["sort", "newer.log", "-o", "sorted.mtf"]).exits(0);
    metatfc(here, &["verify", "sorted.mtf"]).exits(0).prints(&format!("whole: {records} records"));
    // An unknown event must not use the code of a defined event.
    let taken = String::from_utf8_lossy(&json.out).replacen("\"tag\":0,", "\"tag\":6,", 1);
    run(here, &["convert", "--dtd", "mps", "-", "taken.mtf"], taken.as_bytes())
        .exits(1)
        .says("tag 6 belongs to another");
}

/// Recoding is refused if a tag of the catch-all record belongs to a named record in the target DTD, or if only one of
/// the DTDs has a catch-all record.
#[test]
fn another_dtd_has_the_tag() {
    let here = &Folder::new();
    let dtd = |named: &str, tag: &str| {
        format!(
            "tag.width = 2; size.width = 2; size.interpretation = none; section s 1 {{ {named}
            other: (tag, size) {{ tag.value = {tag}; }} }}"
        )
    };
    here.write("old.dtd", dtd("", "other"));
    here.write("new.dtd", dtd("named: (tag, size) { tag.value = 768; }", "other"));
    here.write("one.dtd", dtd("", "768"));
    let line = r#"{"@section":"s","@record":"other","tag":768,"size":6}"#;
    run(here, &["convert", "--dtd", "old.dtd", "-", "old.mtf"], line.as_bytes()).exits(0);
    let recode = |dtd| metatfc(here, &["convert", "old.mtf", "new.mtf", "--to-dtd", dtd]).exits(1);
    recode("new.dtd").says("tag 768 belongs to another record");
    recode("one.dtd").says("other.tag");
    run(here, &["convert", "--dtd", "one.dtd", "-", "one.mtf"], line.replace("\"tag\":768,", "").as_bytes()).exits(0);
    metatfc(here, &["convert", "one.mtf", "new.mtf", "--to-dtd", "old.dtd"])
        .exits(1)
        .says("other has one tag in the trace but any tag in the target");
    metatfc(here, &["diff", "old.dtd", "new.dtd"]).exits(0).prints("no break").prints("named  record added");
    metatfc(here, &["diff", "old.dtd", "one.dtd"])
        .prints("tag: other, now 768")
        .prints("any tag not used by another record");
}

#[test]
fn what_is_no_raw_stream() {
    let here = &Folder::new();
    let dtd = "section s 1 { r: (tag, a) { tag.value = 4; a.width = 1; a.interpretation = none; } }
        section t 2 { q: (tag, b) { tag.value = 4; b.width = 1; b.interpretation = none; } }";
    here.write("two.dtd", dtd);
    let (small, large) = (r#"{"@section":"s","@record":"r","a":7}"#, r#"{"@section":"s","@record":"r","a":777}"#);
    let other = r#"{"@section":"t","@record":"q","b":7}"#;
    for (text, problem) in [(large.to_owned(), "widths"), (format!("{small}\n{other}"), "records of only one section")]
    {
        run(here, &["convert", "--dtd", "two.dtd", "-", "two.mtf"], text.as_bytes()).exits(0);
        metatfc(here, &["convert", "two.mtf", "two.raw", "--to", "raw"]).exits(1).says("two.raw").says(problem);
        assert!(!here.join("two.raw").exists());
    }
    run(here, &["convert", "--dtd", "two.dtd", "-", "two.mtf"], small.as_bytes()).exits(0);
    metatfc(here, &["convert", "two.mtf", "two.raw", "--to", "raw"]).exits(0);
    assert_eq!(here.read("two.raw"), [4, 7]);
    metatfc(here, &["convert", "two.mtf", "two.raw", "--to", "raw", "--plan", "optimal"]).exits(2);
}
