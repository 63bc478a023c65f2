//! The number of threads does not affect the output of `dump`, `stat`, `verify` and `convert`.
#![allow(clippy::expect_used, reason = "a test")]

use crate::common::{metatfc, run};
use metatf_test::Folder;
use std::fmt::Write as _;

const DTD: &str = "\
section heap 1 {
    alloc: (tag, time, size, name) {
        tag.value = 4;
        time.width = 2; time.interpretation = delta 0;
        size.width = 1; size.interpretation = none; size.unit = \"bytes\";
        name.width = 1; name.interpretation = sectionOffset 2;
    }
    free: (tag, time, n*value) {
        tag.value = 5;
        time.width = 2; time.interpretation = delta 0;
        n.width = 1; n.interpretation = none;
        value.interpretation = sectionStride 3 1;
    }
}
section names 2 { text: vfield { vfield.data.format = \"utf8\"; } }
section values 3 { v: (item) { item.width = 4; item.interpretation = delta 0; } }
";

/// Creates a trace with groups of a few hundred records. Their values become wider, which affects the columns of text
/// output.
fn folder() -> Folder {
    let folder = Folder::new();
    let mut lines = String::new();
    let mut offset = 0;
    for group in 0..9_u32 {
        if group > 0 {
            let _ = writeln!(lines, r#"{{"@group":{group}}}"#);
        }
        let name = format!("group {group}");
        let _ = writeln!(lines, r#"{{"@section":"names","@record":"text","vfield":"{name}","@shared":true}}"#);
        for n in 0..300_u32 {
            let time = group * 1000 + n;
            let size = if n % 7 == 0 { n.pow(group.min(3)) } else { n };
            let _ = writeln!(
                lines,
                r#"{{"@section":"heap","@record":"alloc","time":{time},"size":{size},"name":{offset}}}"#
            );
            if n % 5 == 0 {
                let _ = writeln!(
                    lines,
                    r#"{{"@section":"heap","@record":"free","time":{time},"n":2,"value":[{n},{}]}}"#,
                    n * group
                );
            }
            if n % 100 == 50 {
                let _ = writeln!(lines, r#"{{"@section":"heap","@record":"comment","text":"so far {n}"}}"#);
            }
        }
        offset += 1 + name.len();
    }
    folder.write("a.dtd", DTD);
    folder.write("a.jsonl", lines);
    metatfc(&folder, &["convert", "--dtd", "a.dtd", "a.jsonl", "a.mtf"]).exits(0);
    metatfc(&folder, &["verify", "a.mtf"]).exits(0).prints("9 groups");
    folder
}

/// Checks that a command prints the same with one thread, with several threads, and from a pipe, which is read by one
/// thread.
fn same(folder: &Folder, args: &[&str], trace: &str) {
    let with = |threads: &str| metatfc(folder, &[args, &["--threads", threads, trace]].concat());
    let one = with("1");
    let bytes = folder.read(trace);
    let piped = run(folder, &[args, &["-"]].concat(), &bytes);
    let runs = [("2 threads", with("2")), ("4 threads", with("4")), ("a pipe", piped)];
    assert!(!one.out.is_empty() || one.status != 0, "{args:?} prints nothing");
    for (what, other) in runs {
        let out = other.text().replace("standard input", trace);
        let err = other.err.replace("standard input", trace);
        assert_eq!(one.text(), out, "{args:?} {trace}, {what}");
        assert_eq!((one.status, &one.err), (other.status, &err), "{args:?} {trace}, {what}");
    }
}

const COMMANDS: [&[&str]; 11] = [
    &["dump"],
    &["dump", "--all"],
    &["dump", "--all", "--resolve"],
    &["dump", "--format", "jsonl"],
    &["dump", "--format", "jsonl", "--all", "--resets", "--resolve"],
    &["dump", "--format", "hex", "--all"],
    &["dump", "--where", "size > 100 && time < 5000"],
    &["dump", "--head", "1000"],
    &["stat"],
    &["stat", "--format", "json"],
    &["verify"],
];

#[test]
fn a_whole_trace() {
    let folder = folder();
    for args in COMMANDS {
        same(&folder, args, "a.mtf");
    }
    let csv = |threads: &str| {
        let args = ["convert", "a.mtf", "-", "--to", "csv", "--record", "alloc", "--threads", threads];
        metatfc(&folder, &args).exits(0).text()
    };
    assert!(csv("1").lines().count() > 1000);
    assert!(csv("1") == csv("2") && csv("1") == csv("4"));
}

#[test]
fn a_damaged_trace() {
    let folder = folder();
    let bytes = folder.read("a.mtf");
    // The traces are corrupt in the fourth quarter, truncated, or without a footer.
    let mut harmed = bytes.clone();
    let at = bytes.len() * 3 / 4;
    harmed[at..at + 8].fill(0xaa);
    for (name, bytes) in
        [("harmed.mtf", &harmed[..]), ("torn.mtf", &bytes[..bytes.len() / 2]), ("open.mtf", &bytes[..bytes.len() - 16])]
    {
        folder.write(name, bytes);
        for args in COMMANDS {
            same(&folder, args, name);
        }
    }
}

#[test]
fn what_is_written() {
    let folder = folder();
    let read = |name: &str| folder.read(name);
    let commands: [&[&str]; 5] = [
        &["convert", "a.mtf"],
        &["convert", "a.mtf", "--profile", "archive", "--chunk", "1K"],
        &["convert", "a.mtf", "--profile", "fast", "--chunk", "100", "--filter", "auto"],
        &["convert", "a.mtf", "--plan", "optimal", "--block", "100"],
        &["convert", "--dtd", "a.dtd", "--chunk", "300", "a.jsonl"],
    ];
    for args in commands {
        for (threads, out) in [("1", "one.mtf"), ("2", "two.mtf"), ("4", "four.mtf")] {
            metatfc(&folder, &[args, &["--threads", threads, out]].concat()).exits(0);
        }
        assert!(read("one.mtf") == read("two.mtf") && read("one.mtf") == read("four.mtf"), "{args:?}");
    }
}
