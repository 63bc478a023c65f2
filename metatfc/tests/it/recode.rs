//! `metatfc convert`: fields moved to another DTD, and presets.
#![allow(clippy::expect_used, reason = "a test")]

use crate::common::{metatfc, run};
use metatf_test::Folder;
use serde_json::Value;
use std::path::Path;

/// Creates `heap.mtf`, a HATF10.dtd trace with short-lived blocks and 64-bit addresses.
fn folder() -> Folder {
    let folder = Folder::new();
    let mut lines = String::new();
    let mut put = |line: String| lines.push_str(&format!("{{\"@section\":\"heap\",\"@record\":{line}}}\n"));
    let address = |n: u64| 0x7f00_0000_0000 + n * n % 977 * 16;
    put("\"createThread\",\"thread\":1,\"vfield\":\"61\"".to_owned());
    for n in 0..2000_u64 {
        let size = 8 + n % 7 * 24;
        let rest = "\"time\":0,\"thread\":0,\"heap\":0,\"vfield\":\"\"";
        put(format!("\"alloc\",\"size\":{size},\"address\":{},{rest}", address(n)));
        if n % 3 == 0 {
            put(format!("\"realloc\",\"address\":{},\"address_2\":{},{rest}", address(n), address(n + 5000)));
        }
        if n % 2 == 1 {
            put(format!("\"free\",\"address\":{},{rest}", address(n)));
        }
        if n == 1000 {
            put("\"comment\",\"text\":\"halfway\"".to_owned());
        }
    }
    run(&folder, &["convert", "--dtd", "HATF10", "-", "heap.mtf"], lines.as_bytes()).exits(0);
    folder
}

fn stat(here: &Path, trace: &str) -> Value {
    let json = metatfc(here, &["stat", "--format", "json", trace]).exits(0).text();
    serde_json::from_str(&json).expect("JSON")
}

fn section<'v>(stat: &'v Value, name: &str) -> &'v Value {
    let mut sections = stat["sections"].as_array().expect("sections").iter();
    sections.find(|s| s["name"] == name).expect("a section")
}

#[test]
fn there_and_back() {
    let folder = folder();
    let here = &folder;
    metatfc(here, &["convert", "heap.mtf", "split.mtf", "--to-dtd", "HATF10-split.dtd"]).exits(0);
    let split = stat(here, "split.mtf");
    assert_eq!(split["dtd"], "HATF10-split.dtd");
    assert!(section(&split, "addresses")["raw_bytes"].as_u64().expect("bytes") > 3000 * 6);
    let leaves = split["kinds"].as_array().expect("kinds").iter().flat_map(|k| k["leaves"].as_array().expect("leaves"));
    let mut inline = leaves.filter(|leaf| leaf["path"].as_str().is_some_and(|p| p.starts_with("address")));
    assert!(inline.all(|leaf| leaf["bytes"] == 0));
    let told = metatfc(here, &["diff", "--order", "heap.mtf", "split.mtf"]).exits(0);
    assert_eq!(told.text(), "");
    let plans = ["naive", "optimal"];
    for (version, plan) in ["0", "1"].into_iter().flat_map(|version| plans.map(|plan| (version, plan))) {
        let args = ["convert", "--plan", plan, "--version", version, "split.mtf", "back.mtf", "--to-dtd", "HATF10"];
        metatfc(here, &args).exits(0);
        metatfc(here, &["verify", "back.mtf"]).exits(0);
        metatfc(here, &["diff", "--order", "heap.mtf", "back.mtf"]).exits(0);
    }
    let input = here.read("split.mtf");
    let piped = run(here, &["convert", "--to-dtd", "HATF10", "--codec", "stored", "-", "-"], &input).exits(0);
    here.write("piped.mtf", piped.out);
    metatfc(here, &["diff", "heap.mtf", "piped.mtf"]).exits(0);
}

