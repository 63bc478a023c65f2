//! A spool that is full, because `hatf` is stopped: the program goes on, and the trace says what is missing, and where.
#![expect(clippy::unwrap_used)]

mod common;

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::hatf;
use hatf::event::Call;
use hatf::trace::TraceReader;
use hatf::{EventKind, EventSource as _, Item};
use metatf_test::Folder;

/// Blocks that the program is given: more than a spool of 1 MiB holds.
const BLOCKS: u64 = 200_000;

/// Sends a signal to a child that was not waited for.
fn signal(child: u32, signal: libc::c_int) {
    // SAFETY: a child of this process.
    assert_eq!(unsafe { libc::kill(libc::pid_t::try_from(child).unwrap(), signal) }, 0);
}

/// A C program that waits for a line, and is then given blocks.
fn program(folder: &Folder) -> Option<PathBuf> {
    let source = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(\"ready\"); fflush(stdout); getchar();\n\
        for (int n = 0; n < 200000; n++) { void *volatile block = malloc(77); free(block); } puts(\"done\"); return 7; }\n";
    folder.write("blocks.c", source);
    let out = folder.join("blocks");
    let built = Command::new("cc").arg("-O1").arg("-o").arg(&out).arg(folder.join("blocks.c")).status();
    built.is_ok_and(|status| status.success()).then_some(out)
}

/// Blocks of the program in a trace, and events that it says are lost.
fn read(trace: &Path) -> (u64, u64) {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut calls, mut lost) = (0, 0);
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Call(call) if call.size == 77 => calls += 1,
            EventKind::Lost { events } => lost += events,
            _ => {}
        }
    }
    (calls, lost)
}

/// Records the program while `hatf` is stopped; returns its messages and the time the program took.
fn stopped(program: &Path, trace: &Path, policy: &str) -> (String, Duration) {
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "--spool-size", "1MiB", "--when-full", policy, "-o"])
        .arg(trace)
        .arg("--")
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = recorder.stdout.take().unwrap();
    output.read_exact(&mut [0; 6]).unwrap();
    signal(recorder.id(), libc::SIGSTOP);
    recorder.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    let begun = Instant::now();
    // Without anybody to read, the program comes to its end.
    output.read_exact(&mut [0; 5]).unwrap();
    let took = begun.elapsed();
    signal(recorder.id(), libc::SIGCONT);
    let output = recorder.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    (String::from_utf8(output.stderr).unwrap(), took)
}

#[test]
fn a_stopped_recorder_does_not_stop_the_program() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else {
        metatf_test::skip("no cc on this machine");
        return;
    };
    let trace = folder.join("trace.mtf");
    for policy in ["drop", "wait"] {
        let (messages, took) = stopped(&program, &trace, policy);
        assert!(messages.contains("events were lost"), "{messages}");
        // Whether it waited at all, which is for 5 s.
        assert_eq!(took >= Duration::from_secs(4), policy == "wait", "{took:?}");
        let (calls, lost) = read(&trace);
        assert!(calls > 1000 && lost > 1000, "{calls} calls, {lost} lost");
        // Each block is two events. Of at most one only a half is there; the program's own few are lost as well.
        let all = 2 * calls + lost;
        assert!((2 * BLOCKS - 1..2 * BLOCKS + 20).contains(&all), "{calls} calls, {lost} lost");
    }
    let (messages, _) = stopped(&program, &trace, "stop");
    assert!(messages.contains("recording ended early: the spool was full"), "{messages}");
}

/// The inner recording is the one of its program: no call stands in it twice.
#[test]
fn a_recording_inside_a_recording() {
    let folder = Folder::new();
    let (outer, inner) = (folder.path("outer.mtf"), folder.path("inner.mtf"));
    let own = env!("CARGO_BIN_EXE_hatf");
    hatf(["record", "-o", &outer, "--", own, "record", "-o", &inner, "--", "/bin/sh", "-c", "exit 3"]).exits(3);
    let mut reader = TraceReader::open(Path::new(&inner)).unwrap();
    let (mut live, mut calls) = (HashSet::new(), 0);
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Call(Call { old, address, .. }) => {
                calls += 1;
                assert!(old == 0 || live.remove(&old), "{event:?}");
                assert!(address == 0 || live.insert(address), "{event:?}");
            }
            EventKind::Free { address } => assert!(live.remove(&address), "{event:?}"),
            _ => {}
        }
    }
    assert!(calls > 5);
    hatf(["report", &outer]).exits(0).prints("total heap usage: ");
}
