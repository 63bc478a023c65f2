//! Tests `sort`, headerless logs and labels with the beginning of a real log of the Memory Pool System.

use super::common::{metatfc, run};
use super::folder;
use metatf_test::{Folder, root, run_with, skip};
use std::fmt::Write as _;
use std::process::Command;

const LOG: &[u8] = include_bytes!("../mps/mps.raw");

fn python() -> bool {
    Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The output equals that of the Memory Pool System's own printer, which sorts events and shows labels.
#[test]
fn events_read_as_their_own_printer_has_them() {
    if !python() {
        return skip("python3 is not there");
    }
    let here = &Folder::new();
    here.write("mps.log", LOG);
    metatfc(
        here,
        &["sort", "--raw", "--class", "2", "--order", "little", "--dtd", "mps", "mps.log", "-o", "sorted.mtf"],
    )
    .exits(0);
    let lines = metatfc(here, &["dump", "--resolve", "--format", "jsonl", "sorted.mtf"]).exits(0);
    let text = run_with(&mut Command::new(root().join("dev/scripts/mps-text")), &lines.out).exits(0);
    assert_eq!(text.text(), include_str!("../mps/mps.txt"));
    let labelled = r#"pool=0x7f4591b6f0b8  extendBy=32768"#;
    metatfc(here, &["dump", "--resolve", "sorted.mtf"]).exits(0).prints(r#"["VMArena"]"#).prints(labelled);
    // A dump with labels can be encoded again.
    run(here, &["convert", "--dtd", "mps", "-", "again.mtf"], &lines.out).exits(0);
    metatfc(here, &["diff", "sorted.mtf", "again.mtf"]).exits(0);
}

/// A field may be an integer in one event and a floating-point number or an address in another. It is printed
/// accordingly.
#[test]
fn fields_of_one_name_and_several_types() {
    if !python() {
        return skip("python3 is not there");
    }
    let here = &Folder::new();
    let (mut log, mut expected) = (Vec::new(), String::new());
    for line in std::fs::read_to_string(root().join("dev/scripts/mps-events.tsv")).expect("the table").lines().skip(1) {
        let [code, name, _, _, layout, parameters @ ..] = &line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let code = u16::from_str_radix(code.trim_start_matches("0x"), 16).expect("a code");
        let mut sorts = parameters.concat();
        sorts.retain(|c| !c.is_whitespace() || c == ' ');
        let mut sorts =
            sorts.split(' ').filter(|sort| !sort.is_empty()).map(|sort| sort.split_once(':').expect("a sort"));
        if sorts.clone().any(|(sort, _)| sort == "S") {
            continue;
        }
        let (mut fields, mut count, mut shown) = (Vec::new(), String::new(), String::new());
        for c in layout.trim_start_matches('<').chars() {
            if c.is_ascii_digit() {
                count.push(c);
                continue;
            }
            if c == 'x' {
                fields.extend(vec![0; count.parse().unwrap_or(1)]);
                count.clear();
                continue;
            }
            let (sort, field) = sorts.next().expect("a parameter");
            // An integer that would be an unusual double, and a double whose bits would be an unusual integer.
            let word = 0x1234 + fields.len() as u64;
            match sort {
                "D" => fields.extend(0.25_f64.to_le_bytes()),
                "U" => fields.extend(7_u32.to_le_bytes()),
                "B" => fields.push(1),
                _ => fields.extend(word.to_le_bytes()),
            }
            let text = match sort {
                "D" => "   0.250".to_owned(),
                "U" => "7".to_owned(),
                "B" => "True".to_owned(),
                _ => format!("{word:016X}"),
            };
            write!(shown, "{field}:{text} ").expect("a string");
        }
        log.extend([code.to_le_bytes(), u16::try_from(16 + fields.len()).expect("short").to_le_bytes()].concat());
        log.extend([&[0; 4][..], &u64::from(code).to_le_bytes(), &fields].concat());
        writeln!(expected, "{code:016X} {code:04X} {name:<19} {shown}").expect("a string");
    }
    here.write("all.log", log);
    let raw = ["dump", "--raw", "--class", "2", "--order", "little", "--dtd", "mps"];
    let lines = metatfc(here, &[&raw[..], &["--resolve", "--format", "jsonl", "all.log"]].concat()).exits(0);
    let text = run_with(&mut Command::new(root().join("dev/scripts/mps-text")), &lines.out).exits(0);
    assert_eq!(text.text(), expected);
    metatfc(here, &[&raw[..], &["all.log"]].concat())
        .exits(0)
        .prints("spare=0.25")
        .prints("spare=4668")
        .prints("limit=4668  ")
        .prints("limit=0x");
}

#[test]
fn the_dtd_is_what_the_script_makes() {
    if !python() {
        return skip("python3 is not there");
    }
    for (options, dtd) in [(&[][..], "dtds/mps.dtd"), (&["--split"], "dtds/mps-split.dtd")] {
        let made = run_with(Command::new(root().join("dev/scripts/mps-dtd")).args(options), b"").exits(0);
        assert_eq!(made.text(), std::fs::read_to_string(root().join(dtd)).expect("the DTD"));
    }
}

/// Data that exceeds the memory limit is sorted in runs and merged 128 at a time, with the same result.
#[test]
fn runs_are_merged() {
    let here = &Folder::new();
    here.write("n.dtd", "section s 1 { r: (tag, n, i, vfield) { tag.value = 4; n.width = 1; n.interpretation = none; i.width = 4;
        i.interpretation = none; vfield.data.format = \"utf8\"; } note: vfield { tag.value = 5; vfield.data.format = \"utf8\"; } }");
    let mut lines = String::new();
    for i in 0..60_000_u64 {
        let n = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
        writeln!(lines, r#"{{"@section":"s","@record":"r","n":{n},"i":{i},"vfield":"{i:>9}"}}"#).expect("a string");
        if i % 1000 == 0 {
            writeln!(lines, r#"{{"@section":"s","@record":"note","vfield":"{i}"}}"#).expect("a string");
            writeln!(lines, r#"{{"@section":"s","@record":"comment","text":"{i}"}}"#).expect("a string");
        }
    }
    run(here, &["convert", "--dtd", "n.dtd", "-", "n.mtf"], lines.as_bytes()).exits(0);
    metatfc(here, &["sort", "--by", "n", "n.mtf", "-o", "whole.mtf"]).exits(0);
    metatfc(here, &["sort", "--by", "r.n", "n.mtf", "-o", "no.mtf"]).exits(2);
    metatfc(here, &["sort", "--by", "n", "--memory", "1", "n.mtf", "-o", "runs.mtf"]).exits(0);
    assert!(here.read("whole.mtf") == here.read("runs.mtf"), "other traces");
    // Compare with a stable sort, in which records without `n` stay after the preceding record.
    let mut sorted: Vec<(u64, &str)> = Vec::new();
    for line in lines.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let last = sorted.last().map_or(0, |last| last.0);
        sorted.push((value.get("n").and_then(serde_json::Value::as_u64).unwrap_or(last), line));
    }
    sorted.sort_by_key(|line| line.0);
    let wanted: Vec<&str> = sorted.iter().map(|line| line.1).filter(|line| !line.contains("comment")).collect();
    let found = metatfc(here, &["dump", "--format", "jsonl", "runs.mtf"]).exits(0).text();
    assert!(found.lines().eq(wanted), "another order");
}

/// Sorting keeps referenced tables, and references remain correct.
#[test]
fn tables_are_kept() {
    let here = &folder();
    metatfc(here, &["sort", "--by", "time", "a.mtf", "-o", "sorted.mtf"]).exits(0);
    let of = |trace| metatfc(here, &["dump", "--format", "jsonl", "--resolve", trace]).exits(0).text();
    assert_eq!(of("a.mtf"), of("sorted.mtf"));
}

#[test]
fn what_cannot_be_sorted_is_said() {
    let here = &folder();
    metatfc(here, &["sort", "a.mtf", "-o", "-"]).exits(2).says("--by FIELD");
    metatfc(here, &["sort", "--by", "hour", "a.mtf", "-o", "-"]).exits(2).says("no field `hour`");
    metatfc(here, &["sort", "--by", "value", "a.mtf", "-o", "-"])
        .exits(2)
        .says("value of record list is repeated, but the field must be an integer that occurs once");
    metatfc(here, &["sort", "--raw", "--class", "2", "--order", "little", "a.mtf", "-o", "-"])
        .exits(2)
        .says("--dtd FILE");
    here.write("torn.log", LOG.get(..LOG.len() - 3).unwrap_or_default());
    let torn = ["sort", "--raw", "--class", "2", "--order", "little", "--dtd", "mps", "torn.log", "-o", "out.mtf"];
    metatfc(here, &torn).exits(1).says("torn.log");
    assert!(!here.join("out.mtf").exists(), "a trace is left");
}

/// If the DTD assigns other codes to the predefined records, the codes 1 to 3 are available, and metadata is recognized
/// by its new code.
#[test]
fn predefined_records_have_other_tags() {
    let here = &Folder::new();
    here.write(
        "m.dtd",
        "comment.tag.value = 250; section.tag.value = 251; metadata.tag.value = 252;
        section s 1 { a: (tag, n) { tag.value = 1; n.width = 1; n.interpretation = none; } b: (tag, t) { tag.value = 3;
        t.width = 5; t.interpretation = none; } c: (tag, t) { tag.value = 2; t.width = 12; t.interpretation = none;
        t.format = \"cstring\"; } }",
    );
    let bytes = b"\x01\x07\xfa\x02hi\x03abcde\x02text\0\x01\0\0\0\0\0\0\xfc\x01\x01\x10\x02\x01\x07\x01";
    here.write("m.raw", bytes);
    let raw =
        ["dump", "--raw", "--class", "1", "--order", "little", "--dtd", "m.dtd", "--format", "jsonl", "--all", "m.raw"];
    let lines = metatfc(here, &raw).exits(0);
    insta::assert_snapshot!(lines.text());
    for version in ["0", "1"] {
        run(here, &["convert", "--version", version, "--dtd", "m.dtd", "-", "m.mtf"], &lines.out).exits(0);
        let again = metatfc(here, &["dump", "--format", "jsonl", "m.mtf"]).exits(0).text();
        let data =
            lines.text().lines().filter(|l| l.contains("\"a\"") || l.contains("\"b\"") || l.contains("\"c\"")).count();
        assert_eq!(again.lines().count(), data);
    }
}
