//! The command: exit statuses, and what goes where.
#![expect(clippy::unwrap_used)]

use std::io::Read as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn hatf(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hatf")).args(arguments).output().unwrap()
}

fn recorded(script: &str) -> Output {
    hatf(&["record", "--report", "--no-trace", "--", "/bin/sh", "-c", script])
}

#[test]
fn the_program_s_output_and_status_are_kept() {
    let output = recorded("echo out; echo err >&2; exit 42");
    assert_eq!(output.status.code(), Some(42));
    assert_eq!(output.stdout, b"out\n");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("err\nhatf: "), "{text}");
    assert!(text.contains(" events, 0 lost") && text.contains("total heap usage: "));
}

#[test]
fn statuses_of_programs_that_do_not_end_well() {
    assert_eq!(recorded("kill -9 $$").status.code(), Some(137));
    let status = |arguments: &[&str]| hatf(arguments).status.code();
    let quiet = |program| status(&["record", "--report", "--no-trace", program]);
    assert_eq!(quiet("/no/such/program"), Some(127));
    assert_eq!(quiet("/etc/passwd"), Some(126));
    assert_eq!(status(&["record"]), Some(2));
    assert_eq!(status(&["report", "/no/such/trace.mtf"]), Some(1));
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/good/v1-user-metadata/trace.mtf");
    let output = hatf(&["report", other]);
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && messages.contains("neither heap.dtd nor HATF10.dtd"), "{messages}");
}

/// What the recorder was told to make safe is there when it was killed.
#[test]
fn a_recorder_that_is_killed_leaves_what_it_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.mtf");
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "--flush", "1", "-o", path.to_str().unwrap(), "--", "/bin/sh", "-c", "read wait"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while std::fs::metadata(&path).map_or(0, |m| m.len()) == 0 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let output = hatf(&["report", path.to_str().unwrap()]);
    let messages = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && messages.contains("total heap usage: "), "{messages}");
    assert!(!messages.contains("total heap usage: 0 allocs"), "{messages}");
}

#[test]
fn a_termination_signal_is_passed_on() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "--report", "--no-trace", "--", "/bin/sh", "-c"])
        .arg("echo ready; exec sleep 60")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let process = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: our child, which is not yet waited for.
    unsafe { libc::kill(process, libc::SIGTERM) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 15));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("ended by signal 15") && text.contains("total heap usage: "), "{text}");
}

#[test]
fn help_teaches() {
    for command in [&["--help"][..], &["record", "--help"], &["report", "--help"], &["convert", "--help"]] {
        let text = String::from_utf8(hatf(command).stdout).unwrap();
        assert!(text.contains("Examples:"), "{text}");
    }
}

#[test]
fn converting() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let raw = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/python_threads.raw64.zst");
    let (heap, back, less) = (path("a.mtf"), path("b.raw64"), path("c.raw32"));
    let run = |arguments: &[&str], status: i32| {
        let output = hatf(&[&["convert"], arguments].concat());
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {messages}");
        (output.stdout, messages)
    };
    assert_eq!(run(&["--strict", raw, &heap], 0), (Vec::new(), String::new()));
    assert_eq!(run(&["--strict", "--profile", "archive", &heap, &back], 0).1, "");
    // The sink is standard output where no other is named.
    assert!(run(&["--to", "raw64", &heap], 0).0 == std::fs::read(&back).unwrap());
    // Losses are told, once for each kind, and are an error only where that is asked for.
    let (_, messages) = run(&[&heap, &less], 0);
    assert!(messages.contains("hatf: raw32 cannot hold times: 2000\n") && messages.lines().count() == 3, "{messages}");
    run(&["--strict", &heap, &less], 1);
    // A coarser clock.
    let coarse = path("coarse.mtf");
    let (_, messages) = run(&["--clock", "1ms", &heap, &coarse], 0);
    assert!(messages.contains("between two ticks"), "{messages}");
    let length = |path: &str| std::fs::metadata(path).unwrap().len();
    assert!(length(&coarse) < length(&heap));
    // What cannot be told from the names.
    run(&[&heap], 2);
    run(&["--clock", "2s", &heap, &coarse], 2);
    let (_, messages) = run(&["--from", "hatf10", &heap, &less], 1);
    assert!(messages.contains("--from heap"), "{messages}");
    // What was there stays where the input is bad.
    let before = std::fs::read(&less).unwrap();
    run(&["--from", "raw32", &heap, &less], 1);
    assert!(std::fs::read(&less).unwrap() == before);
    run(&["/no/such/trace", &less], 1);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let raw = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/gawk.raw32.zst");
    let mut child = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["convert", "--to", "jsonl", raw])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
