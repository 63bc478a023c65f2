//! C++ operators: those of the C++ library and those that allocators define.
#![expect(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashSet};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

use hatf_trace::event::Call;
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, skip};

use crate::common::{compiled_cpp, hatf};

const TIMES: u64 = 200;

/// Preloaded allocators. The first is that of the C library.
const ALLOCATORS: [&str; 4] = ["", "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"];

/// Returns the number of requests for each of the program's sizes. Checks that no live address is allocated again and
/// that only live blocks are freed.
fn sizes(trace: &Path) -> BTreeMap<u64, u64> {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut counts, mut live) = (BTreeMap::new(), HashSet::new());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Call(Call { size, old, address, .. }) => {
                live.remove(&old);
                assert!(address == 0 || live.insert(address), "{event:?} is live");
                if (7001..=7012).contains(&size) {
                    *counts.entry(size).or_default() += 1;
                }
            }
            EventKind::Free { address } => assert!(live.remove(&address), "{event:?} is not live"),
            _ => {}
        }
    }
    counts
}

#[test]
fn every_form_with_every_allocator() {
    let folder = Folder::new();
    let Some(program) = compiled_cpp(&folder, "operators", &["-O1", "-fno-builtin"]) else { return };
    for allocator in ALLOCATORS {
        let alone = Command::new(&program).arg("1").env("LD_PRELOAD", allocator).output().unwrap();
        if String::from_utf8_lossy(&alone.stderr).contains("cannot be preloaded") {
            skip(&format!("{allocator} is not on this machine"));
            continue;
        }
        let trace = folder.join("trace.mtf");
        let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"));
        recorder.args(["record", "--quiet", "-o"]).arg(&trace).arg("--").arg(&program).arg(TIMES.to_string());
        let run = recorder.env("LD_PRELOAD", allocator).output().unwrap();
        let messages = String::from_utf8_lossy(&run.stderr);
        // One of the allocators kills a program that requests too much.
        let ended = alone.status.code().or(alone.status.signal().map(|signal| 128 + signal));
        assert_eq!(run.status.code(), ended, "{allocator}: {messages}");
        let expected: BTreeMap<u64, u64> = (7001..=7012).map(|size| (size, TIMES)).collect();
        assert_eq!(sizes(&trace), expected, "{allocator}");
        // A trace with stacks identifies the allocator, though no stack leads through it.
        let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"));
        recorder.args(["record", "--quiet", "--stacks", "-o"]).arg(&trace).arg("--").arg(&program).arg("1");
        recorder.env("LD_PRELOAD", allocator).output().unwrap();
        let whatif = hatf([Path::new("whatif"), &trace]).exits(0).text();
        let name = allocator.trim_start_matches("lib").split(['.', '_']).next().filter(|name| !name.is_empty());
        assert!(whatif.contains(&format!("now: {}", name.unwrap_or("glibc"))), "{allocator}: {whatif}");
    }
}

/// The program's own new handler is called as often as without a recorder, its exceptions are caught, and later calls
/// are recorded.
#[test]
fn new_handlers_are_called_as_often() {
    let folder = Folder::new();
    let Some(program) = compiled_cpp(&folder, "new_handler", &["-O1", "-fno-builtin"]) else { return };
    let alone = Command::new(&program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&alone.stdout), "72 calls, 16 caught, 8 null\n");
    for stacks in [&[][..], &["--stacks"]] {
        let trace = folder.join("trace.mtf");
        let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"));
        recorder.args(["record", "--quiet"]).args(stacks).arg("-o").arg(&trace).arg("--").arg(&program);
        let run = recorder.output().unwrap();
        assert_eq!(
            (run.status.code(), &run.stdout),
            (Some(0), &alone.stdout),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        assert_eq!(sizes(&trace), BTreeMap::from([(7001, 24)]));
    }
}
