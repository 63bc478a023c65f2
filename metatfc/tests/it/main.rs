//! Tests the exit status, standard output and standard error of every command.
#![allow(clippy::expect_used, reason = "a test")]

mod c_records;
mod cases;
mod common;
mod compat;
mod conditions;
mod csv;
mod diff;
mod doc;
mod emit_c;
mod files;
mod fixes;
mod follow;
mod gallery;
mod hostile;
mod import;
#[cfg(feature = "lint")]
mod lint;
mod logs;
#[cfg(feature = "lsp")]
mod lsp;
mod merge;
mod names;
mod optional;
mod prints;
mod raw;
mod read_c;
mod recode;
mod recode_failures;
mod recode_plans;
mod references;
mod reports;
mod salvage;
mod shown;
mod sort;
mod spans;
mod tables;
mod telemetry;
mod threads;
mod times;
mod vectors;

use common::{metatfc, run};
use metatf_test::{Folder, vectors};
use std::path::Path;
use std::process::{Command, Stdio};

const DTD: &str = "\
tag.width = 1;
time.width = 2;
time.interpretation = delta 0;
section heap 1 {
    // A block.
    alloc: (tag, time, size, address, name) {
        tag.value = 4;
        size.width = 2;
        size.interpretation = none;
        size.unit = \"bytes\";
        address.width = 4;
        address.interpretation = none;
        address.format = \"hex\";
        name.width = 1;
        name.interpretation = sectionOffset 2;
    }
    list: (tag, time, n*value) {
        tag.value = 5;
        n.width = 1;
        n.interpretation = none;
        value.width = 1;
        value.interpretation = baseOffset 0;
        value.format = \"signed\";
    }
}
section names 2 {
    text: vfield {
        vfield.data.format = \"utf8\";
    }
}
";

const LINES: &str = r#"{"@section":"heap","@record":"alloc","time":10,"size":64,"address":4096,"name":0}
{"@section":"heap","@record":"alloc","time":20,"size":5000,"address":8192,"name":4}
{"@section":"heap","@record":"comment","text":"halfway"}
{"@section":"heap","@record":"list","time":30,"n":2,"value":[-1,5]}
{"@section":"heap","@record":"metadata","record":4,"field":2,"property":0,"value":4}
{"@section":"heap","@record":"alloc","time":40,"size":70000,"address":65535,"name":0}
{"@section":"names","@record":"text","vfield":"int"}
{"@section":"names","@record":"text","vfield":"char, long"}
"#;

/// The element to which a name with offset 0 refers.
const NAME: &str = r#"{"@section":"names","@record":"text","vfield":"int"}"#;

/// Creates a directory with `a.dtd`, `a.jsonl`, and the trace `a.mtf`.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.dtd", DTD);
    folder.write("a.jsonl", LINES);
    metatfc(&folder, &["convert", "--dtd", "a.dtd", "--codec", "stored", "a.jsonl", "a.mtf"]).exits(0);
    folder
}

#[test]
fn usage() {
    let here = Path::new(".");
    metatfc(here, &[]).exits(2);
    metatfc(here, &["nonsense"]).exits(2).says("nonsense");
    metatfc(here, &["dump", "no-such-file"]).exits(1).says("no-such-file: No such file");
}

#[test]
fn new_makes_a_format_that_works() {
    let folder = Folder::new();
    let here = &folder;
    metatfc(here, &["new", "spans"]).exits(0).prints("spans.dtd");
    metatfc(here, &["check", "--deny-warnings", "spans.dtd"]).exits(0);
    metatfc(here, &["fmt", "--check", "spans.dtd"]).exits(0);
    metatfc(here, &["gen", "spans.dtd"]).exits(0).prints("struct Begin");
    let before = here.read("spans.dtd");
    metatfc(here, &["new", "spans"]).exits(1).says("already exists and was not changed");
    assert_eq!(here.read("spans.dtd"), before);
    metatfc(here, &["new", "-"]).exits(0).prints("section events 1");
    metatfc(here, &["new", ""]).exits(2);
}

