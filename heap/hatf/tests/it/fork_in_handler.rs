//! A signal handler forks while the recorder records a call, and parent and child both continue.
#![expect(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use hatf_trace::forms::TraceReader;
use hatf_trace::{Event, EventKind, EventSource as _, Item};
use metatf_test::Folder;

use crate::common::compiled;

/// Sizes of blocks in the parent and in its children.
const PARENT_SIZE: u64 = 100;
const CHILD_SIZE: u64 = 3_000_001;
const CHILDREN: usize = 1000;
const CHILD_BLOCKS: u64 = 20;

/// Records the program. Checks that no child crashed, that the trace contains every call of the parent once and no call
/// of a child, and that the trace of each followed child contains the child's calls and at most one of the parent's.
fn check(program: &Path, function: &str, options: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("fork.mtf");
    let mut hatf = Command::new(env!("CARGO_BIN_EXE_hatf"));
    hatf.args(["record", "-o"])
        .arg(&trace)
        .args(options)
        .arg("--")
        .arg(program)
        .arg(function)
        .arg(CHILDREN.to_string());
    let output = hatf.output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    if output.status.code() == Some(77) {
        eprintln!("SKIPPED: this C library has no {function}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{function}: {messages}");
    assert!(messages.contains(" 0 children failed"), "{function}: {messages}");
    let number = |what: &str| {
        let line = messages.lines().find(|line| line.contains(what));
        line.map_or(0, |line| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap())
    };
    let (followed, others) = (number(" more process"), number(" other process"));
    assert_eq!(followed + others, CHILDREN, "{function}: {messages}");
    assert!(messages.matches(" 0 lost").count() == 1 + usize::from(followed > 0), "{function}: {messages}");
    let traces = std::fs::read_dir(trace.with_extension("processes")).into_iter().flatten();
    let traces = traces.map(|entry| entry.unwrap().path()).filter(|path| path.extension().unwrap() == "mtf");
    assert_eq!(traces.map(|path| check_child(&path)).count(), followed);
    let blocks: u64 = messages.split(' ').next().unwrap().parse().unwrap();

    let mut reader = TraceReader::open(&trace).unwrap();
    let (mut allocated, mut freed, mut live, mut last) = (0, 0, None, 0);
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(Event { kind, time, thread, .. }) = item else { continue };
        assert_eq!(thread, 1, "{kind:?}");
        assert!(time >= last && time < 600_000_000_000, "{function}: {kind:?} at {time}, after {last}");
        last = time;
        match kind {
            EventKind::Call(call) => {
                assert_ne!(call.size, CHILD_SIZE, "{function}: a child's call");
                if call.size == PARENT_SIZE {
                    allocated += 1;
                    assert_eq!(live.replace(call.address), None, "{function}");
                }
            }
            EventKind::Free { address } if live == Some(address) => {
                freed += 1;
                live = None;
            }
            _ => {}
        }
    }
    assert_eq!((allocated, freed), (blocks, blocks), "{function}");
}

/// Checks that the trace of a child begins with the child's own calls.
fn check_child(trace: &Path) {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut own, mut others) = (0, 0);
    while let Some(item) = reader.next().unwrap() {
        if let Item::Event(Event { kind: EventKind::Call(call), .. }) = item {
            own += u64::from(call.size == CHILD_SIZE);
            others += u64::from(call.size == PARENT_SIZE);
        }
    }
    // The child continues where the handler interrupted it, which may be before a call.
    assert!(own == CHILD_BLOCKS && others <= 1, "{}: {own}, {others}", trace.display());
}

#[test]
fn a_child_inherits_a_call_that_is_half_recorded() {
    let folder = Folder::new();
    let flags = ["-O2", "-Wall", "-Wextra", "-Werror"];
    let Some(program) = compiled(&folder, "fork_in_handler", &flags) else { return };
    for function in ["fork", "_Fork"] {
        check(&program, function, &[]);
        check(&program, function, &["--no-follow"]);
    }
}