#[test]
fn what_has_no_place_is_dropped_only_when_that_is_said() {
    let folder = folder();
    let here = &folder;
    let dtd = "section heap 1 {
        address.width = 8; address.interpretation = none;
        alloc: (tag, address, size, kind) {
            tag.value = 4; size.width = 8; size.interpretation = none; kind.interpretation = default 3;
        }
        free: (tag, address) { tag.value = 5; }
        realloc: (tag, address, address) { tag.value = 6; }
    }";
    here.write("small.dtd", dtd);
    let args = ["convert", "heap.mtf", "small.mtf", "--to-dtd", "small.dtd"];
    let told = metatfc(here, &args).exits(1);
    let told = told.says("no record createHeap, destroyHeap, createThread, destroyThread").says("alloc.vfield.data");
    assert!(!here.join("small.mtf").exists() && told.err.contains("free.time"), "{}", told.err);
    let records = ["--drop-record", "createHeap,destroyHeap,createThread,destroyThread"];
    metatfc(here, &[&args[..], &records].concat()).exits(1).says("to drop them, use --drop)");
    let fields = ["--drop", "time,thread,heap,vfield"];
    metatfc(here, &[&args[..], &records, &fields].concat()).exits(0);
    let diff = metatfc(here, &["diff", "heap.mtf", "small.mtf"]).exits(0);
    diff.prints("only in small.mtf: field alloc.kind").prints("only in heap.mtf: record heap createThread");
    metatfc(here, &["dump", "--head", "1", "small.mtf"]).exits(0).prints("kind=3");
    metatfc(here, &[&args[..], &["--drop", "nothing"]].concat()).exits(2).says("does not define field nothing");
    metatfc(here, &["convert", "heap.mtf", "-", "--drop", "time"]).exits(2).says("--to-dtd");
    metatfc(here, &["convert", "heap.mtf", "-", "--to-dtd", "none.dtd"]).exits(1).says("none.dtd");
}

#[test]
fn profiles() {
    let folder = folder();
    let here = &folder;
    for profile in ["fast", "default", "archive"] {
        let out = format!("{profile}.mtf");
        metatfc(here, &["convert", "heap.mtf", &out, "--to-dtd", "HATF10-split", "--profile", profile]).exits(0);
        metatfc(here, &["diff", "heap.mtf", &out]).exits(0);
        metatfc(here, &["verify", &out]).exits(0);
    }
    assert!(here.size("archive.mtf") <= here.size("default.mtf"));
    assert!(here.size("default.mtf") <= here.size("fast.mtf"));
    let codecs = |trace: &str| section(&stat(here, trace), "heap")["codecs"].clone();
    assert_eq!(
        codecs("fast.mtf").as_object().map(|c| c.keys().cloned().collect::<Vec<_>>()),
        Some(vec!["LZ4".to_owned()])
    );
    // Explicit options override the preset.
    metatfc(here, &["convert", "heap.mtf", "a.mtf", "--profile", "fast", "--codec", "zstd:5", "--plan", "optimal"])
        .exits(0);
    assert!(codecs("a.mtf").get("zstd").is_some_and(|n| n.as_u64() > Some(0)));
    let args = ["convert", "heap.mtf", "b.mtf", "--to-dtd", "HATF10-split", "--filter", "transpose", "--codec", "lz4"];
    metatfc(here, &args).exits(0);
    let b = stat(here, "b.mtf");
    assert!(section(&b, "addresses")["filters"]["transpose"].as_u64() > Some(0));
    metatfc(here, &["stat", "b.mtf"]).exits(0).prints("LZ4 transpose 1");
    metatfc(here, &["convert", "heap.mtf", "c.mtf", "--profile", "best"]).exits(2).says("fast, default, archive");
    // The presets apply to JSON lines, too.
    let lines = metatfc(here, &["dump", "--format", "jsonl", "heap.mtf"]).exits(0).out;
    run(here, &["convert", "--dtd", "HATF10", "--profile", "archive", "-", "d.mtf"], &lines).exits(0);
    run(here, &["convert", "--dtd", "HATF10", "--profile", "fast", "-", "e.mtf"], &lines).exits(0);
    assert!(here.size("d.mtf") < here.size("e.mtf"));
    metatfc(here, &["diff", "--ignore", "comment", "heap.mtf", "d.mtf"]).exits(0);
}

/// An option that a conversion cannot obey is an error that names both.
#[test]
fn options_of_another_conversion() {
    let folder = folder();
    let here = &folder;
    for (args, says) in [
        (&["heap.mtf", "x.mtf", "--strict"][..], "--strict: no effect on a conversion of a trace to a trace"),
        (&["heap.mtf", "x.mtf", "--class", "1"], "--class and --order describe a file without a header: add --raw"),
        (
            &["heap.mtf", "x.bin", "--to", "raw", "--plan", "optimal"],
            "--plan: no effect on a conversion of a trace to a",
        ),
        (
            &["heap.jsonl", "x.mtf", "--dtd", "HATF10", "--group", "0"],
            "--group: no effect on a conversion of JSON lines",
        ),
        (&["heap.jsonl", "x.mtf"], "JSON lines and tables contain no DTD: add --dtd FILE"),
        (&["heap.mtf", "x.jsonl"], "to write JSON lines, use `metatfc dump --format jsonl --all`"),
        (&["heap.mtf", "heap.mtf", "x.mtf"], "to combine traces, use `metatfc sort`"),
        (&["heap.mtf"], "expected an input and an output"),
    ] {
        metatfc(here, &[&["convert"], args].concat()).exits(2).says(says);
    }
    assert!(!here.join("x.mtf").exists() && !here.join("x.bin").exists());
}