/// Errors in arguments describe the expected number or file.
#[test]
fn arguments_that_are_no_numbers_or_no_files() {
    let folder = folder();
    let here = &folder;
    metatfc(here, &["dump", "a.mtf", "--head", "-1"]).exits(2).says("'--head <N>': expected an integer of at least 0");
    metatfc(here, &["dump", "a.mtf", "--tail", "x"]).exits(2).says("expected an integer");
    metatfc(here, &["stat", "a.mtf", "--threads", "0"]).exits(2).says("expected a number from 1 to 1024");
    metatfc(here, &["convert", "a.mtf", "b.mtf", "--chunk", "-1"]).exits(2).says("expected a size from 1 to 32M");
    for command in ["dump", "stat", "verify", "check", "fmt", "show", "gen"] {
        metatfc(here, &[command, "."]).exits(1).says(". is a directory, not a file");
    }
    metatfc(here, &["convert", "--dtd", "a.dtd", "a.jsonl", "."]).exits(1).says(". is a directory, not a file");
}

#[test]
fn bytes_that_are_written_as_numbers() {
    let folder = folder();
    let here = &folder;
    let dtd = "section s 1 { r: (tag, a, b) { tag.value = 4; a.width = 12; a.interpretation = none; \
               b.width = 10; b.interpretation = none; b.format = \"utf8\"; } }";
    here.write("bytes.dtd", dtd);
    let wrong = |a: &str, b: &str| {
        let line = format!(r#"{{"@section":"s","@record":"r","a":{a},"b":{b}}}"#);
        run(here, &["convert", "--dtd", "bytes.dtd", "-", "-"], line.as_bytes()).exits(1)
    };
    wrong("[1,2,255]", "\"hi\"")
        .says("`a`: expected bytes in hex, found an array of numbers: write \"0102ff\" instead");
    wrong("[1,2,3,4,5,6,7,8,9,10,11,12]", "\"hi\"").says("\"0102030405060708..\"");
    wrong("5", "\"hi\"").says("`a`: expected a string of hex digits, two per byte, such as \"00ff\", found 5");
    wrong("\"0x\"", "\"hi\"")
        .says("`a`: expected a string of hex digits, two per byte, such as \"00ff\", found \"0x\"");
    wrong("\"000102030405060708090a0b\"", "[104,105]")
        .says("`b`: expected bytes in hex, found an array of numbers: write {\"hex\":\"6869\"} instead");
    run(here, &["convert", "--dtd", "bytes.dtd", "-", "-"], b"{\"a\":}")
        .exits(1)
        .says("expected a JSON object: expected value (column 6)");
}

/// The error names the file that could not be written, and contains the system's message but no input offset.
#[test]
fn outputs_that_cannot_be_written() {
    let folder = folder();
    let here = &folder;
    let commands: &[&[&str]] = &[
        &["convert", "--dtd", "a.dtd", "a.jsonl", "/dev/full"],
        &["convert", "a.mtf", "/dev/full"],
        &["gen", "a.dtd", "-o", "/dev/full"],
    ];
    let error = "metatfc: /dev/full: No space left on device (os error 28)\n";
    for args in commands {
        let run = metatfc(here, args).exits(1);
        assert_eq!(run.err, error, "{args:?}");
    }
    let run = metatfc(here, &["verify", "--salvage", "/dev/full", "a.mtf"]).exits(4);
    assert_eq!(run.err, format!("{error}metatfc: /dev/full: not written\n"));
}

#[test]
fn check() {
    let folder = folder();
    let here = &folder;
    let clean = metatfc(here, &["check", "a.dtd"]).exits(0);
    assert_eq!((clean.text().as_str(), clean.err.as_str()), ("", ""));
    here.write("bad.dtd", "tag.width = 1;\ntag.width = 3;\n");
    metatfc(here, &["check", "a.dtd", "bad.dtd"]).exits(1).says("bad.dtd:2:").says("1 error");
    let json = metatfc(here, &["check", "--message-format", "json", "bad.dtd"]).exits(1).text();
    let message: serde_json::Value = serde_json::from_str(json.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&message["file"], &message["line"]), (&"bad.dtd".into(), &2.into()));
    assert!(message["code"].as_str().is_some_and(|c| c.starts_with('E')) && message["severity"] == "error");
    here.write("warn.dtd", format!("attributes.width = 1;\n{DTD}"));
    metatfc(here, &["check", "warn.dtd"]).exits(0).says("attributes");
    metatfc(here, &["check", "--deny-warnings", "warn.dtd"]).exits(1);
    metatfc(here, &["check", "--explain", "E0104"]).exits(0).prints("Specification");
    metatfc(here, &["check", "--explain", "E9999"]).exits(2);
    metatfc(here, &["check"]).exits(2);
    metatfc(here, &["check", "none.dtd", "bad.dtd"]).exits(1).says("none.dtd: ").says("bad.dtd:2:");
    run(here, &["check", "-"], b"a.width = ;").exits(1).says(":1:11");
}

