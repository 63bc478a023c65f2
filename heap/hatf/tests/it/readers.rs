//! The generated reader and the dynamic reader read the same from a recorded trace, even after it is rewritten from its
//! JSON lines.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use metatf::container::WriteOptions;
use metatf::dynamic::{JsonOptions, OwnedRecord, Schema, Trace, Writer};
use metatf_test::Folder;

#[metatf_derive::metatf(dtd = "../../dtds/HATF10.dtd")]
mod generated {}

/// Formats a record of the generated reader as described in section 8 of the specification.
fn line(record: &generated::Heap<&[u8]>) -> String {
    use generated::Heap;
    let (name, numbers, attributes): (&str, Vec<(&str, u64)>, &[u8]) = match record {
        Heap::Alloc(r) => (
            "alloc",
            vec![("size", r.size), ("address", r.address), ("time", r.time), ("thread", r.thread), ("heap", r.heap)],
            r.vfield,
        ),
        Heap::Realloc(r) => (
            "realloc",
            vec![
                ("address", r.address),
                ("address_2", r.address_2),
                ("time", r.time),
                ("thread", r.thread),
                ("heap", r.heap),
            ],
            r.vfield,
        ),
        Heap::Free(r) => {
            ("free", vec![("address", r.address), ("time", r.time), ("thread", r.thread), ("heap", r.heap)], r.vfield)
        }
        Heap::CreateHeap(r) => ("createHeap", vec![("thread", r.thread), ("heap", r.heap)], r.vfield),
        Heap::DestroyHeap(r) => ("destroyHeap", vec![("thread", r.thread), ("heap", r.heap)], r.vfield),
        Heap::CreateThread(r) => ("createThread", vec![("thread", r.thread)], r.vfield),
        Heap::DestroyThread(r) => ("destroyThread", vec![("thread", r.thread)], r.vfield),
    };
    let mut line = format!("{{\"@section\":\"heap\",\"@record\":\"{name}\"");
    for (key, value) in numbers {
        let _ = write!(line, ",\"{key}\":{value}");
    }
    line.push_str(",\"vfield\":\"");
    for byte in attributes {
        let _ = write!(line, "{byte:02x}");
    }
    line.push_str("\"}\n");
    line
}

fn universal(bytes: &[u8]) -> String {
    let mut trace = Trace::from_slice(bytes).unwrap();
    let mut out = Vec::new();
    while trace.next_json(&mut out, JsonOptions::default()).unwrap() {}
    String::from_utf8(out).unwrap()
}

/// Records `ls`.
fn recorded(path: &Path, options: &[&str]) {
    let status = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "-q"])
        .args(options)
        .arg("-o")
        .arg(path)
        .args(["--", "ls", "-lR", env!("CARGO_MANIFEST_DIR")])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

/// The generated reader of `heap.dtd` agrees with the dynamic reader: JSON lines written by `hatf convert` are those
/// that the dynamic reader prints.
#[test]
fn readers_agree_on_a_recorded_heap_trace() {
    let folder = Folder::new();
    let path = folder.join("ls.mtf");
    for (clock, times) in [("1ns", true), ("off", false)] {
        recorded(&path, &["--clock", clock]);
        let command =
            Command::new(env!("CARGO_BIN_EXE_hatf")).arg("convert").arg(&path).args(["--to", "jsonl"]).output();
        let by_generated = String::from_utf8(command.unwrap().stdout).unwrap();
        assert!(by_generated.lines().count() > 100, "ls allocates");
        let by_universal = universal(&std::fs::read(&path).unwrap());
        // One reader prints complete names, the other their offsets.
        let whole = |lines: &str| -> Vec<String> {
            lines.lines().filter(|line| !line.contains("\"@record\":\"image\"")).map(str::to_owned).collect()
        };
        assert_eq!(whole(&by_generated), whole(&by_universal));
        assert_eq!(times, by_universal.lines().any(|line| line.contains("\"time\":") && !line.contains("\"time\":0,")));
    }
}

#[test]
fn readers_agree_on_a_recorded_trace() {
    let folder = Folder::new();
    let path = folder.join("ls.mtf");
    recorded(&path, &["--format", "hatf10"]);

    let bytes = std::fs::read(&path).unwrap();
    let mut trace = generated::Trace::open(&path).unwrap();
    let mut by_generated = String::new();
    while let Some(generated::Record::Heap(record)) = trace.next().unwrap() {
        by_generated.push_str(&line(&record));
    }
    assert!(by_generated.lines().count() > 100, "ls allocates");
    assert!(by_generated == universal(&bytes), "the two readers differ");

    let schema = Schema::parse("HATF10.dtd", generated::FORMAT.dtd.as_bytes()).unwrap();
    let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default()).unwrap();
    let mut owned = OwnedRecord::default();
    for line in by_generated.lines() {
        let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
        writer.write(&line, &owned).unwrap();
    }
    assert!(universal(&writer.finish().unwrap()) == by_generated, "the trace written again differs");
}
