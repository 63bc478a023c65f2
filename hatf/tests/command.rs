//! The command: exit statuses, and what goes where.
#![expect(clippy::unwrap_used)]

use std::io::Read as _;
use std::process::{Command, Output, Stdio};

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
    for command in [&["--help"][..], &["record", "--help"], &["report", "--help"]] {
        let text = String::from_utf8(hatf(command).stdout).unwrap();
        assert!(text.contains("Examples:"), "{text}");
    }
}