#[test]
fn fmt() {
    let folder = folder();
    let here = &folder;
    let ugly = DTD.replace("\n    ", "\n");
    here.write("ugly.dtd", &ugly);
    metatfc(here, &["fmt", "--check", "ugly.dtd"]).exits(1).prints("ugly.dtd");
    assert_eq!(here.text("ugly.dtd"), ugly);
    let formatted = run(here, &["fmt", "-"], ugly.as_bytes()).exits(0);
    metatfc(here, &["fmt", "ugly.dtd"]).exits(0);
    assert_eq!(here.read("ugly.dtd"), formatted.out);
    metatfc(here, &["fmt", "--check", "ugly.dtd"]).exits(0);
    run(here, &["fmt", "-"], b"a: (").exits(1);
}

#[test]
fn r#gen() {
    let folder = folder();
    let here = &folder;
    let code = metatfc(here, &["gen", "a.dtd"]).exits(0).text();
    metatfc(here, &["gen", "a.dtd", "-o", "a.rs"]).exits(0);
    assert_eq!(here.text("a.rs"), code);
    metatfc(here, &["gen", "--rename", "alloc=Block", "a.dtd"]).exits(0).prints("struct Block");
    metatfc(here, &["gen", "--rename", "nothing=Block", "a.dtd"]).exits(2).says("nothing");
    metatfc(here, &["gen", "--expect-width", "address=8", "HATF10"])
        .exits(0)
        .prints("ExpectedWidth::new(super::FreeInHeap::leaf(1), 8)");
    metatfc(here, &["gen", "--expect-width", "address=9", "HATF10"]).exits(2).says("0 to 8 bytes");
    metatfc(here, &["gen", "HATF10"]).exits(0).prints("HATF10.dtd");
}

#[test]
fn show() {
    let folder = folder();
    let here = &folder;
    let text = metatfc(here, &["show", "a.dtd"]).exits(0).prints("alloc, tag 4").text();
    assert!(text.contains("delta 0 (global)") && text.contains("with list.time") && text.contains("  A block.\n"));
    assert_eq!(metatfc(here, &["show", "a.mtf"]).exits(0).text(), text.replace("a.dtd", "a.mtf"));
    let json = metatfc(here, &["show", "--format", "json", "a.dtd"]).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let leaf = &json["sections"][1]["records"][0]["leaves"][2];
    assert_eq!((&leaf["path"], &leaf["unit"], &leaf["width"]), (&"size".into(), &"bytes".into(), &"2".into()));
}

#[test]
fn show_annotations() {
    let folder = folder();
    folder.write("noted.dtd", format!("time.owner = \"ops\"; time.\"widht\" = 3 + 4;\n{DTD}"));
    let text = metatfc(&folder, &["show", "noted.dtd"]).exits(0).prints("annotations").text();
    assert!(text.contains("owner = \"ops\", widht = 3 + 4"), "{text}");
}

/// A model is shown as written, with the record that it depends on if it is a different one.
#[test]
fn show_predicted_fields() {
    let folder = folder();
    let here = &folder;
    let dtd = "section heap 1 {
            used.width = 1; used.interpretation = predicted 1 lastValue 0x4 2;
            alloc: (tag, used, by, at) { tag.value = 4; by.interpretation = predicted 1 (stride, fcm 3 by used, dfcm 1 by tag) 2;
                at.interpretation = predicted 1 heap allocated used by free.at 2; }
            free: (tag, at) { tag.value = 5; at.width = 2; at.interpretation = predicted 1 (heap freed by alloc.by) 2; }
            touch: (tag, used, at) { tag.value = 6; at.interpretation = predicted 1 heap used 2; }
        }
        section misses 2 { miss: (value) { value.width = 8; value.interpretation = none; } }";
    here.write("p.dtd", dtd);
    let text = metatfc(here, &["show", "p.dtd"]).exits(0).text();
    for shown in [
        "predicted 1 lastValue 4 2 (section heap)  with touch.used",
        "by     1                   predicted 1 (stride, fcm 3 by used, dfcm 1 by tag) 2 (block of alloc)",
        "predicted 1 heap allocated used by free.at 2 (block of alloc)",
        "at     2 (block of free)  predicted 1 heap freed by alloc.by 2 (block of free)",
        "predicted 1 heap used 2 (block of touch)",
    ] {
        assert!(text.lines().any(|line| words(line).contains(&words(shown))), "{shown} is not in\n{text}");
    }
}

