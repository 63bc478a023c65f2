//! `metatfc diff`.
#![allow(clippy::expect_used, reason = "a test")]

mod common;

use common::{metatfc, run};
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

/// A folder with `a.dtd`, and the trace `a.mtf`.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.dtd", DTD);
    encode(&folder, LINES, "a.mtf", &[]);
    folder
}

fn encode(here: &Path, lines: &[&str], out: &str, options: &[&str]) {
    let args = [&["encode", "--dtd", "a.dtd"], options, &["-", out]].concat();
    run(here, &args, lines.join("\n").as_bytes()).exits(0);
}

/// The lines, one of them with a text in the place of another.
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
    // Metadata changes how values are stored, and a table may stand in another order.
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
        ("\"size\":5000", "\"size\":5001", "heap alloc 2: size: 5000 != 5001\n"),
        ("\"address\":4096", "\"address\":4352", "heap alloc 0: address: 0x1000 != 0x1100\n"),
        ("[1,5]", "[1,6]", "heap list 3: value[1]: 5 != 6\n"),
        (
            "\"n\":2,\"value\":[1,5]",
            "\"n\":1,\"value\":[1]",
            "heap list 3: n: 2 != 1\nheap list 3: value[1]: 5 != (none)\n",
        ),
        ("halfway", "half way", "heap comment 2: vfield: \"halfway\" != \"half way\"\n"),
        ("begin", "end", "marks mark 1: vfield: \"begin\" != \"end\"\n"),
        ("\"value\":8", "\"value\":9", "loose number 1: value: 8 != 9\n"),
        // Only the element that an offset leads to differs.
        (
            "char",
            "long",
            "heap alloc 2: name: {\"offset\":4,\"element\":{\"vfield\":\"char\"}} != {\"offset\":4,\"element\":{\"vfield\":\"long\"}}\n",
        ),
    ];
    for (from, to, told) in cases {
        encode_changed(here, from, to);
        let run = metatfc(here, &["diff", "a.mtf", "b.mtf"]).exits(1);
        assert_eq!(run.text(), told, "{from}");
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
        .prints("heap alloc 2: a.mtf has 2 more from here, b.mtf has no more");
    metatfc(here, &["diff", "b.mtf", "a.mtf"]).exits(1).prints("heap alloc 2: a.mtf has 2 more from here");
    let mut lines = LINES.to_vec();
    lines.swap(7, 8);
    encode(here, &lines, "b.mtf", &[]);
    metatfc(here, &["diff", "a.mtf", "b.mtf"]).exits(1).prints("heap alloc 2 != list 2\n");
    // The order of records of different sections is no value.
    let mut lines = LINES.to_vec();
    lines.swap(4, 5);
    encode(here, &lines, "b.mtf", &[]);
    metatfc(here, &["diff", "a.mtf", "b.mtf"]).exits(0);
    metatfc(here, &["diff", "--order", "a.mtf", "b.mtf"]).exits(1).prints("heap alloc 0 != mark 0\n");
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
    // Nothing points at the table's third element, so that only its name brings it in.
    let mut lines = LINES.to_vec();
    lines.insert(2, r#"{"@section":"names","@record":"text","vfield":"more"}"#);
    encode(here, &lines, "b.mtf", &[]);
    metatfc(here, &["diff", "a.mtf", "b.mtf"]).exits(0);
    metatfc(here, &["diff", "--section", "names", "a.mtf", "b.mtf"]).exits(1).prints("names text 2: b.mtf has 1 more");
}

#[test]
fn only_the_first_are_told() {
    let folder = folder();
    let here = &folder;
    let lines: Vec<String> = LINES.iter().map(|l| l.replace("\"time\":", "\"time\":1")).collect();
    encode(here, &lines.iter().map(String::as_str).collect::<Vec<_>>(), "b.mtf", &[]);
    let told = |max: &str| metatfc(here, &["diff", "--max", max, "a.mtf", "b.mtf"]).exits(1).text();
    assert_eq!(told("1"), "heap alloc 0: time: 10 != 110\nstopped after 1 difference (--max)\n");
    assert_eq!(told("0").lines().count(), 4);
    assert_eq!(told("9"), told("0"));
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
    run(here, &["encode", "--dtd", "b.dtd", "-", "b.mtf"], lines.join("\n").as_bytes()).exits(0);
    let same = metatfc(here, &["diff", "a.mtf", "b.mtf"]).exits(0);
    assert_eq!(
        same.text(),
        "only in a.mtf: field alloc.time\nonly in b.mtf: field alloc.extra\nonly in a.mtf: section marks\nonly in b.mtf: section stops\n"
    );
    std::fs::write(here.join("c.dtd"), "section other 1 { x: (y) { tag.value = 4; y.interpretation = default 0; } }")
        .expect("a file");
    run(here, &["encode", "--dtd", "c.dtd", "-", "c.mtf"], b"").exits(0);
    metatfc(here, &["diff", "a.mtf", "c.mtf"]).exits(1).prints("no record in common");
}

#[test]
fn metadata_counts_where_it_is_asked_for() {
    let folder = folder();
    let here = &folder;
    here.write("a.dtd", format!("// Another text.\n{DTD}"));
    encode(here, LINES, "b.mtf", &[]);
    metatfc(here, &["diff", "a.mtf", "b.mtf"]).exits(0);
    metatfc(here, &["diff", "--metadata", "a.mtf", "b.mtf"]).exits(1).prints("the texts of the DTDs differ");
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
