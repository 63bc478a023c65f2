//! `metatfc diff`.
#![allow(clippy::expect_used, reason = "a test")]

use crate::common::{metatfc, run};
use metatf_test::Folder;
use serde_json::Value;
use std::path::Path;

const DTD: &str = "\
time.width = 2;
time.interpretation = delta 0;
section heap 1 {
    alloc: (tag, time, size, address, name) {
        tag.value = 4;
        size.width = 2;     size.interpretation = none;
        address.width = 4;  address.interpretation = none;  address.format = \"hex\";
        name.width = 1;     name.interpretation = sectionOffset 2;
    }
    list: (tag, time, n*value) {
        tag.value = 5;
        n.width = 1;        n.interpretation = none;
        value.width = 1;    value.interpretation = baseOffset 0;
    }
}
section marks 3 {
    mark: (tag, time, vfield) { tag.value = 4;  vfield.data.format = \"utf8\"; }
}
section names 2 {
    text: vfield { vfield.data.format = \"utf8\"; }
}
section loose 4 {
    number: (value) { value.width = 4;  value.interpretation = none; }
}
";

const LINES: &[&str] = &[
    r#"{"@section":"names","@record":"text","vfield":"int"}"#,
    r#"{"@section":"names","@record":"text","vfield":"char"}"#,
    r#"{"@section":"loose","@record":"number","value":7}"#,
    r#"{"@section":"loose","@record":"number","value":8}"#,
    r#"{"@section":"heap","@record":"alloc","time":10,"size":64,"address":4096,"name":0}"#,
    r#"{"@section":"marks","@record":"mark","time":15,"vfield":"begin"}"#,
    r#"{"@section":"heap","@record":"comment","text":"halfway"}"#,
    r#"{"@section":"heap","@record":"alloc","time":20,"size":5000,"address":8192,"name":4}"#,
    r#"{"@section":"heap","@record":"list","time":30,"n":2,"value":[1,5]}"#,
];

/// Returns the lines with single spaces.
fn words(text: &str) -> String {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

/// Creates a directory with `a.dtd` and the trace `a.mtf`.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.dtd", DTD);
    encode(&folder, LINES, "a.mtf", &[]);
    folder
}

fn encode(here: &Path, lines: &[&str], out: &str, options: &[&str]) {
    let args = [&["convert", "--dtd", "a.dtd"], options, &["-", out]].concat();
    run(here, &args, lines.join("\n").as_bytes()).exits(0);
}

/// Returns the lines with one string replaced.
fn changed(from: &str, to: &str) -> Vec<String> {
    assert_eq!(LINES.iter().filter(|l| l.contains(from)).count(), 1, "{from}");
    LINES.iter().map(|l| l.replace(from, to)).collect()
}

fn encode_changed(here: &Path, from: &str, to: &str) {
    let lines = changed(from, to);
    encode(here, &lines.iter().map(String::as_str).collect::<Vec<_>>(), "b.mtf", &[]);
}

#[test]
fn encodings_make_no_difference() {
    let folder = folder();
    let here = &folder;
    let ways: &[&[&str]] = &[
        &["--codec", "stored", "--order", "big", "--class", "1"],
        &["--codec", "lz4", "--chunk", "1", "--filter", "transpose"],
        &["--version", "0", "--order", "big"],
        &["--no-embed-dtd"],
    ];
    for way in ways {
        encode(here, LINES, "b.mtf", way);
        for args in [&["diff", "--dtd", "a.dtd", "a.mtf", "b.mtf"], &["diff", "--dtd", "a.dtd", "b.mtf", "a.mtf"]] {
            let same = metatfc(here, args).exits(0);
            assert_eq!((same.text(), same.err), (String::new(), String::new()), "{way:?}");
        }
    }
    // Metadata, which only changes how values are stored, and the order of a table's elements make no difference.
    let mut lines = LINES.to_vec();
    lines.insert(4, r#"{"@section":"heap","@record":"metadata","record":4,"field":2,"property":0,"value":8}"#);
    lines.insert(5, r#"{"@section":"heap","@record":"metadata","record":4,"field":3,"property":3,"value":0}"#);
    lines.swap(0, 1);
    let lines: Vec<String> =
        lines.iter().map(|l| l.replace("\"name\":4", "\"name\":9").replace("\"name\":0", "\"name\":5")).collect();
    let lines: Vec<String> = lines.iter().map(|l| l.replace("\"name\":9", "\"name\":0")).collect();
    encode(here, &lines.iter().map(String::as_str).collect::<Vec<_>>(), "b.mtf", &[]);
    metatfc(here, &["diff", "--order", "a.mtf", "b.mtf"]).exits(0);
    let input = here.read("b.mtf");
    run(here, &["diff", "a.mtf", "-"], &input).exits(0);
}

#[test]
fn a_changed_value_is_told() {
    let folder = folder();
    let here = &folder;
    let cases = [
        ("\"size\":5000", "\"size\":5001", "heap alloc 2 size 5000 != 5001\n"),
        ("\"address\":4096", "\"address\":4352", "heap alloc 0 address 0x1000 != 0x1100\n"),
        ("[1,5]", "[1,6]", "heap list 3 value[1] 5 != 6\n"),
        (
            "\"n\":2,\"value\":[1,5]",
            "\"n\":1,\"value\":[1]",
            "heap list 3 n 2 != 1\nheap list 3 value[1] 5 != (none)\n",
        ),
        ("halfway", "half way", "heap comment 2 vfield \"halfway\" != \"half way\"\n"),
        ("begin", "end", "marks mark 1 vfield \"begin\" != \"end\"\n"),
        ("\"value\":8", "\"value\":9", "loose number 1 value 8 != 9\n"),
        // Only the referenced element differs.
        (
            "char",
            "long",
            "heap alloc 2 name {\"offset\":4,\"element\":{\"vfield\":\"char\"}} != {\"offset\":4,\"element\":{\"vfield\":\"long\"}}\n",
        ),
    ];
    for (from, to, told) in cases {
        encode_changed(here, from, to);
        let run = metatfc(here, &["diff", "--details", "a.mtf", "b.mtf"]).exits(1);
        assert!(words(&run.text()).ends_with(told), "{from}: {}", run.text());
        metatfc(here, &["diff", "--quiet", "a.mtf", "b.mtf"]).exits(1);
    }
    let json = metatfc(here, &["diff", "--format", "json", "a.mtf", "b.mtf"]).exits(1).text();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let difference = &json["differences"][0];
    assert_eq!(
        (&json["same"], &difference["field"], &difference["left"]["number"]),
        (&false.into(), &"name".into(), &2.into())
    );
    assert_eq!(difference["values"][1]["element"]["vfield"], "long");
}

#[test]
fn records_more_and_others() {
    let folder = folder();
    let here = &folder;
    encode(here, &LINES[..7], "b.mtf", &[]);
    metatfc(here, &["diff", "a.mtf", "b.mtf"])
        .exits(1)
        .prints("heap alloc 2         b.mtf ends here; a.mtf contains 2 more");
    metatfc(here, &["diff", "b.mtf", "a.mtf"])
        .exits(1)
        .prints("heap alloc 2         b.mtf ends here; a.mtf contains 2 more");
    let mut lines = LINES.to_vec();
    lines.swap(7, 8);
    encode(here, &lines, "b.mtf", &[]);
    metatfc(here, &["diff", "a.mtf", "b.mtf"]).exits(1).prints("  alloc 2 != list 2\n");
    // The order of records in different sections is compared only with `--order`.
    let mut lines = LINES.to_vec();
    lines.swap(4, 5);
    encode(here, &lines, "b.mtf", &[]);
    metatfc(here, &["diff", "a.mtf", "b.mtf"]).exits(0);
    metatfc(here, &["diff", "--order", "a.mtf", "b.mtf"]).exits(1).prints("  alloc 0 != mark 0\n");
}

#[test]
fn what_is_compared() {
    let folder = folder();
    let here = &folder;
    encode_changed(here, "\"size\":5000", "\"size\":5001");
    for ignored in ["size", "alloc.size", "alloc", "list,size"] {
        metatfc(here, &["diff", "--ignore", ignored, "a.mtf", "b.mtf"]).exits(0);
    }
    metatfc(here, &["diff", "--ignore", "list.size", "a.mtf", "b.mtf"]).exits(2).says("`list.size`");
    metatfc(here, &["diff", "--ignore", "time", "a.mtf", "b.mtf"]).exits(1);
    metatfc(here, &["diff", "--section", "marks,loose", "a.mtf", "b.mtf"]).exits(0);
    metatfc(here, &["diff", "--section", "nothing", "a.mtf", "b.mtf"]).exits(2).says("`nothing`");
    encode_changed(here, "halfway", "there");
    metatfc(here, &["diff", "--ignore", "comment", "a.mtf", "b.mtf"]).exits(0);
    // No record refers to the third table element, so it is reported only if its section is compared.
    let mut lines = LINES.to_vec();
    lines.insert(2, r#"{"@section":"names","@record":"text","vfield":"more"}"#);
    encode(here, &lines, "b.mtf", &[]);
    metatfc(here, &["diff", "a.mtf", "b.mtf"]).exits(0);
    metatfc(here, &["diff", "--section", "names", "a.mtf", "b.mtf"])
        .exits(1)
        .prints("names text 2         a.mtf ends here; b.mtf contains 1 more");
}

#[test]
fn only_the_first_are_told() {
    let folder = folder();
    let here = &folder;
    let lines: Vec<String> = LINES.iter().map(|l| l.replace("\"time\":", "\"time\":1")).collect();
    encode(here, &lines.iter().map(String::as_str).collect::<Vec<_>>(), "b.mtf", &[]);
    let told = |max: &str| metatfc(here, &["diff", "--max", max, "a.mtf", "b.mtf"]).exits(1).text();
    let ends = "heap alloc 0 time 10 != 110\nthere are more differences; to list them, use --max\n";
    assert!(words(&told("1")).ends_with(ends), "{}", told("1"));
    assert_eq!(told("0").lines().filter(|line| line.contains("  time  ")).count(), 4);
    assert_eq!(told("9"), told("0"));
}

/// A summary by record type precedes the differences.
#[test]
fn a_summary_comes_first() {
    let folder = folder();
    let here = &folder;
    let diff = |options: &[&str]| metatfc(here, &[&["diff"], options, &["a.mtf", "b.mtf"]].concat()).exits(1).text();
    let shown = || words(&diff(&[]));
    encode_changed(here, "[1,5]", "[2,6]");
    assert_eq!(
        shown(),
        "a.mtf and b.mtf\n\
         record left right compared differ fields\n\
         heap list 1 1 1 1 value in 1\n\
         no differences in 6 records of 4 types\n\n\
         FIRST DIFFERENCE\n\
         record field left != right\n\
         heap list 3 value[0] 1 != 2\n\
         there are more differences; to list them, use --details\n"
    );
    encode(here, &LINES[..8], "b.mtf", &[]);
    assert_eq!(
        shown(),
        "a.mtf and b.mtf\n\
         record left right compared differ fields\n\
         heap list 1 0 0 0\n\
         no differences in 6 records of 4 types\n\n\
         FIRST DIFFERENCE\n\
         record field left != right\n\
         heap list 3 b.mtf ends here; a.mtf contains 1 more\n"
    );
    // After two records that do not match, the remaining records are counted but not compared.
    let mut lines = LINES.iter().map(|line| line.replace("\"size\":64", "\"size\":65")).collect::<Vec<_>>();
    lines.swap(7, 8);
    encode(here, &lines.iter().map(String::as_str).collect::<Vec<_>>(), "b.mtf", &[]);
    assert_eq!(
        shown(),
        "a.mtf and b.mtf\n\
         record left right compared differ fields\n\
         heap alloc 2 2 1 1 size in 1\n\
         heap list 1 1 0 0\n\
         no differences in 4 records of 3 types\n\
         heap is out of step from alloc 2 (left) and list 2 (right); later records are only counted\n\n\
         FIRST DIFFERENCE\n\
         record field left != right\n\
         heap alloc 0 size 64 != 65\n\
         there are more differences; to list them, use --details\n"
    );
    let json: Value = serde_json::from_str(&diff(&["--format", "json"])).expect("JSON");
    let alloc = json["records"].as_array().expect("records").iter().find(|record| record["record"] == "alloc");
    let expected = serde_json::json!({
        "section": "heap", "record": "alloc", "left": 2, "right": 2, "compared": 1, "differ": 1, "fields": { "size": 1 },
    });
    assert_eq!(alloc, Some(&expected));
    assert_eq!(json["out_of_step"][0]["right"]["record"], "list");
    assert_eq!(json["differences"].as_array().map(Vec::len), Some(3));
}

const RUN: &str = "\
section heap 1 {
    alloc: (tag, when, size, address) {
        tag.value = 4;
        when.width = 8;     when.interpretation = none;     when.format = \"time_ns\";
        size.width = 2;     size.interpretation = none;
        address.width = 8;  address.interpretation = none;
    }
    free: (tag, when, block) {
        tag.value = 5;
        when.width = 8;     when.interpretation = none;     when.format = \"time_ns\";
        block.width = 8;    block.interpretation = none;    block.format = \"hex\";
    }
}
";

/// Two runs of a program differ in start time and addresses, and `--ignore` can exclude both.
#[test]
fn two_recordings() {
    let folder = Folder::new();
    let here = &folder;
    here.write("run.dtd", RUN);
    let run_of = |out: &str, start: u64, addresses: [u64; 3]| {
        let [a, b, freed] = addresses;
        let lines = format!(
            r#"{{"@section":"heap","@record":"alloc","when":{start},"size":16,"address":{a}}}
            {{"@section":"heap","@record":"alloc","when":{},"size":32,"address":{b}}}
            {{"@section":"heap","@record":"free","when":{},"block":{freed}}}"#,
            start + 5,
            start + 7
        );
        run(here, &["convert", "--dtd", "run.dtd", "-", out], lines.as_bytes()).exits(0);
    };
    run_of("a.mtf", 100, [0x1000, 0x2000, 0x1000]);
    run_of("b.mtf", 900, [0x51000, 0x92000, 0x51000]);
    // This run frees the other block.
    run_of("c.mtf", 900, [0x51000, 0x92000, 0x92000]);
    let all = metatfc(here, &["diff", "a.mtf", "b.mtf"]).exits(1).text();
    assert!(words(&all).contains("heap alloc 2 2 2 2 when in 2, address in 2\n"), "{all}");
    metatfc(here, &["diff", "--ignore", "time", "a.mtf", "b.mtf"]).exits(1).prints("  address in 2\n");
    metatfc(here, &["diff", "--ignore", "address-base", "a.mtf", "b.mtf"]).exits(1).prints("  when in 2\n");
    let both = |other: &str| metatfc(here, &["diff", "--ignore", "time,address-base", "a.mtf", other]);
    assert_eq!(both("b.mtf").exits(0).text(), "");
    both("c.mtf").exits(1).prints("heap free 2  block  0x1000 != 0x92000\n");
    // `time-base` is not a keyword.
    metatfc(here, &["diff", "--ignore", "time-base", "a.mtf", "b.mtf"]).exits(2).says("`time-base`");
}

/// Values are printed with the names that the DTD defines, as in a dump.
#[test]
fn names_of_values() {
    let folder = Folder::new();
    let here = &folder;
    here.write(
        "a.dtd",
        "section s 1 { r: (tag, state, mode, ok, host) { tag.value = 4; \
         state.width = 1; state.interpretation = none; state.values = \"0 running, 7 zombie\"; \
         mode.width = 1; mode.interpretation = none; mode.flags = \"0 read, 1 write\"; \
         ok.width = 1; ok.interpretation = none; ok.format = \"bool\"; \
         host.width = 4; host.interpretation = none; host.format = \"ipv4\"; } }",
    );
    encode(here, &[r#"{"@section":"s","@record":"r","state":0,"mode":1,"ok":false,"host":"127.0.0.1"}"#], "a.mtf", &[]);
    encode(here, &[r#"{"@section":"s","@record":"r","state":7,"mode":3,"ok":true,"host":"10.0.0.1"}"#], "b.mtf", &[]);
    let told = metatfc(here, &["diff", "--details", "a.mtf", "b.mtf"]).exits(1).text();
    for told_value in
        ["state running != zombie", "mode read != read|write", "ok false != true", "host 127.0.0.1 != 10.0.0.1"]
    {
        assert!(words(&told).contains(told_value), "{told}");
    }
}

#[test]
fn other_dtds_by_name() {
    let folder = folder();
    let here = &folder;
    let dtd = DTD
        .replace("tag, time, size, address, name", "tag, name, address, size, extra")
        .replace("section marks 3", "section stops 3")
        .replace("time.width = 2;\n", "extra.interpretation = default 3;\ntime.width = 4;\n");
    here.write("b.dtd", dtd);
    let lines: Vec<String> = LINES
        .iter()
        .filter(|l| !l.contains("marks"))
        .map(|l| {
            if l.contains("alloc") {
                l.replace("\"time\":10,", "\"extra\":3,").replace("\"time\":20,", "\"extra\":3,")
            } else {
                (*l).to_owned()
            }
        })
        .collect();
    run(here, &["convert", "--dtd", "b.dtd", "-", "b.mtf"], lines.join("\n").as_bytes()).exits(0);
    let same = metatfc(here, &["diff", "a.mtf", "b.mtf"]).exits(0);
    assert_eq!(
        same.text(),
        "a.mtf and b.mtf\n  only in a.mtf: field alloc.time\n  only in b.mtf: field alloc.extra\n  only in a.mtf: section marks\n  only in b.mtf: section stops\n"
    );
    std::fs::write(here.join("c.dtd"), "section other 1 { x: (y) { tag.value = 4; y.interpretation = default 0; } }")
        .expect("a file");
    run(here, &["convert", "--dtd", "c.dtd", "-", "c.mtf"], b"").exits(0);
    metatfc(here, &["diff", "a.mtf", "c.mtf"]).exits(1).prints("no record type in common");
}

#[test]
fn metadata_counts_where_it_is_asked_for() {
    let folder = folder();
    let here = &folder;
    here.write("a.dtd", format!("// Another text.\n{DTD}"));
    encode(here, LINES, "b.mtf", &[]);
    metatfc(here, &["diff", "a.mtf", "b.mtf"]).exits(0);
    metatfc(here, &["diff", "--metadata", "a.mtf", "b.mtf"]).exits(1).prints("their text differs");
    metatfc(here, &["diff", "--metadata", "b.mtf", "b.mtf"]).exits(0);
}

#[test]
fn traces_that_cannot_be_read() {
    let folder = folder();
    let here = &folder;
    let whole = here.read("a.mtf");
    here.write("torn.mtf", &whole[..whole.len() / 2]);
    metatfc(here, &["diff", "a.mtf", "torn.mtf"]).exits(1).says("torn.mtf: ");
    metatfc(here, &["diff", "a.mtf", "none.mtf"]).exits(1).says("none.mtf: No such file");
    metatfc(here, &["diff", "-", "-"]).exits(2).says("standard input");
    metatfc(here, &["diff", "a.mtf"]).exits(2);
}
