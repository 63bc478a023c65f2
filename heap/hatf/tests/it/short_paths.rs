//! The short paths of hooks for samples and while recording is off: their instructions, the sample, and circumstances
//! that require the complete path.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, clippy::cast_precision_loss)]

use std::path::{Path, PathBuf};
use std::process::Command;

use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, run, skip};

use crate::common::{compiled, compiled_cpp, hatf, invariants};

fn program(folder: &Folder) -> Option<PathBuf> {
    compiled_cpp(folder, "short_paths", &["-O1", "-fno-builtin"])
}

/// Returns the number of instructions that the program executes, according to valgrind.
fn instructions(before: &[&str], program: &Path, arguments: [&str; 2]) -> f64 {
    let mut words: Vec<&str> = before.to_vec();
    let program = program.display().to_string();
    words.extend(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", &program]);
    words.extend(arguments);
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    let collected = messages.lines().find_map(|line| line.split_once("Collected : "));
    collected.unwrap().1.trim().parse().unwrap()
}

/// A loop of the program, its events per round, and the maximum number of the recorder's instructions per event for a
/// sample and while recording is off. An operator of C++ calls a C function, which has a hook as well, and a realloc
/// ends one block and begins another.
const LOOPS: [(&str, f64, f64, f64); 5] = [
    ("malloc", 2.0, 15.0, 4.0),
    ("sizes", 2.0, 15.0, 4.0),
    ("calloc", 2.0, 15.0, 4.0),
    ("new", 2.0, 16.0, 8.0),
    ("realloc", 1.0, 17.0, 4.0),
];

#[test]
fn few_instructions() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skip("valgrind is not on this machine");
    }
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let trace = folder.path("trace.mtf");
    let hatf = [env!("CARGO_BIN_EXE_hatf"), "record", "-q", "-o", &trace];
    let recorded = |options: &[&'static str]| [&hatf[..], options, &["--"]].concat();
    let (sample, off) = (recorded(&["--sample", "512KiB"]), recorded(&["--start-off"]));
    for (what, events, most_sampled, most_off) in LOOPS {
        let round = |before: &[&str]| {
            let [few, many] = ["20000", "60000"].map(|count| instructions(before, &program, [what, count]));
            (many - few) / 40_000.0
        };
        let alone = round(&[]);
        let [sampled, off] = [&sample, &off].map(|before| (round(before) - alone) / events);
        eprintln!("{what}: {sampled:.1} instructions per event of a sample, {off:.1} while recording is off");
        assert!(sampled <= most_sampled, "{what}: {sampled}");
        // The allocator itself takes different paths for blocks at different addresses.
        assert!(off <= most_off + 0.25, "{what}: {off}");
    }
}

/// The mean number of bytes per recorded block.
const MEAN: f64 = 16384.0;

/// The program's blocks of each size per 400 rounds.
const KNOWN: [(u64, u64); 7] = [(61, 400), (67, 100), (333, 400), (611, 400), (3331, 100), (7001, 100), (70001, 4)];

/// Returns the estimated numbers of blocks and of bytes in a trace, for blocks of these sizes. Checks that each
/// recorded block ends.
fn estimates(trace: &Path) -> [f64; 2] {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut sums, mut live) = ([0.0; 2], std::collections::HashSet::new());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Call(call) => {
                live.remove(&call.old);
                if KNOWN.iter().any(|(size, _)| *size == call.size) {
                    assert!(live.insert(call.address), "{event:?} is live");
                    let weight = 1.0 / -(-(call.size as f64) / MEAN).exp_m1();
                    sums[0] += weight;
                    sums[1] += weight * call.size as f64;
                }
            }
            EventKind::Free { address } => drop(live.remove(&address)),
            _ => {}
        }
    }
    assert!(live.is_empty(), "{live:x?} never end");
    sums
}

/// Records samples of the program, with an allocator that is preloaded into it. Returns, for blocks and for bytes, the
/// mean estimate divided by the true number, and the number of standard errors by which they differ.
fn sampled(runs: u32, allocator: Option<&str>) -> Option<[(f64, f64); 2]> {
    const ROUNDS: u64 = 2_000;
    let folder = Folder::new();
    let program = program(&folder)?.display().to_string();
    let flags = ["-O1", "-fno-builtin", "-shared", "-fPIC"];
    let library = match allocator {
        Some(allocator) => compiled(&folder, allocator, &flags)?,
        None => PathBuf::new(),
    };
    let trace = folder.path("trace.mtf");
    let found: Vec<_> = (0..runs)
        .map(|_| {
            let rounds = ROUNDS.to_string();
            let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"));
            recorder.args(["record", "-q", "--patience", "600s", "--sample", "16KiB", "-o", &trace, "--", &program]);
            run(recorder.args(["known", &rounds]).env("LD_PRELOAD", &library)).exits(0);
            estimates(Path::new(&trace))
        })
        .collect();
    let blocks = KNOWN.iter().map(|(_, count)| count * ROUNDS / 400).sum::<u64>() as f64;
    let bytes = KNOWN.iter().map(|(size, count)| size * count * ROUNDS / 400).sum::<u64>() as f64;
    Some([(0, blocks), (1, bytes)].map(|(which, truth)| {
        let runs = f64::from(runs);
        let mean = found.iter().map(|sums| sums[which]).sum::<f64>() / runs;
        let variance = found.iter().map(|sums| (sums[which] - mean).powi(2)).sum::<f64>() / (runs - 1.0);
        let z = (mean - truth) / (variance / runs).sqrt();
        eprintln!("{runs} runs: {mean:.1} of {truth}, z = {z:.2}");
        (mean / truth, z)
    }))
}

