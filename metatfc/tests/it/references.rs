//! Offsets into stream sections: `verify` and `convert` report offsets at which no element begins.

use super::common::{metatfc, run, written};
use metatf_test::{Folder, Run};

const DTD: &str = "section log 1 {
    path.width = 2; path.interpretation = sectionOffset 2;
    n.width = 1; n.interpretation = none;
    kind.width = 2; kind.interpretation = sectionOffset 3;
    access: (path, n) { tag.value = 4; }
    several: (n*path, kind) { tag.value = 5; }
    number: (x) { tag.value = 6; x.width = 2; x.interpretation = none; }
}
section paths 2 { text: vfield { vfield.data.format = \"utf8\"; } }
section kinds 3 { kind_of: (of, name) {
    of.width = 2; of.interpretation = sectionOffset 2; name.width = 1; name.interpretation = none;
} }";

const ACCESS: &str = r#""access","path":0,"n":1"#;
/// Elements of 2 and 4 bytes.
const PATHS: [&str; 2] = [r#""text","vfield":"a""#, r#""text","vfield":"bcd""#];

fn folder() -> Folder {
    let here = Folder::new();
    here.write("s.dtd", DTD);
    here
}

/// Returns a JSON line of a section, given its record and fields.
fn line(section: &str, fields: &str) -> String {
    format!("{{\"@section\":\"{section}\",\"@record\":{fields}}}\n")
}

fn shared(fields: &str) -> String {
    line("paths", fields).replace("}\n", ",\"@shared\":true}\n")
}

fn write(here: &Folder, name: &str, lines: &str, version: u8) {
    written(here, name, DTD, lines, version);
}

fn verify(here: &Folder, name: &str, threads: &str) -> Run {
    metatfc(here, &["verify", "--dtd", "s.dtd", "--threads", threads, name])
}

#[test]
fn a_reference_into_an_empty_table() {
    let here = &folder();
    let lines = line("log", r#""number","x":7"#) + "\n" + &line("log", ACCESS);
    let refused = run(here, &["convert", "--dtd", "s.dtd", "-", "no.mtf"], lines.as_bytes()).exits(1);
    refused.says(
        "standard input:3: record `access`: `path` is 0, but no element of section `paths` starts at that offset",
    );
    assert!(!std::path::Path::new(&here.path("no.mtf")).exists());
    for version in [0, 1] {
        write(here, "s.mtf", &lines, version);
        for threads in ["1", "4"] {
            verify(here, "s.mtf", threads)
                .exits(1)
                .says("section 2 has no element at offset 0 (section log, record access, leaf path");
        }
    }
}

#[test]
fn references_that_lead_to_elements() {
    let here = &folder();
    let elements = PATHS.map(|path| line("paths", path)).concat() + &line("kinds", r#""kind_of","of":2,"name":5"#);
    let records = [
        line("log", ACCESS),
        line("log", r#""several","n":2,"path":[2,0],"kind":0"#),
        line("log", r#""several","n":0,"path":[],"kind":0"#),
    ]
    .concat();
    // Elements of a group may come after records that refer to them.
    let of_group = |lines: &str| records.clone() + lines;
    let shared: String = PATHS.map(shared).concat();
    let group = "{\"@group\":1}\n";
    let access = line("log", ACCESS);
    for (what, lines) in [
        ("before", elements.clone() + &records),
        ("behind", of_group(&elements)),
        ("a table", shared.clone() + &access + group + &access + &line("log", r#""access","path":2,"n":1"#)),
    ] {
        run(here, &["convert", "--dtd", "s.dtd", "-", "s.mtf"], lines.as_bytes()).exits(0);
        for threads in ["1", "4"] {
            verify(here, "s.mtf", threads).exits(0).prints("whole");
        }
        metatfc(here, &["dump", "--resolve", "s.mtf"]).exits(0);
        assert!(!what.is_empty());
    }
    // The next group cannot refer to elements of this group.
    let lost = elements + &records + group + &access;
    let refused = run(here, &["convert", "--dtd", "s.dtd", "-", "no.mtf"], lost.as_bytes()).exits(1);
    refused.says("standard input:8: record `access`: `path` is 0");
    write(here, "s.mtf", &lost, 1);
    for threads in ["1", "4"] {
        verify(here, "s.mtf", threads).exits(1).says("section 2 has no element at offset 0");
    }
}

#[test]
fn references_beside_elements() {
    let here = &folder();
    let elements = PATHS.map(|path| line("paths", path)).concat() + &line("kinds", r#""kind_of","of":2,"name":5"#);
    for (record, field, offset) in [
        // Offsets in the middle of an element and after the last element.
        (line("log", r#""access","path":1,"n":1"#), "path", 1),
        (line("log", r#""access","path":6,"n":1"#), "path", 6),
        (line("log", r#""access","path":9999,"n":1"#), "path", 9999),
        (line("log", r#""several","n":2,"path":[0,3],"kind":0"#), "path", 3),
        (line("log", r#""several","n":1,"path":[0],"kind":3"#), "kind", 3),
        (line("kinds", r#""kind_of","of":3,"name":5"#), "of", 3),
        // A number that metadata turns into a reference.
        (
            line("log", r#""metadata","record":6,"field":1,"property":5,"value":2"#)
                + &line("log", r#""number","x":4"#),
            "x",
            4,
        ),
    ] {
        let lines = elements.clone() + &record;
        let refused = run(here, &["convert", "--dtd", "s.dtd", "-", "no.mtf"], lines.as_bytes()).exits(1);
        refused.says(&format!("`{field}` is {offset}, but no element"));
        for version in [0, 1] {
            write(here, "s.mtf", &lines, version);
            verify(here, "s.mtf", "1").exits(1).says(&format!("has no element at offset {offset} (section "));
        }
    }
}

/// If several threads read many groups, the first dangling reference is reported, whichever thread finds it.
#[test]
fn the_first_of_many_groups() {
    let here = &folder();
    let mut lines = PATHS.map(shared).concat();
    for group in 0..40_u32 {
        if group > 0 {
            lines += &format!("{{\"@group\":{group}}}\n");
        }
        let offset = if group < 23 { group % 2 * 2 } else { 100 + group };
        lines += &line("log", &format!(r#""access","path":{offset},"n":{}"#, group % 2)).repeat(3);
    }
    write(here, "s.mtf", &lines, 1);
    for threads in ["1", "2", "4"] {
        verify(here, "s.mtf", threads).exits(1).says("section 2 has no element at offset 123 ");
    }
    let refused = run(here, &["convert", "--dtd", "s.dtd", "-", "no.mtf"], lines.as_bytes()).exits(1);
    refused.says("standard input:95: record `access`: `path` is 123");
}

/// A dangling reference has no element in any output, and the records after it follow.
#[test]
fn records_with_dangling_references_are_read() {
    let here = &folder();
    let access = |path| line("log", &format!(r#""access","path":{path},"n":1"#));
    let lines = PATHS.map(shared).concat()
        + &access(0)
        + &access(99)
        + &access(3)
        + &line("log", r#""several","n":2,"path":[2,7],"kind":8"#);
    write(here, "s.mtf", &lines, 1);
    for threads in ["1", "4"] {
        verify(here, "s.mtf", threads).exits(1).says("section 2 has no element at offset 99");
    }
    let dump = |more: &[&str]| metatfc(here, &[&["dump", "--format", "jsonl", "s.mtf"], more].concat()).exits(0).text();
    let with = |dumped: &str| {
        dumped
            .lines()
            .map(|line| line.split_once("\"path\":").map_or("", |(_, rest)| rest).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(with(&dump(&[])), ["0,\"n\":1}", "99,\"n\":1}", "3,\"n\":1}", "[2,7],\"kind\":8}"]);
    assert_eq!(
        with(&dump(&["--resolve"])),
        [
            r#"{"offset":0,"element":{"vfield":"a"}},"n":1}"#,
            r#"{"offset":99,"element":null},"n":1}"#,
            r#"{"offset":3,"element":null},"n":1}"#,
            r#"[{"offset":2,"element":{"vfield":"bcd"}},{"offset":7,"element":null}],"kind":{"offset":8,"element":null}}"#,
        ]
    );
    metatfc(here, &["dump", "--resolve", "s.mtf"]).exits(0).prints("path={\"offset\":99,\"element\":null}");
    // What `dump` prints is rejected like the trace.
    let printed = dump(&["--all", "--resolve"]);
    run(here, &["convert", "--dtd", "s.dtd", "-", "no.mtf"], printed.as_bytes()).exits(1).says("`path` is 99, but");
    let warned = metatfc(here, &["convert", "s.mtf", "tables", "--to", "csv"]).exits(0);
    warned.says("s.mtf: warning: 3 references to missing elements; the values are null");
    assert_eq!(here.text("tables/access.csv"), "@number,path,n\n0,a,1\n1,,1\n2,,1\n");
    assert_eq!(here.text("tables/several.csv"), "@number,n,path,kind\n3,2,\"[\"\"bcd\"\",null]\",8\n");
    metatfc(here, &["convert", "s.mtf", "s.sqlite"]).exits(0);
    let chosen =
        metatfc(here, &["convert", "s.mtf", "-", "--to", "csv", "--record", "access", "--where", "path = 'a'"]);
    assert_eq!(chosen.exits(0).text(), "@number,path,n\n0,a,1\n");
    let stored = ["convert", "s.mtf", "-", "--to", "csv", "--record", "access", "--stored"];
    assert_eq!(metatfc(here, &stored).exits(0).text(), "@number,path,n\n0,0,1\n1,99,1\n2,3,1\n");
    let strict = metatfc(here, &["convert", "s.mtf", "a.csv", "--record", "access", "--strict"]).exits(1);
    strict.says("section 2 has no element at offset 99 (section log, record access, leaf path");
    // Copies keep the numbers.
    metatfc(here, &["convert", "s.mtf", "copy.mtf"]).exits(0);
    metatfc(here, &["diff", "s.mtf", "copy.mtf"]).exits(0);
    assert_eq!(
        dump(&["--resolve"]),
        metatfc(here, &["dump", "--format", "jsonl", "--resolve", "copy.mtf"]).exits(0).text()
    );
}

/// The DTD of records that refer to paths by strings, at several depths.
const STRINGS: &str = "section log 1 {
    path.width = 2; path.interpretation = sectionOffset 2;
    n.width = 1; n.interpretation = none;
    get: (path, n) { tag.value = 4; }
    several: (n*path, box) { tag.value = 5; }
    number: (at) { tag.value = 6; at.width = 2; at.interpretation = sectionOffset 3; }
    box: (path) {}
}
section paths 2 { text: vfield { vfield.data.format = \"utf8\"; } }
section points 3 { point: (x, y) { x.width = 1; x.interpretation = none; y.width = 1; y.interpretation = none; } }";

#[test]
fn strings_in_place_of_references() {
    let here = &Folder::new();
    here.write("s.dtd", STRINGS);
    let get = |path: &str| line("log", &format!(r#""get","path":{path},"n":1"#));
    let lines = get(r#""/index.html""#)
        + &line("log", r#""several","n":3,"path":["a","/index.html",""],"box":{"path":"\u0001\"ü"}"#)
        + &get(r#""/index.html""#);
    for version in ["0", "1"] {
        run(
            here,
            &["convert", "--dtd", "s.dtd", "--version", version, "--url", "s.dtd", "-", "s.mtf"],
            lines.as_bytes(),
        )
        .exits(0);
        metatfc(here, &["verify", "s.mtf"]).exits(0).prints("3 records, 4 stream elements");
        let printed = metatfc(here, &["dump", "--format", "jsonl", "--names", "s.mtf"]).exits(0).text();
        assert_eq!(printed, lines);
        // With --all, the elements are printed, too, and references are numbers.
        let all = metatfc(here, &["dump", "--format", "jsonl", "--names", "--all", "s.mtf"]).exits(0).text();
        assert!(all.contains("\"path\":[12,0,14]"), "{all}");
        run(here, &["convert", "--dtd", "s.dtd", "-", "all.mtf"], all.as_bytes()).exits(0);
        assert_eq!(metatfc(here, &["dump", "--format", "jsonl", "--names", "all.mtf"]).exits(0).text(), lines);
    }
    // A string refers to an element of an earlier line, and numbers and strings can be mixed.
    let mixed = shared(r#""text","vfield":"a""#)
        + &shared(r#""text","vfield":"bcd""#)
        + &get(r#""bcd""#)
        + &get("2")
        + &get(r#""e""#)
        + &get("6");
    run(here, &["convert", "--dtd", "s.dtd", "-", "s.mtf"], mixed.as_bytes()).exits(0);
    let printed = metatfc(here, &["dump", "--format", "jsonl", "--names", "s.mtf"]).exits(0).text();
    assert_eq!(printed, get(r#""bcd""#).repeat(2) + &get(r#""e""#).repeat(2));
    // A dangling reference stays a number.
    written(here, "s.mtf", STRINGS, &(shared(r#""text","vfield":"a""#) + &get("0") + &get("1")), 1);
    let printed = metatfc(here, &["dump", "--format", "jsonl", "--names", "--dtd", "s.dtd", "s.mtf"]).exits(0).text();
    assert_eq!(printed, get(r#""a""#) + &get("1"));
}

#[test]
fn strings_that_cannot_be_read() {
    let here = &Folder::new();
    here.write("s.dtd", STRINGS);
    let get = |path: &str| line("log", &format!(r#""get","path":{path},"n":1"#));
    let refused = |lines: &str, message: &str| {
        run(here, &["convert", "--dtd", "s.dtd", "-", "no.mtf"], lines.as_bytes()).exits(1).says(message);
        assert!(!std::path::Path::new(&here.path("no.mtf")).exists());
    };
    let first = get(r#""a""#);
    for (path, message) in [
        ("true", "standard input:2: `path`: expected an integer from 0 to 2^64-1, found true (column 42)"),
        ("[\"a\"]", "standard input:2: `path`: expected an integer from 0 to 2^64-1, found [\"a\"] (column 42)"),
        (
            "{\"hex\":\"0\"}",
            "`path`: expected a string of hex digits, two per byte, such as \"00ff\", found \"0\" (column 42)",
        ),
        ("\"\\x\"", "standard input:2: expected a JSON object: invalid escape (column 44)"),
        ("\"\\ud800\"", "standard input:2: expected a JSON object: unexpected end of hex escape"),
        ("\"a\u{1}\"", "standard input:2: expected a JSON object: control character"),
        ("-1", "`path`: expected an integer from 0 to 2^64-1, found -1 (column 42)"),
    ] {
        refused(&(first.clone() + &get(path)), message);
    }
    // Strings replace references only to sections of strings.
    refused(
        &line("log", r#""number","at":"a""#),
        "standard input:1: `at`: expected an integer from 0 to 2^64-1, found \"a\" (column 43)",
    );
    // Elements of a group are not a shared table.
    let why = "a field contains a string of a section, but elements of the section are not in a shared table";
    refused(&(line("paths", r#""text","vfield":"a""#) + &first), &format!("standard input:2: `path`: {why}"));
    refused(&(first.clone() + &line("paths", r#""text","vfield":"a""#)), &format!("standard input:2: {why}"));
    // A long string is stored, unless its length does not fit in the table, which has no metadata.
    let long = |length: usize| get(&format!("\"{}\"", "x".repeat(length)));
    run(here, &["convert", "--dtd", "s.dtd", "-", "s.mtf"], long(255).as_bytes()).exits(0);
    refused(
        &(first.clone() + &long(256)),
        "standard input:2: `path`: the value 256 does not fit in 1 bytes (section paths",
    );
    refused(&(first.clone() + &long(65 << 20)), "standard input:2: the line is longer than 64 MiB");
    // Enough strings make the offsets wider than declared.
    let many: String = (0..500).map(|n| get(&format!("\"{n:0>200}\""))).collect();
    run(here, &["convert", "--dtd", "s.dtd", "-", "s.mtf"], many.as_bytes()).exits(0);
    assert_eq!(metatfc(here, &["dump", "--format", "jsonl", "--names", "s.mtf"]).exits(0).text(), many);
    run(here, &["convert", "--dtd", "s.dtd", "--strict", "-", "no.mtf"], many.as_bytes())
        .exits(1)
        .says("standard input:328: ");
}