/// Returns a line with single spaces.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn dump_formats() {
    let folder = folder();
    let here = &folder;
    let data: Vec<&str> = LINES.lines().filter(|l| l.contains("alloc") || l.contains("list")).collect();
    let jsonl = metatfc(here, &["dump", "--format", "jsonl", "a.mtf"]).exits(0).text();
    assert_eq!(jsonl.lines().collect::<Vec<_>>(), data);
    let hex = metatfc(here, &["dump", "--format", "hex", "--all", "a.mtf"]).exits(0).text();
    let set = hex.lines().find(|l| l.contains("70000")).expect("the widened size");
    let metadata = hex.lines().find(|l| l.starts_with("heap metadata at ")).expect("the metadata record");
    let offset = metadata.strip_prefix("heap metadata at ").expect("an offset");
    assert!(set.ends_with(&format!("[set by the metadata record at {offset}]")), "{set}");
    assert!(set.contains("70 11 01 00"), "{set}");
    let resolved = metatfc(here, &["dump", "--format", "jsonl", "--resolve", "--head", "1", "a.mtf"]).exits(0);
    resolved.prints(r#""name":{"offset":0,"element":{"vfield":"int"}}"#);
}

#[test]
fn dump_selects() {
    let folder = folder();
    let here = &folder;
    let lines = |args: &[&str]| {
        let args = [&["dump", "--format", "jsonl"], args, &["a.mtf"]].concat();
        metatfc(here, &args).exits(0).text().lines().count()
    };
    assert_eq!(lines(&[]), 4);
    assert_eq!(lines(&["--where", "size > 4_096"]), 2);
    assert_eq!(lines(&["--where", "size == 0x40 || value < 0"]), 2);
    assert_eq!(lines(&["--where", "!(size > 64) && @record == \"alloc\""]), 1);
    assert_eq!(lines(&["--record", "alloc", "--head", "2"]), 2);
    assert_eq!(lines(&["--record", "alloc", "--skip", "1"]), 2);
    assert_eq!(lines(&["--skip", "3"]), 1);
    assert_eq!(lines(&["--skip", "30"]), 0);
    assert_eq!(lines(&["--tail", "2"]), 2);
    assert_eq!(lines(&["--tail", "0"]), 0);
    assert_eq!(lines(&["--all"]), 8);
    assert_eq!(lines(&["--all", "--tail", "2"]), 5, "two data records, and what follows the first");
    assert_eq!(lines(&["--all", "--section", "names"]), 2);
    assert_eq!(lines(&["--all", "--where", "vfield == \"int\""]), 1);
    let tail = metatfc(here, &["dump", "--format", "jsonl", "--tail", "1", "a.mtf"]).exits(0);
    tail.prints("70000");
    for (condition, message) in [
        ("size >", "expected a field"),
        ("sizes > 1", "unknown field `sizes`"),
        ("size == \"x\"", "cannot compare `size` (a number) with \"x\""),
        ("(size > 1", "not closed"),
    ] {
        metatfc(here, &["dump", "--where", condition, "a.mtf"]).exits(2).says(message);
    }
    metatfc(here, &["dump", "--record", "nothing", "a.mtf"]).exits(2).says("alloc");
    metatfc(here, &["dump", "--section", "nothing", "a.mtf"]).exits(2).says("heap");
    metatfc(here, &["dump", "--section", "names", "a.mtf"]).exits(2).says("--all");
}