/// Calls that were counted twice would double a mean.
#[test]
fn a_few_samples() {
    for allocator in [None, Some("reentrant_allocator")] {
        let Some(found) = sampled(12, allocator) else { return };
        for (ratio, z) in found {
            assert!((ratio - 1.0).abs() < 0.15 && z.abs() < 6.0, "{allocator:?}: {ratio} {z}");
        }
    }
}

/// Takes minutes: `cargo test -p hatf --test it short_paths::a_thousand_samples -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes, and fails by chance once in a thousand times"]
fn a_thousand_samples() {
    let Some(found) = sampled(1000, None) else { return };
    assert!(found.iter().all(|(_, z)| z.abs() < 3.3), "{found:?}");
}

/// Returns the numbers of events that begin blocks of this size, and that end them.
fn blocks_of(trace: &Path, size: u64) -> [usize; 2] {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut live, mut counts) = (std::collections::HashSet::new(), [0; 2]);
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Call(call) if call.size == size => {
                assert!(live.insert(call.address), "{event:?} is live");
                counts[0] += 1;
            }
            EventKind::Free { address } => counts[1] += usize::from(live.remove(&address)),
            _ => {}
        }
    }
    counts
}

fn traces(trace: &str) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(Path::new(trace).with_extension("processes")).into_iter().flatten();
    let paths = folder.map(|entry| entry.unwrap().path());
    let mut traces: Vec<_> = paths.filter(|path| path.extension().is_some_and(|form| form == "mtf")).collect();
    traces.push(trace.into());
    traces
}

/// Large blocks are nearly always selected, so all of them are in the sample: four in the parent, 20 in each forked
/// child, and 20 in the program that the child of `vfork` becomes. The child of a raw `clone` is not recorded.
#[test]
fn children() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    for (option, is_on) in [("--sample=1KiB", true), ("--start-off", false)] {
        hatf(["record", "-q", option, "-o", &trace, "--", &program, "children", "1"]).exits(0);
        let traces = traces(&trace);
        let total =
            |size: u64| traces.iter().map(|trace| blocks_of(trace, size)).fold([0; 2], |[a, b], [c, d]| [a + c, b + d]);
        for (size, count) in [(1_000_008, 4), (2_000_008, 80), (3_000_008, 0), (4_000_008, 20)] {
            assert_eq!(total(size), [if is_on { count } else { 0 }; 2], "{option}: blocks of {size} bytes");
        }
        // The parent, four forked children, and a program.
        assert_eq!(traces.len(), 6, "{option}");
        for trace in &traces {
            assert_eq!(invariants::broken(trace), [""; 0], "{option}: {}", trace.display());
        }
    }
}

/// Records the program with these options, and checks its trace.
fn checked(options: &[&str], arguments: &[&str]) {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    let control = folder.path("control");
    std::fs::write(&control, "").unwrap();
    let mut words = vec!["record", "-q", "-o", &trace, "--control", &control];
    words.extend(options.iter().chain(&["--", &program]).chain(arguments));
    if arguments[0] == "threads" {
        words.push(&control);
    }
    hatf(words).exits(0);
    assert_eq!(invariants::broken(Path::new(&trace)), [""; 0], "{options:?}");
}

/// Four threads pass blocks to each other while recording is switched from outside.
#[test]
fn switched_from_outside() {
    for options in [&["--sample", "4KiB"][..], &["--start-off"], &["--sample", "4KiB", "--start-off", "--stacks"]] {
        checked(options, &["threads", "60000"]);
    }
}

#[test]
fn brief_threads() {
    for options in [&["--sample", "4KiB"][..], &["--start-off"], &["--sample", "1", "--stacks"]] {
        checked(options, &["brief", "1600"]);
    }
}

#[test]
fn allocating_signal_handlers() {
    for options in [&["--sample", "4KiB"][..], &["--start-off"], &["--sample", "64", "--stacks"]] {
        checked(options, &["signals", "20000"]);
    }
}
