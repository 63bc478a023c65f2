//! Untouched pages of large blocks, which the recorder counts when the blocks end.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used)]

use std::path::Path;

use crate::common::{compiled, hatf};
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, skip};
use serde_json::Value;

/// The untouched whole pages of a block of 4,000,000 bytes after a page and 16 bytes, with 400,000 touched bytes.
const UNTOUCHED: u64 = 878 * 4096;

/// Returns the untouched bytes of each block that has a record, in a trace with stacks, and whether the records precede
/// the ends of their blocks.
fn untouched(trace: &str) -> Vec<(u64, bool)> {
    let mut reader = TraceReader::open(Path::new(trace)).unwrap();
    let (mut found, mut last) = (Vec::new(), None);
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Untouched { address, bytes } => {
                last = Some(address);
                found.push((bytes, false));
            }
            EventKind::Free { address } if last == Some(address) => {
                last = None;
                found.last_mut().unwrap().1 = true;
            }
            _ => {}
        }
    }
    found
}

#[test]
fn each_end_of_a_block() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "untouched", &["-O1", "-fno-builtin"]) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    let record = |options: &[&'static str], what: &'static str| {
        let options = options.iter().copied().chain(["-o", &trace, "--", &program, what]);
        let run = hatf(["record"].into_iter().chain(options)).exits(7).says(" 0 lost");
        (untouched(&trace), run)
    };
    // Without stacks, nothing is examined.
    assert_eq!(record(&[], "free").0, []);
    let (found, run) = record(&["--stacks"], "free");
    if found.is_empty() {
        return skip(&format!("no stacks on this machine: {}", run.err));
    }
    assert_eq!(found, [(UNTOUCHED, true)]);
    assert_eq!(record(&["--stacks"], "small").0, []);
    assert_eq!(record(&["--stacks"], "exit").0, [(UNTOUCHED, false)]);
    // Hooks of `exec` have little room on the stack, so nothing is examined.
    assert_eq!(record(&["--stacks"], "exec").0, []);
    // The parent has the block until it exits; the child's trace does not contain the block.
    assert_eq!(record(&["--stacks"], "child").0, [(UNTOUCHED, false)]);
    // The realloc moves the pages without touching more of them.
    let (found, _) = record(&["--stacks"], "realloc");
    let [(bytes, true)] = found[..] else { panic!("{found:?}") };
    assert!(bytes > UNTOUCHED && bytes < 4_000_000 - 200_000, "{bytes}");

    for (what, blocks) in [("handlers", 2000), ("threads", 4000)] {
        let (found, _) = record(&["--stacks"], what);
        // The C library may use memory again that an earlier block touched.
        assert!(found.iter().all(|(bytes, is_ended)| *bytes < 90_000 && (*is_ended || what == "threads")), "{what}");
        assert_eq!(found.len(), blocks, "{what}");
    }
    // No system call is made that the program's filter may forbid.
    assert_eq!(record(&["--stacks"], "confined").0, [(UNTOUCHED, true)]);
}

/// The numbers survive every command that writes a trace of the same blocks.
#[test]
fn other_traces_contain_the_same() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "untouched", &["-O1", "-fno-builtin"]) else { return };
    let program = program.display().to_string();
    let path = |name: &str| folder.path(name);
    let run = hatf(["record", "--stacks", "-o", &path("a.mtf"), "--", &program, "free"]).exits(7);
    let counted = |trace: &str| {
        let sites = hatf(["sites", trace, "--by", "untouched", "--symbols", "none", "--format", "json"]).exits(0);
        let sites: Value = serde_json::from_slice(&sites.out).unwrap();
        let sites = sites["sites"].as_array().unwrap().clone();
        sites.iter().map(|site| site["untouched"]["bytes"].as_u64().unwrap()).sum::<u64>()
    };
    if untouched(&path("a.mtf")).is_empty() {
        hatf(["sites", &path("a.mtf"), "--by", "untouched"]).exits(2).says("does not contain the untouched pages");
        return skip(&format!("no stacks on this machine: {}", run.err));
    }
    assert_eq!(counted(&path("a.mtf")), UNTOUCHED);
    hatf(["convert", &path("a.mtf"), &path("a.jsonl")]).exits(0);
    hatf(["convert", &path("a.jsonl"), &path("again.mtf")]).exits(0);
    hatf(["cut", &path("a.mtf"), "--records", "2..", "-o", &path("cut.mtf")]).exits(0);
    hatf(["anonymize", &path("a.mtf"), "-o", &path("anonymous.mtf")]).exits(0);
    for trace in ["a.jsonl", "again.mtf", "cut.mtf", "anonymous.mtf"] {
        assert_eq!(counted(&path(trace)), UNTOUCHED, "{trace}");
    }
    hatf(["convert", &path("a.mtf"), &path("cut.mtf"), &path("both.mtf")]).exits(0);
    assert_eq!(counted(&path("both.mtf")), 2 * UNTOUCHED);
    let table = hatf(["sites", &path("a.mtf"), "--by", "untouched"]).exits(0).text();
    assert!(table.contains("3,596,288  100.0%") && table.contains("reserve at "), "{table}");
}