#[test]
fn dump_finds_the_dtd() {
    let folder = folder();
    let here = &folder;
    let encode = ["convert", "--dtd", "a.dtd", "--no-embed-dtd", "--url"];
    metatfc(here, &[&encode[..], &["file:///formats/a.dtd", "a.jsonl", "path.mtf"]].concat()).exits(0);
    metatfc(here, &["dump", "path.mtf"]).exits(0).prints("heap alloc");
    metatfc(here, &[&encode[..], &["https://example.org/a.dtd", "a.jsonl", "net.mtf"]].concat()).exits(0);
    metatfc(here, &["dump", "net.mtf"]).exits(1).says("--dtd").says("https://example.org/a.dtd");
    metatfc(here, &["dump", "--dtd", "a.dtd", "net.mtf"]).exits(0).prints("heap alloc");
    here.write("b.dtd", DTD.replace("heap", "store"));
    metatfc(here, &["dump", "--dtd", "b.dtd", "a.mtf"]).exits(0).prints("heap alloc");
    metatfc(here, &["dump", "--force-dtd", "b.dtd", "a.mtf"]).exits(0).prints("store alloc");
    let line = r#"{"@section":"heap","@record":"createHeap","thread":0,"heap":0,"vfield":""}"#;
    let trace = run(here, &["convert", "--dtd", "HATF10", "--no-embed-dtd", "-", "-"], line.as_bytes()).exits(0);
    run(here, &["dump", "-"], &trace.out).exits(0).prints("heap createHeap");
}

#[test]
fn errors_come_after_the_records_before_them() {
    let case = vectors("bad/trace/record-cut");
    let run = metatfc(&case, &["dump", "--format", "jsonl", "--tail", "5", "trace.mtf"]).exits(1);
    assert!(run.err.starts_with("metatfc: trace.mtf: offset "), "{}", run.err);
    assert!(run.err.contains("(section ") && run.err.contains(", record ") && run.err.contains("record begins at "));
    if let Ok(expected) = std::fs::read(case.join("expected.jsonl")) {
        assert_eq!(run.out, expected);
    }
}

/// Dumping delivers the records whatever the header declares, and verification reports a wrong number.
#[test]
fn a_wrong_number_of_records_in_the_header_is_for_verification() {
    for vector in ["good/x-v0-header-nrecords", "good/x-v1-header-nrecords"] {
        let case = vectors(vector);
        metatfc(&case, &["dump", "trace.mtf"]).exits(0);
        metatfc(&case, &["verify", "trace.mtf"])
            .exits(1)
            .says("the header declares 7 records, but the trace contains 1");
    }
}

/// A trace from before 1.0 names its age and the remedy.
#[test]
fn a_trace_from_before_the_first_version_must_be_recorded_again() {
    let case = vectors("bad/trace/x-predicted-revision-none");
    metatfc(&case, &["dump", "trace.mtf"])
        .exits(1)
        .says("`predicted` needs the revision of its models, `1`, before the model")
        .says("record traces from before version 1.0 again");
}

#[test]
fn raw() {
    let folder = folder();
    let here = &folder;
    let bytes = [4, 10, 0, 64, 0, 0, 16, 0, 0, 0];
    let dump = ["dump", "--raw", "--class", "1", "--order", "little", "--dtd", "a.dtd"];
    run(here, &[&dump[..], &["--section", "heap", "-"]].concat(), &bytes).exits(0).prints("address=0x1000");
    let json =
        run(here, &[&dump[..], &["--section", "heap", "--format", "jsonl", "-"]].concat(), &bytes).exits(0).text();
    assert!(json.contains("address") && !json.contains("@offset"), "only --all prints offsets: {json}");
    run(here, &[&dump[..], &["-"]].concat(), &bytes).exits(2).says("heap, names");
    run(here, &["dump", "--raw", "-"], &bytes).exits(1).says("its first bytes match none of hprof, mps");
    let cut = run(here, &[&dump[..], &["--section", "heap", "-"]].concat(), &bytes[..7]).exits(1);
    cut.says("offset 5: ").says("leaf address");
}

