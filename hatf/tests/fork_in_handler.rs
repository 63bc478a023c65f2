//! A signal handler forks while the recorder is in the middle of a call: parent and child both go on.
#![expect(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use hatf::trace::TraceReader;
use hatf::{Event, EventKind, EventSource as _, Item};

/// Sizes that the program asks for in the parent and in its children.
const PARENT_SIZE: u64 = 100;
const CHILD_SIZE: u64 = 3_000_001;
const CHILDREN: u64 = 1000;

/// Compiles the program; `None` where there is no C compiler.
fn program() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/fork_in_handler.c");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fork_in_handler");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&out).arg(source);
    let Ok(output) = compiler.output() else {
        eprintln!("SKIPPED: no cc on this machine");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(out)
}

/// Records the program; checks that no child crashed, and that the trace holds every call of the parent once and none of
/// the children.
fn check(program: &Path, function: &str) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("fork.mtf");
    let mut hatf = Command::new(env!("CARGO_BIN_EXE_hatf"));
    hatf.args(["record", "-o"]).arg(&trace).arg("--").arg(program).arg(function).arg(CHILDREN.to_string());
    let output = hatf.output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    if output.status.code() == Some(77) {
        eprintln!("SKIPPED: this C library has no {function}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{function}: {messages}");
    assert!(messages.contains(" 0 children failed"), "{function}: {messages}");
    assert!(messages.contains(&format!(" 0 lost, {CHILDREN} child processes not recorded")), "{function}: {messages}");
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

#[test]
fn a_child_inherits_a_call_that_is_half_recorded() {
    let Some(program) = program() else { return };
    for function in ["fork", "_Fork"] {
        check(&program, function);
    }
}
