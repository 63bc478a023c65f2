//! `gen --lang c --reader`: a C program reads a trace that was written in Rust and whose encodings change.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong has to panic")]

use std::process::Command;

use crate::common::metatfc;
use metatf_test::{Folder, root, run, skip};

#[test]
fn a_c_program_reads_changes_inside_a_trace() {
    let folder = Folder::new();
    let dtd = root().join("examples/build-script/jobs.dtd");
    let dtd = dtd.to_str().unwrap();
    // The second time and the fourth job do not fit the widths of the DTD.
    let lines = [
        r#"{"@section":"queue","@record":"submit","time":1000,"job":1,"vfield":"compress"}"#,
        r#"{"@section":"queue","@record":"submit","time":20000000000,"job":2,"vfield":"index"}"#,
        r#"{"@section":"queue","@record":"done","time":20000000500,"job":1,"status":0}"#,
        r#"{"@section":"queue","@record":"submit","time":20000000600,"job":700,"vfield":"scan"}"#,
        r#"{"@section":"queue","@record":"done","time":20000000700,"job":2,"status":3}"#,
    ];
    folder.write("jobs.jsonl", lines.join("\n") + "\n");
    metatfc(folder.as_ref(), &["convert", "--dtd", dtd, "--codec", "stored", "jobs.jsonl", "jobs.mtf"]).exits(0);
    let all = metatfc(folder.as_ref(), &["dump", "--format", "jsonl", "--all", "jobs.mtf"]).exits(0).text();
    assert!(all.matches(r#""@record":"metadata""#).count() >= 3, "{all}");
    metatfc(folder.as_ref(), &["gen", "--lang", "c", "--reader", "jobs", dtd, "-o", "jobs.h"]).exits(0);
    let mut compile = Command::new("cc");
    compile.current_dir(folder.as_ref()).args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I.", "-o", "jobs"]);
    let Ok(compiled) = compile.arg(root().join("examples/c-reader/jobs.c")).output() else {
        skip("there is no C compiler");
        return;
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let found = run(Command::new(folder.path("jobs")).current_dir(folder.as_ref()).arg("jobs.mtf")).exits(0).text();
    let expected = "job 1: compress\njob 2: index\njob 1 took 19999999500 ns, status 0\njob 700: scan\n\
                    job 2 took 700 ns, status 3\n";
    assert_eq!(found, expected);
}