#[test]
fn encode() {
    let folder = folder();
    let here = &folder;
    let dump = |trace: &str| metatfc(here, &["dump", "--format", "jsonl", trace]).exits(0).text();
    let expected = dump("a.mtf");
    for options in [
        &["--version", "0", "--class", "1", "--order", "big"][..],
        &["--codec", "zlib:9", "--chunk", "1"],
        &["--codec", "lz4", "--filter", "transpose"],
    ] {
        metatfc(here, &[&["convert", "--dtd", "a.dtd"], options, &["a.jsonl", "b.mtf"]].concat()).exits(0);
        assert_eq!(dump("b.mtf"), expected, "{options:?}");
    }
    // A value that does not fit is stored in a wider field or, with `--strict`, refused.
    let wide = r#"{"@section":"heap","@record":"alloc","time":1,"size":70000,"address":1,"name":0}"#;
    let trace = run(here, &["convert", "--dtd", "a.dtd", "-", "-"], format!("{wide}\n{NAME}").as_bytes()).exits(0);
    run(here, &["dump", "-"], &trace.out).exits(0).prints("size=70000");
    let lines = format!("{}\n{wide}\n", LINES.lines().next().unwrap_or_default());
    here.write("wide.jsonl", lines);
    let strict = metatfc(here, &["convert", "--strict", "--dtd", "a.dtd", "wide.jsonl", "none.mtf"]).exits(1);
    strict.says("wide.jsonl:2: ").says("leaf size");
    // A field that is not stored can be omitted. A value that its interpretation does not imply costs a metadata record
    // or, with `--strict`, is refused.
    let jobs = "section s 1 { job: (tag, number) { tag.value = 4; number.interpretation = stride 0 1; } }";
    here.write("jobs.dtd", jobs);
    let line = r#"{"@section":"s","@record":"job"}"#;
    let given = |number: u8| line.replace('}', &format!(",\"number\":{number}}}"));
    let convert = |lines: &str, options: &[&str]| {
        run(here, &[&["convert", "--dtd", "jobs.dtd", "-", "-"], options].concat(), lines.as_bytes())
    };
    let trace = convert(&format!("{line}\n{line}\n{}\n{line}\n", given(3)), &["--strict"]).exits(0);
    run(here, &["dump", "-"], &trace.out).exits(0).prints("number=1\n").prints("number=4\n");
    let wrong = format!("{line}\n{}\n{line}\n", given(7));
    run(here, &["dump", "-"], &convert(&wrong, &[]).exits(0).out).exits(0).prints("number=7\n").prints("number=8\n");
    let refused = convert(&wrong, &["--strict"]).exits(1);
    refused.says("standard input:2: the value is 7, but the field stores nothing and must be 2").says("leaf number");
    // A failed command creates no file and does not change existing files.
    let before = here.read("a.mtf");
    let broken = run(here, &["convert", "--dtd", "a.dtd", "-", "a.mtf"], b"{\"@section\":\"heap\"}\n").exits(1);
    broken.says("standard input:1: ");
    assert_eq!(here.read("a.mtf"), before);
    let names: Vec<_> = std::fs::read_dir(here).expect("a folder").map(|e| e.expect("an entry").file_name()).collect();
    assert!(!names.iter().any(|n| n == "none.mtf" || n.to_string_lossy().starts_with(".metatfc")), "{names:?}");
    metatfc(here, &["convert", "--dtd", "a.dtd", "--codec", "gzip", "a.jsonl", "c.mtf"]).exits(2);
}

#[test]
fn stat() {
    let folder = folder();
    let here = &folder;
    metatfc(here, &["stat", "a.mtf"]).exits(0).prints("4  and 2 stream elements").prints("1  records, 12 bytes");
    let json = metatfc(here, &["stat", "--format", "json", "a.mtf"]).exits(0).text();
    let stat: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&stat["records"], &stat["metadata"]["records"]), (&4.into(), &1.into()));
    let alloc = stat["kinds"].as_array().and_then(|k| k.iter().find(|k| k["record"] == "alloc")).expect("alloc");
    assert_eq!((&alloc["count"], &alloc["leaves"][2]["bytes"]), (&3.into(), &8.into()));
    let trace = here.read("a.mtf");
    run(here, &["stat", "-"], &trace).exits(0).prints("standard input");
}

