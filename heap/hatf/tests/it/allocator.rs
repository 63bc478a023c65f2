//! The allocator of a Rust program, recorded by `Recording`, either through the preloaded recorder or in a static
//! program without it.
#![expect(clippy::unwrap_used)]

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::hatf;
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, skip};

/// Builds the example as a user would, with these compiler flags.
fn built(folder: &str, flags: &str) -> Option<PathBuf> {
    built_for("gnu", folder, flags)
}

/// Builds the example for a C library. Returns `None` if it cannot be built here.
fn built_for(library: &str, folder: &str, flags: &str) -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = format!("{}-unknown-linux-{library}", std::env::consts::ARCH);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--offline", "--target", &target, "-p", "example-recorded-allocator"]);
    cargo.arg("--manifest-path").arg(home.join("Cargo.toml")).arg("--target-dir").arg(&out);
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "LLVM_PROFILE_FILE"] {
        cargo.env_remove(name);
    }
    let output = cargo.env("RUSTFLAGS", flags).output().unwrap();
    if !output.status.success() {
        skip(&format!("the example cannot be built here: {}", String::from_utf8_lossy(&output.stderr)));
        return None;
    }
    Some(out.join(target).join("debug/example-recorded-allocator"))
}

/// Summary of a trace: sizes of large blocks and of leaked ones, counts of frees of unknown blocks, of duplicate
/// addresses, of ended threads and of small blocks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    large: Vec<u64>,
    leaked: Vec<u64>,
    unknown_frees: u64,
    twice: u64,
    ended: u64,
    words: usize,
}

fn found(trace: &Path) -> Found {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut found, mut live) = (Found::default(), std::collections::HashMap::new());
    let mut threads = HashSet::new();
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Call(call) | EventKind::ReallocEnd(call) if call.address != 0 => {
                if call.old != 0 {
                    found.unknown_frees += u64::from(live.remove(&call.old).is_none());
                }
                found.twice += u64::from(live.insert(call.address, call.size).is_some());
                if call.size >= 700_000 {
                    found.large.push(call.size);
                }
                found.words += usize::from((10..=20).contains(&call.size));
                threads.insert(event.thread);
            }
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => {
                found.unknown_frees += u64::from(live.remove(&address).is_none());
            }
            EventKind::ThreadEnd => found.ended += 1,
            _ => {}
        }
    }
    found.large.sort_unstable();
    found.leaked = live.into_values().filter(|size| *size >= 700_000).collect();
    assert!(threads.len() >= 4, "{threads:?}");
    found
}

fn check(program: &Path, options: &[&str]) {
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    let arguments = ["record", "-o", &trace].into_iter().chain(options.iter().copied());
    let run = hatf(arguments.chain(["--", program.to_str().unwrap()])).exits(0);
    assert!(run.text().starts_with("2103006 "), "{}", run.text());
    assert!(!run.err.contains("did not load"), "{}", run.err);
    let found = found(Path::new(&trace));
    // Each large block is recorded exactly once.
    assert_eq!(found.large, [700_001, 700_002, 700_003, 800_001, 800_008, 900_001], "{options:?}");
    assert_eq!(
        (&found.leaked[..], found.unknown_frees, found.twice, found.ended),
        (&[800_008][..], 0, 0, 3),
        "{found:?}"
    );
    assert!(found.words >= 3000, "{found:?}");
}

#[test]
fn beneath_the_preloaded_recorder() {
    let Some(program) = built("dynamic", "") else { return };
    // The program also runs without `hatf`.
    assert!(Command::new(&program).status().unwrap().success());
    check(&program, &[]);
    if cfg!(target_arch = "x86_64") {
        check(&program, &["--stacks=8"]);
    }
}

#[test]
fn in_a_static_program() {
    let Some(program) = built("static", "-C target-feature=+crt-static") else { return };
    assert!(Command::new(&program).status().unwrap().success());
    check(&program, &[]);
    // With `--start-off`, nothing is recorded until recording is turned on.
    let folder = Folder::new();
    let trace = folder.path("off.mtf");
    hatf(["record", "--start-off", "-o", &trace, "--", program.to_str().unwrap()])
        .exits(0)
        .says("recording was never turned on");
}

/// Runs a program that records itself, and recovers its trace.
fn standalone(program: &Path, folder: &Folder, environment: &[(&str, &str)]) -> String {
    let spool = folder.path("spool");
    let run = Command::new(program).env("HATF_OUTPUT", &spool).envs(environment.iter().copied()).output().unwrap();
    assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
    // `hatf report` refuses a spool and names `hatf recover`.
    hatf(["report", &spool]).exits(1).says("hatf recover");
    hatf(["recover", &spool]).exits(0);
    assert!(!Path::new(&spool).exists());
    folder.path("spool.mtf")
}

fn check_standalone(program: &Path) {
    let folder = Folder::new();
    let trace = standalone(program, &folder, &[]);
    let found = found(Path::new(&trace));
    assert_eq!(found.large, [700_001, 700_002, 700_003, 800_001, 800_008, 900_001]);
    assert_eq!((&found.leaked[..], found.unknown_frees, found.twice, found.ended), (&[800_008][..], 0, 0, 3));
    assert!(found.words >= 3000, "{found:?}");
    // A second run with the same name does not replace the first trace.
    let again = standalone(program, &folder, &[("HATF_SAMPLE", "4KiB")]);
    assert!(Path::new(&again).exists() && Path::new(&folder.path("spool.1.mtf")).exists());
    // If the spool is too small, the trace counts the lost events.
    std::fs::remove_file(&trace).unwrap();
    standalone(program, &folder, &[("HATF_OUTPUT_SIZE", "64KiB")]);
    let mut reader = TraceReader::open(Path::new(&trace)).unwrap();
    while reader.next().unwrap().is_some() {}
    assert!(reader.user_metadata()["lost"].as_u64().unwrap() > 1000, "{:?}", reader.user_metadata());
}

#[test]
fn a_program_that_records_itself() {
    let Some(program) = built("dynamic", "") else { return };
    check_standalone(&program);
    // If the output directory exists or cannot be created, the program runs and reports that it is not recorded.
    let folder = Folder::new();
    let there = folder.path("there");
    std::fs::create_dir(&there).unwrap();
    for (output, message) in [(&*there, "hatf recover"), ("/proc/nowhere/x", "does not exist")] {
        let run = Command::new(&program).env("HATF_OUTPUT", output).output().unwrap();
        let error = String::from_utf8(run.stderr).unwrap();
        assert!(run.status.success() && error.contains("not recorded") && error.contains(message), "{error}");
    }
    // Under `hatf record`, `HATF_OUTPUT` has no effect.
    let trace = folder.path("trace.mtf");
    let both = folder.path("both");
    hatf(["record", "-o", &trace, "--", "env", &format!("HATF_OUTPUT={both}"), program.to_str().unwrap()]).exits(0);
    assert!(!Path::new(&both).exists());
}

#[test]
fn a_static_program_that_records_itself() {
    let Some(program) = built("static", "-C target-feature=+crt-static") else { return };
    check_standalone(&program);
}

/// Recording also works with musl, a target that `rustup target add` installs.
#[test]
fn a_program_of_musl() {
    let Some(program) = built_for("musl", "musl", "") else { return };
    check(&program, &[]);
    check_standalone(&program);
}
