//! Infinite inputs, outputs that are not files, and expensive traces: every read has a limit.
#![cfg(target_os = "linux")]

use super::common::{metatfc, run};
use super::folder;
use metatf_test::Folder;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

#[test]
fn inputs_without_an_end() {
    let folder = folder();
    let here = &folder;
    metatfc(here, &["check", "/dev/zero"]).exits(1).says("the DTD is too long");
    metatfc(here, &["fmt", "/dev/zero"]).exits(1).says("the DTD is too long");
    metatfc(here, &["show", "/dev/zero"]).exits(1).says("the DTD is too long");
    metatfc(here, &["convert", "--from", "jsonl", "--dtd", "a.dtd", "/dev/zero", "z.mtf"])
        .exits(1)
        .says("/dev/zero:1: the line is longer than");
    for command in ["verify", "stat", "dump"] {
        metatfc(here, &[command, "/dev/zero"]).exits(1).says("not a Meta-TF trace (it begins with `\\x00");
    }
    metatfc(here, &["dump", "/dev/null"]).exits(1).says("not a Meta-TF trace (it is empty)");
    run(here, &["verify", "-", "-"], b"hello").exits(2).says("standard input can be read only once");
    run(here, &["verify", "-"], b"hello")
        .exits(1)
        .says("standard input: offset 0: not a Meta-TF trace (it begins with `hell`)");
    assert!(!here.join("z.mtf").exists());
}

#[test]
fn outputs_that_are_full() {
    let folder = folder();
    let here = &folder;
    let full: [&[&str]; 4] = [
        &["gen", "a.dtd", "-o", "/dev/full"],
        &["convert", "--dtd", "a.dtd", "a.jsonl", "/dev/full"],
        &["convert", "a.mtf", "/dev/full"],
        &["verify", "--salvage", "/dev/full", "a.mtf"],
    ];
    for args in full {
        let status = if args[0] == "verify" { 4 } else { 1 };
        let failed = metatfc(here, args).exits(status).says("metatfc: /dev/full: ");
        assert!(!failed.err.contains("offset"), "{}", failed.err);
    }
}

/// A trace of less than 2000 bytes can contain a long DTD, which is refused without `--large-dtd`.
#[test]
fn a_long_embedded_dtd() {
    let folder = folder();
    let here = &folder;
    here.write("long.dtd", here.text("a.dtd") + &"// a comment\n".repeat(30_000));
    run(here, &["convert", "--dtd", "long.dtd", "-", "long.mtf"], b"").exits(0);
    assert!(here.read("long.mtf").len() < 2000, "it is compressed");
    for command in ["dump", "verify", "stat", "show"] {
        metatfc(here, &[command, "long.mtf"]).exits(1).says("the embedded DTD has").says("--large-dtd");
        metatfc(here, &[command, "--large-dtd", "long.mtf"]).exits(0);
    }
    metatfc(here, &["convert", "long.mtf", "r.mtf"]).exits(1).says("--large-dtd");
    metatfc(here, &["convert", "--large-dtd", "long.mtf", "r.mtf"]).exits(0);
    metatfc(here, &["dump", "--force-dtd", "a.dtd", "long.mtf"]).exits(0);
}

/// Version 0 traces do not contain a DTD, so the writer needs a URL.
#[test]
fn version_0_without_a_dtd() {
    let folder = folder();
    let here = &folder;
    let dtd = here.read("a.dtd");
    run(here, &["convert", "--dtd", "-", "--version", "0", "a.jsonl", "v.mtf"], &dtd).exits(2).says("--url");
    run(here, &["convert", "--dtd", "-", "a.jsonl", "v.mtf"], &dtd).exits(0);
    metatfc(here, &["convert", "--version", "0", "v.mtf", "v0.mtf"]).exits(1).says("--version 0 cannot embed the DTD");
    assert!(!here.join("v0.mtf").exists());
    metatfc(here, &["convert", "--version", "0", "a.mtf", "v0.mtf"]).exits(0);
}

/// An output file has no name until it is complete, so a killed command leaves no incomplete file.
#[test]
fn a_command_that_is_killed() {
    let folder = folder();
    let here = &folder;
    let before = std::fs::read_dir(&**here).expect("a folder").count();
    // SIGINT has the same effect as SIGTERM, but programs that a shell starts in the background ignore it.
    for signal in ["TERM", "KILL"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_metatfc"))
            .args(["convert", "--dtd", "a.dtd", "--chunk", "1K", "-", "killed.mtf"])
            .current_dir(here)
            .stdin(Stdio::piped())
            .spawn()
            .expect("metatfc runs");
        let mut lines = child.stdin.take().expect("a pipe");
        let line = r#"{"@section":"heap","@record":"list","time":1,"n":1,"value":[1]}"#;
        // The data exceeds the pipe buffer, so the command has begun to read and has already opened its output.
        for _ in 0..20_000 {
            writeln!(lines, "{line}").expect("it reads");
        }
        let kill = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
        drop(lines);
        assert!(!child.wait().expect("it ends").success());
        assert_eq!(std::fs::read_dir(&**here).expect("a folder").count(), before, "SIG{signal} left a file");
    }
}