#[test]
fn verify() {
    let folder = folder();
    let here = &folder;
    metatfc(here, &["verify", "a.mtf"]).exits(0).prints("whole: 4 records, 2 stream elements, 1 group");
    metatfc(here, &["verify", "--quiet", "a.mtf"]).exits(0);
    let whole = here.read("a.mtf");
    run(here, &["verify", "-"], &whole).exits(0).prints("standard input: whole");

    // A trace of a later version contains the names of required features after its DTD URL.
    let url = 40 + usize::from(whole[6]);
    let names = b"\x05pages\x07trial-2";
    let mut later = [&whole[..url], names, &whole[url..]].concat();
    (later[8], later[15]) = (2, 0x80);
    later[24..32].copy_from_slice(&(url + names.len()).to_le_bytes());
    here.write("later.mtf", &later);
    for command in ["verify", "stat"] {
        let lacks = "the trace needs the features \"pages\" (1) and \"trial-2\" (63), which this version";
        metatfc(here, &[command, "later.mtf"]).exits(1).says(lacks);
    }

    // Three groups, of which the second is corrupt.
    let group = "{\"@group\":1}\n";
    let line = |n: u8| format!("{{\"@section\":\"heap\",\"@record\":\"list\",\"time\":{n},\"n\":1,\"value\":[{n}]}}\n");
    let lines = [line(1), group.to_owned(), line(2), group.to_owned(), line(3)].concat();
    let encode = ["convert", "--dtd", "a.dtd", "--codec", "stored", "-", "g.mtf"];
    run(here, &encode, lines.as_bytes()).exits(0);
    let mut bytes = here.read("g.mtf");
    let at = bytes.windows(4).position(|w| w == [5, 2, 0, 1]).expect("the second record");
    bytes[at + 1] ^= 0xff;
    here.write("g.mtf", &bytes);
    let bad = metatfc(here, &["verify", "--salvage", "s.mtf", "a.mtf", "g.mtf"]).exits(2);
    bad.says("specify only one TRACE");
    let bad = metatfc(here, &["verify", "--salvage", "s.mtf", "g.mtf"]).exits(1);
    bad.says("CRC").says("lost: bytes ").says("2 records salvaged into s.mtf");
    let saved = metatfc(here, &["dump", "--format", "jsonl", "s.mtf"]).exits(0).text();
    assert_eq!(saved, line(1) + &line(3));
    metatfc(here, &["verify", "s.mtf"]).exits(0);
    let salvaged = metatfc(here, &["dump", "--salvage", "--format", "jsonl", "g.mtf"]).exits(0);
    assert_eq!(salvaged.says("salvage: ").text(), saved);
}

