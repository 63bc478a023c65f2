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