/// Input from a pipe is checked while the pipe is still open.
#[test]
fn a_pipe_that_stays_open() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_metatfc"))
        .args(["verify", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("metatfc runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(b"hello, this goes on").expect("it reads");
    let mut said = String::new();
    BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut said).expect("text");
    assert!(said.contains("not a Meta-TF trace"), "{said}");
    drop(pipe);
    assert!(!child.wait().expect("it ends").success());
}

/// For tables with very many rows and rows with very long cells, neither time nor output grows with their product.
#[test]
fn tables_of_any_size() {
    let folder = folder();
    let here = &folder;
    let records: String = (0..2000).map(|i| format!("r{i}: (tag, time) {{ tag.value = {}; }}\n", i + 4)).collect();
    let dtd = format!("tag.width = 4; time.width = 1; time.interpretation = delta 0; section s 1 {{ {records} }}");
    here.write("many.dtd", dtd);
    for format in ["text", "json"] {
        let shown = metatfc(here, &["show", "--format", format, "many.dtd"]).exits(0).prints("1935 more");
        assert!(shown.out.len() < 20 << 20, "{} bytes", shown.out.len());
    }
    let long = "x".repeat(70_000);
    here.write(
        "long.dtd",
        format!(
            "section s 1 {{ {long}: (tag, x, y) {{ tag.value = 4; x.width = 1; x.interpretation = none; \
             x.unit = \"{long}\"; x.doc = \"{long}\"; y.width = 1; y.interpretation = none; }} \
             t: (tag) {{ tag.value = 5; }} }}"
        ),
    );
    let shown = metatfc(here, &["show", "long.dtd"]).exits(0);
    assert!(shown.out.len() < 600_000, "{} bytes", shown.out.len());
    let line = "{\"@section\":\"s\",\"@record\":\"t\"}\n".repeat(100);
    run(here, &["convert", "--dtd", "long.dtd", "-", "long.mtf"], line.as_bytes()).exits(0);
    let dumped = metatfc(here, &["dump", "long.mtf"]).exits(0);
    assert!(dumped.out.len() < 100_000, "{} bytes", dumped.out.len());
    let condition = format!("{}(", " ".repeat(70_000));
    metatfc(here, &["dump", "--where", &condition, "long.mtf"]).exits(2).says("--where");
}

/// A headerless file that consists of a stream section contains only elements.
#[test]
fn raw_stream_sections() {
    let folder = folder();
    let here = &folder;
    here.write(
        "x.dtd",
        "section x 1 { e: (n) { n.width = 1; n.interpretation = none; } } section s 2 { r: (tag) { tag.value = 4; } }",
    );
    here.write("x.raw", [1, 2]);
    let raw = ["dump", "--raw", "--class", "2", "--byteorder", "little", "--dtd", "x.dtd", "--section", "x"];
    let args = [&raw[..], &["x.raw"]].concat();
    assert_eq!(metatfc(here, &args).exits(0).text(), "x e  n=1\nx e  n=2\n");
    let args = [&raw[..], &["--format", "jsonl", "x.raw"]].concat();
    metatfc(here, &args).exits(0).prints(r#"{"@section":"x","@record":"e","n":2}"#);
    let args = [&raw[..], &["--format", "jsonl", "--all", "x.raw"]].concat();
    metatfc(here, &args).exits(0).prints(r#"{"@section":"x","@record":"e","@offset":1,"n":2}"#);
}

/// A small trace can expand to large data. If the records in memory exceed the limit, the command fails.
#[test]
fn a_trace_that_takes_much_memory() {
    let here = &Folder::new();
    here.write(
        "m.dtd",
        "section s 1 {
            time.width = 0; time.interpretation = stride 0 1; time.role = \"time\";
            id.width = 0; id.interpretation = stride 0 1; id.role = \"span\";
            begin: (tag, time, id) { tag.value = 4; tag.span = \"begin\"; }
        }",
    );
    let mut lines = String::new();
    (0..300_000).for_each(|n| {
        lines.push_str(&format!("{{\"@section\":\"s\",\"@record\":\"begin\",\"time\":{n},\"id\":{n}}}\n"))
    });
    run(here, &["convert", "--dtd", "m.dtd", "-", "m.mtf"], lines.as_bytes()).exits(0);
    assert!(here.size("m.mtf") < 10_000, "{} bytes", here.size("m.mtf"));
    metatfc(here, &["--max-memory", "8MiB", "stat", "--spans", "m.mtf"])
        .exits(1)
        .says("out of memory: the limit is 8 MiB; to raise it, use --max-memory");
    metatfc(here, &["stat", "--spans", "--max-memory", "512MiB", "m.mtf"]).exits(0);
    metatfc(here, &["dump", "--max-memory", "16MiB", "--threads", "1", "m.mtf"]).exits(0);
    metatfc(here, &["stat", "--spans", "--max-memory", "1", "m.mtf"]).exits(2).says("expected at least 1MiB");
}