/// If part of a table is lost, later offsets would refer to the wrong elements, so no trace is written.
#[test]
fn salvage_does_not_move_offsets() {
    let folder = folder();
    let here = &folder;
    let lines = r#"{"@section":"names","@record":"text","@shared":true,"vfield":"one"}
{"@section":"heap","@record":"alloc","time":1,"size":1,"address":1,"name":0}
{"@section":"names","@record":"text","@shared":true,"vfield":"two"}
{"@group":1}
{"@section":"heap","@record":"alloc","time":1,"size":1,"address":1,"name":4}
"#;
    run(here, &["convert", "--dtd", "a.dtd", "--codec", "stored", "-", "t.mtf"], lines.as_bytes()).exits(0);
    metatfc(here, &["dump", "--resolve", "t.mtf"]).exits(0).prints("one").prints("two");
    let mut bytes = here.read("t.mtf");
    let at = bytes.windows(4).position(|w| w == b"\x03one").expect("the first name");
    bytes[at + 1] ^= 0xff;
    here.write("t.mtf", &bytes);
    let resolved = metatfc(here, &["dump", "--salvage", "--resolve", "--format", "jsonl", "t.mtf"]).exits(0);
    resolved.prints(r#"{"offset":0,"element":null}"#).prints(r#"{"offset":4,"element":{"vfield":"two"}}"#);
    metatfc(here, &["verify", "--salvage", "u.mtf", "t.mtf"]).exits(4).says("offsets into section names");
    assert!(!here.join("u.mtf").exists());
}

#[test]
fn a_trace_that_was_not_closed_is_unfinished() {
    let folder = folder();
    let here = &folder;
    let bytes = here.read("a.mtf");
    let at = bytes.windows(6).rposition(|w| w == b"MTFC\0\x02").expect("the index");
    here.write("open.mtf", &bytes[..at]);
    metatfc(here, &["dump", "open.mtf"]).exits(0).says("warning: the trace has no footer");
    for quiet in [&[][..], &["--quiet"]] {
        let run = metatfc(here, &[&["verify", "open.mtf"], quiet].concat()).exits(3);
        assert_eq!(run.says("open.mtf: unfinished: 4 records, ").text(), "");
    }
    // Corruption takes precedence over a missing footer.
    here.write("torn.mtf", &bytes[..bytes.len() / 2]);
    metatfc(here, &["verify", "open.mtf", "a.mtf"]).exits(3).prints("a.mtf: whole: 4 records");
    metatfc(here, &["verify", "open.mtf", "torn.mtf"]).exits(1);
    // The salvaged trace is intact, and the message contains its path.
    for (trace, code) in [("a.mtf", 0), ("open.mtf", 3), ("torn.mtf", 1)] {
        let run =
            metatfc(here, &["verify", "--salvage", "whole.mtf", trace]).exits(code).says("salvaged into whole.mtf");
        assert!(!run.err.contains("can be salvaged"), "{}", run.err);
        metatfc(here, &["verify", "whole.mtf"]).exits(0).prints("whole");
    }
    // A recorder stores the path of its spool, which contains the remaining events. Like any string in a trace, the
    // path must not reach a terminal unescaped.
    let spool = here.join("spool\u{1b}[1m");
    let schema =
        metatf::dynamic::Schema::parse("a.dtd", b"section s 1 {\nr: (tag) { tag.value = 4; }\n}\n").expect("a DTD");
    let options = metatf::container::WriteOptions::default();
    let mut writer = metatf::dynamic::Writer::new(Vec::new(), &schema, &options).expect("a writer");
    writer.inner().user_metadata(&serde_json::json!({"spool": spool}).to_string()).expect("user metadata");
    let bytes = writer.finish().expect("a trace");
    let at = bytes.windows(6).rposition(|w| w == b"MTFC\0\x02").expect("the index");
    here.write("spooled.mtf", &bytes[..at]);
    let says_where = || {
        metatfc(here, &["verify", "spooled.mtf"])
            .exits(3)
            .err
            .contains("events that the recorder has not yet written to the trace are in")
    };
    assert!(!says_where());
    std::fs::create_dir(&spool).expect("a folder");
    let run = metatfc(here, &["verify", "spooled.mtf"]).exits(3).says("spool\\u{1b}[1m\"");
    assert!(says_where() && !run.err.contains('\x1b'));
}

/// Each command has a manual page that contains its help text, and each shell has completions.
#[test]
fn installed_docs() {
    let folder = Folder::new();
    metatfc(&folder, &["--install-docs", "share"]).exits(0);
    let page = folder.text("share/man/man1/metatfc-dump.1");
    assert!(page.starts_with(".ie ") && page.contains("jsonl") && page.contains("Examples:"), "{page}");
    assert!(folder.text("share/man/man1/metatfc.1").contains("metatfc\\-verify(1)"));
    for script in
        ["bash-completion/completions/metatfc", "fish/vendor_completions.d/metatfc.fish", "zsh/site-functions/_metatfc"]
    {
        assert!(folder.text(&format!("share/{script}")).contains("telemetry"), "{script}");
    }
    folder.write("file", "");
    metatfc(&folder, &["--install-docs", "file"]).exits(1).says("file: ");
    metatfc(&folder, &["--install-docs"]).exits(2);
}

/// A reader that stops early, such as `head`, is not an error.
#[test]
fn a_closed_pipe_is_quiet() {
    let folder = folder();
    let line = LINES.lines().next().unwrap_or_default();
    let lines = format!("{line}\n").repeat(100_000) + NAME;
    run(&folder, &["convert", "--dtd", "a.dtd", "-", "big.mtf"], lines.as_bytes()).exits(0);
    for format in ["text", "jsonl", "hex"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_metatfc"))
            .args(["dump", "--format", format, "big.mtf"])
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("metatfc starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("metatfc ends");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{format}");
    }
}

/// Colors are used only on a terminal.
#[test]
fn no_colours_in_a_pipe() {
    let folder = folder();
    folder.write("bad.dtd", "a.width = ;");
    let bad = metatfc(&folder, &["check", "bad.dtd"]).exits(1);
    let text = metatfc(&folder, &["dump", "--all", "a.mtf"]).exits(0).text();
    assert!(!bad.err.contains('\x1b') && !text.contains('\x1b'));
}
