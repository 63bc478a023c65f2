//! Tests `postmortem` and `control` on a program that kills itself and on a running program.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong has to panic")]

use crate::common;

use metatf_derive::metatf;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[metatf(dtd = "../telemetry/metatf-telemetry/tests/events.dtd", emitters = "crate::telemetry::events")]
mod events {}

/// The environment variable that selects the observed program.
const CHILD: &str = "METATF_TEST_SCENARIO";

/// Runs as the child process: emits events, and then aborts or waits.
#[test]
fn child() {
    let Ok(scenario) = std::env::var(CHILD) else { return };
    let telemetry = events::TELEMETRY.start().unwrap();
    if scenario == "written" {
        (0..890).for_each(|number| events::step!(number));
        events::TELEMETRY.flush().unwrap();
        (890..1002).for_each(|number| events::step!(number));
        std::process::abort();
    }
    for number in 0..5 {
        events::step!(number);
    }
    events::label!(place = 4096, name = events::intern("the heap"));
    events::touch!(place = 4096, by = events::intern("a \"thread\""));
    events::said!(text = "the end is near", bytes = &[]);
    if scenario == "abort" {
        std::process::abort();
    }
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    events::step!(number = 5);
    telemetry.finish().unwrap();
}

fn start(folder: &Path, scenario: &str) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "telemetry::child", "--nocapture", "--test-threads=1"])
        .env(CHILD, scenario)
        .env("METATF_TELEMETRY_CONTROL", "all")
        .env("METATF_TELEMETRY_FILENAME", folder.join("events.mtf"))
        .env("METATF_TELEMETRY_FOLDER", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn buffers(folder: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.file_name().unwrap().to_string_lossy().starts_with("metatf.")).unwrap()
}

#[test]
fn a_program_that_aborts_leaves_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(!start(folder, "abort").wait_with_output().unwrap().status.success());
    let file = buffers(folder);
    for place in [file.to_str().unwrap(), "events.mtf"] {
        let run = common::metatfc(folder, &["telemetry", place, "--last", "2"]);
        assert_eq!((run.status, run.err.as_str()), (0, ""), "{place}");
        let printed = text(&run.out);
        let lines: Vec<&str> = printed.lines().collect();
        let (steps, said) = (
            lines.iter().position(|line| line.starts_with("# Object, thread")).unwrap(),
            lines.iter().position(|line| line.starts_with("# Arena")).unwrap(),
        );
        assert!(lines[steps].contains("): 2 of 5, newest first"), "{}", text(&run.out));
        assert!(
            lines[steps + 1].contains("\"number\":4") && lines[steps + 2].contains("\"number\":3"),
            "{}",
            text(&run.out)
        );
        assert!(lines[said + 1].contains("the end is near"), "{}", text(&run.out));
        let named = r#""place":{"value":4096,"label":"the heap"},"by":{"value":2,"string":"a \"thread\""}}"#;
        assert!(lines.iter().any(|line| line.ends_with(named)), "{}", text(&run.out));
    }
    let run = common::metatfc(folder, &["telemetry", file.to_str().unwrap(), "-o", "whole.mtf"]);
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(run.err.contains("10 more from the buffers, 1 threads"), "{}", run.err);
    let run = common::metatfc(folder, &["dump", "whole.mtf", "--resolve", "--record", "label"]);
    assert!(text(&run.out).ends_with("place=0x1000[\"the heap\"]  name=1[\"the heap\"]\n"), "{}", text(&run.out));
    let run = common::metatfc(folder, &["verify", "whole.mtf"]);
    assert_eq!(text(&run.out), "whole.mtf: whole: 10 records, 0 stream elements, 1 group\n");
}

#[test]
fn a_running_program_is_looked_at_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut child = start(folder, "wait");
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("ready") {
        line.clear();
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    }
    let file = buffers(folder);
    let place = file.to_str().unwrap();
    let run = common::metatfc(folder, &["telemetry", place]);
    assert!(text(&run.out).contains("\"number\":4"), "{}{}", text(&run.out), run.err);
    let run = common::metatfc(folder, &["telemetry", place, "--kinds"]);
    assert_eq!(text(&run.out), "kinds: Object Pool Arena Other\non: Object Pool Arena Other notes\n");
    let run = common::metatfc(folder, &["telemetry", place, "--set-kinds", "Polo"]);
    assert_eq!(run.status, 1);
    assert!(run.err.contains("`Polo`") && run.err.contains("Object, Pool, Arena"), "{}", run.err);
    assert_eq!(common::metatfc(folder, &["telemetry", place, "--set-kinds", "Pool"]).status, 0);
    while !common::metatfc(folder, &["telemetry", place, "--kinds"]).out.ends_with(b"on: Pool\n") {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"go\n").unwrap();
    assert!(child.wait().unwrap().success());
    let run = common::metatfc(folder, &["convert", "events.mtf", "-", "--to", "csv", "--record", "step"]);
    assert_eq!(text(&run.out).lines().count(), 6, "the last step is off: {}", text(&run.out));
    let run = common::metatfc(folder, &["telemetry", "events.mtf"]);
    assert_eq!(run.status, 1);
    assert!(run.err.contains("the trace is complete, so its buffers"), "{}", run.err);
}

/// If the trace of a killed program lacks events or cannot be read, the missing events are counted, and `postmortem`
/// fails.
#[test]
fn what_is_missing_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(!start(folder, "written").wait_with_output().unwrap().status.success());
    let file = buffers(folder);
    let (trace, kept) = (folder.join("events.mtf"), folder.join("kept.mtf"));
    let name = file.to_str().unwrap();
    // Returns the number of steps and dropped events in the result, and the messages.
    let recover = |status: i32| {
        let run = common::metatfc(folder, &["telemetry", name, "-o", "whole.mtf"]);
        assert_eq!(run.status, status, "{}", run.err);
        let dump = text(&common::metatfc(folder, &["dump", "--format", "jsonl", "whole.mtf"]).out);
        let lost =
            dump.lines().filter_map(|line| Some(line.split_once("\"count\":")?.1.trim_end_matches('}').to_owned()));
        (dump.matches("\"step\"").count(), lost.map(|count| count.parse::<usize>().unwrap()).sum::<usize>(), run.err)
    };
    let (whole, lost, said) = recover(0);
    assert_eq!((whole, lost), (1002, 0), "{said}");
    std::fs::rename(&trace, &kept).unwrap();
    // If the trace cannot be opened, the existing output is not overwritten.
    std::os::unix::fs::symlink("events.mtf", &trace).unwrap();
    std::fs::write(folder.join("whole.mtf"), "old").unwrap();
    for arguments in [&["telemetry", name, "-o", "whole.mtf"][..], &["telemetry", name]] {
        let run = common::metatfc(folder, arguments);
        assert!(
            run.status == 1 && run.err.contains("cannot open") && run.err.contains("symbolic links"),
            "{}",
            run.err
        );
    }
    assert_eq!(std::fs::read(folder.join("whole.mtf")).unwrap(), b"old");
    // The trace is missing, belongs to another run, or is truncated.
    std::fs::remove_file(&trace).unwrap();
    let (whole, lost, said) = recover(1);
    assert!(whole == 112 && whole + lost >= 1002, "{whole} and {lost}: {said}");
    assert!(
        said.contains("does not exist, so ") && said.contains(" records of the process's trace are missing"),
        "{said}"
    );
    assert_eq!(common::metatfc(folder, &["telemetry", name]).status, 1);
    let other = tempfile::tempdir().unwrap();
    assert!(!start(other.path(), "written").wait_with_output().unwrap().status.success());
    std::fs::copy(other.path().join("events.mtf"), &trace).unwrap();
    assert!(recover(1).2.contains("is the trace of another run, so "));
    let bytes = std::fs::read(&kept).unwrap();
    std::fs::write(&trace, &bytes[..bytes.len() - 40]).unwrap();
    let (whole, lost, said) = recover(1);
    assert!(whole < 1002 && whole + lost >= 1002, "{whole} and {lost}: {said}");
    assert!(said.contains(" records of this trace cannot be read"), "{said}");
    // The buffers are truncated.
    std::fs::rename(&kept, &trace).unwrap();
    let length = file.metadata().unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(length / 2).unwrap();
    assert!(recover(1).2.contains("cannot read "));
}

#[test]
fn what_has_no_buffers_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text"), "nothing of that sort").unwrap();
    for (place, message) in
        [("text", "expected telemetry buffers"), ("missing", "cannot open missing"), ("4000000000", "has no buffers")]
    {
        let run = common::metatfc(folder.path(), &["telemetry", place]);
        assert_eq!(run.status, 1);
        assert!(run.err.contains(message), "{}", run.err);
    }
}

/// In a world-writable directory, files of other users do not belong to the process, and links are not followed.
#[test]
fn buffers_of_another_user_are_not_those_of_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(!start(folder, "abort").wait_with_output().unwrap().status.success());
    let file = buffers(folder);
    let name = file.file_name().unwrap().to_str().unwrap();
    let process = name.split('.').nth(1).unwrap();
    let look = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_metatfc"));
        command.arg("telemetry").arg(process).env("METATF_TELEMETRY_FOLDER", folder);
        let output = command.output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(look(), (Some(0), String::new()));
    // A copy whose name looks newer.
    let copy = folder.join(format!("metatf.{process}.{}", u64::MAX));
    std::os::unix::fs::symlink(&file, &copy).unwrap();
    let only = folder.join("elsewhere");
    assert_eq!(look().0, Some(0), "the link is passed over");
    std::fs::rename(&file, &only).unwrap();
    std::fs::remove_file(&copy).unwrap();
    std::os::unix::fs::symlink(&only, &copy).unwrap();
    let (status, errors) = look();
    assert!(status == Some(1) && errors.contains("cannot open"), "{errors}");
    std::fs::remove_file(&copy).unwrap();
    std::fs::copy(&only, &copy).unwrap();
    // A process that has ended cannot be controlled.
    let run = common::metatfc(folder, &["telemetry", copy.to_str().unwrap(), "--set-kinds", "Pool"]);
    assert!(run.status == 1 && run.err.contains("has ended"), "{}", run.err);
    if std::os::unix::fs::chown(&copy, Some(65_534), None).is_err() {
        return println!("skipped: only root gives files away");
    }
    let (status, errors) = look();
    assert!(status == Some(1) && errors.contains("the file belongs to user 65534"), "{errors}");
    // A file named explicitly is used.
    assert_eq!(common::metatfc(folder, &["telemetry", copy.to_str().unwrap()]).status, 0);
}
