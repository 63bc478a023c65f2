//! Recording that is paused by the program, by a signal or by a file.
#![expect(clippy::unwrap_used)]

use crate::common::invariants;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{compiled, hatf};
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::Folder;

fn program(folder: &Folder) -> Option<PathBuf> {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hatf-record/include");
    compiled(folder, "control", &["-O1", "-Wall", "-Wextra", "-Werror", "-I", header.to_str().unwrap()])
}

/// Returns the large blocks, the marks and the changes of recording in a trace.
fn messages(trace: &Path) -> Vec<String> {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut lines, mut large) = (Vec::new(), Vec::new());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        lines.push(match event.kind {
            EventKind::Recording { on: true } => "on".to_owned(),
            EventKind::Recording { on: false } => "off".to_owned(),
            EventKind::Mark { name } => String::from_utf8_lossy(name).into_owned(),
            EventKind::Call(call) if call.size / 10 == 100_000 => {
                large.push(call.address);
                call.size.to_string()
            }
            EventKind::Free { address } if large.contains(&address) => "free".to_owned(),
            EventKind::Exit { .. } => "exit".to_owned(),
            _ => continue,
        });
    }
    lines
}

#[test]
fn by_the_program() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    assert!(Command::new(&program).status().unwrap().success(), "it runs by itself");
    let trace = folder.path("api.mtf");
    for options in [&[][..], &["--sample", "1KiB"], &["--stacks"]] {
        let arguments = ["record", "-q", "-o", &trace].into_iter().chain(options.iter().copied());
        let command = ["--", program.to_str().unwrap(), "api"];
        hatf(arguments.chain(command)).exits(0).says("recording was off when the program ended");
        let mut found = messages(Path::new(&trace));
        // The freed address may be known or unknown.
        found.retain(|line| line != "free");
        assert_eq!(found, ["1000000", "off", "on", "this", "1000002", "1000003", "off", "exit"], "{options:?}");
    }
    let report = hatf(["report", "--format", "json", &trace]).exits(0);
    let report: serde_json::Value = serde_json::from_slice(&report.out).unwrap();
    let off = &report["off"];
    assert_eq!((&off["times"], &off["at_end"], &off["frees"]), (&2.into(), &true.into(), &1.into()), "{off}");
    assert!(off["forgotten_blocks"].as_u64().unwrap() >= 1 && off["forgotten_bytes"].as_u64().unwrap() >= 1_000_000);
    let totals = &report["totals"];
    assert_eq!((&totals["unmatched_frees"], &totals["allocs_of_live_blocks"]), (&0.into(), &0.into()));
    let text = hatf(["report", &trace]).exits(0).text();
    for line in [
        "recording was off 2 times",
        "1 frees of blocks",
        "were live when recording stopped",
        "recording was off at the end",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn by_a_signal_to_the_program() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let trace = folder.path("signal.mtf");
    let arguments = ["record", "-q", "--start-off", "--toggle-signal", "SIGUSR2", "-o", &trace, "--"];
    hatf(arguments.into_iter().chain([program.to_str().unwrap(), "signal"])).exits(0);
    assert_eq!(messages(Path::new(&trace)), ["off", "on", "1000001", "off", "exit"]);
}

/// A signal to `hatf` switches all processes, and a later process starts in the current state.
#[test]
fn by_a_signal_to_hatf() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let trace = folder.path("parent.mtf");
    let arguments = ["record", "-q", "--start-off", "--toggle-signal", "usr2", "-o", &trace, "--"];
    hatf(arguments.into_iter().chain([program.to_str().unwrap(), "parent"])).exits(0);
    assert_eq!(messages(Path::new(&trace)), ["off", "on", "1000001", "exit"]);
    assert_eq!(messages(&folder.join("parent.processes/2-control.mtf")), ["1000002", "exit"]);
}

#[test]
fn by_a_file() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let (trace, file) = (folder.path("file.mtf"), folder.path("control.txt"));
    // Content from before the start has no effect.
    std::fs::write(&file, "on\n").unwrap();
    std::fs::write(&file, "off\n").unwrap();
    let arguments = ["record", "-q", "--start-off", "--control", &file, "-o", &trace, "--"];
    hatf(arguments.into_iter().chain([program.to_str().unwrap(), "file", &file])).exits(0);
    assert_eq!(messages(Path::new(&trace)), ["off", "on", "1000001", "off", "exit"]);
    assert_eq!(messages(&folder.join("file.processes/2-control.mtf")), ["off", "exit"]);
}

/// Three threads turn recording off and on all the time, and pass blocks to each other.
#[test]
fn by_all_threads_at_once() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let trace = folder.path("toggle.mtf");
    hatf(["record", "-q", "-o", &trace, "--", program.to_str().unwrap(), "toggle"]).exits(0);
    let report: serde_json::Value =
        serde_json::from_slice(&hatf(["report", "--format", "json", &trace]).exits(0).out).unwrap();
    assert_eq!(report["totals"]["allocs_of_live_blocks"], 0, "{}", report["off"]);
    let switches = messages(Path::new(&trace));
    let switches: Vec<_> = switches.iter().filter(|line| ["on", "off"].contains(&line.as_str())).collect();
    assert!(switches.len() > 100, "{}", switches.len());
    // Each change differs from the previous one.
    assert!(switches.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn what_is_never_turned_on() {
    let folder = Folder::new();
    let trace = folder.path("never.mtf");
    hatf(["record", "--start-off", "-o", &trace, "--", "true"]).exits(0).says("recording was never turned on");
    for signal in ["KILL", "USR3", "99", ""] {
        hatf(["record", "--toggle-signal", signal, "true"]).exits(2).says("expected USR1, USR2");
    }
}

/// Allocations and frees are 200,000 events, of which 256 KiB hold 16,000.
#[test]
fn the_last_part() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let (trace, dump) = (folder.path("keep.mtf"), folder.path("keep.dump1.mtf"));
    for stacks in [None, cfg!(target_arch = "x86_64").then_some("--stacks=8")] {
        let _ = std::fs::remove_file(&dump);
        let arguments = ["record", "--keep", "256KiB", "-o", &trace].into_iter().chain(stacks);
        hatf(arguments.chain(["--", program.to_str().unwrap(), "keep", &dump])).exits(0).says("requested trace: ");
        assert_eq!(messages(Path::new(&dump)), ["off", "on", "1000001"], "{stacks:?}");
        for trace in [&dump, &trace] {
            assert_eq!(invariants::broken(Path::new(trace)), [""; 0], "{trace}");
        }
        assert_eq!(messages(Path::new(&trace)), ["off", "on", "1000001", "1000002", "exit"], "{stacks:?}");
        let report: serde_json::Value =
            serde_json::from_slice(&hatf(["report", "--format", "json", &trace]).exits(0).out).unwrap();
        let (totals, off) = (&report["totals"], &report["off"]);
        assert!((2..100_000).contains(&totals["allocs"].as_u64().unwrap()), "{totals}");
        assert_eq!(
            (&totals["lost"], &totals["allocs_of_live_blocks"], &totals["heaps"]),
            (&0.into(), &0.into(), &1.into())
        );
        // The first block, and one that was live when the kept part begins.
        assert!((1..=2).contains(&off["frees"].as_u64().unwrap()), "{off}");
        if stacks.is_some() {
            hatf(["symbolize", &trace, "-o", &trace]).exits(0);
            hatf(["sites", &trace]).exits(0).prints("main at ");
        }
    }
    for part in ["0s", "1", "60", "10KiB", "x"] {
        hatf(["record", "--keep", part, "true"]).exits(2).says("expected a time, such as 60s");
    }
}

/// If the spool cannot hold the 400,000 events of the requested time, a message says so. Each request writes a trace,
/// and events before the last part keep their times.
#[test]
fn a_last_part_that_is_too_long() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let (trace, dump) = (folder.path("last.mtf"), folder.path("last.dump3.mtf"));
    let arguments = ["record", "--keep", "60s", "--spool-size", "4MiB", "-o", &trace, "--"];
    let run = hatf(arguments.into_iter().chain([program.to_str().unwrap(), "last", &dump])).exits(0);
    let kept = run
        .err
        .lines()
        .find_map(|line| line.strip_prefix("hatf: kept only the last "))
        .unwrap_or_else(|| panic!("{}", run.err));
    let (kept, asked) = kept.split_once(" s of the ").unwrap();
    assert!(asked.starts_with("60.000 s requested by --keep") && kept.parse::<f64>().unwrap() < 60.0, "{kept} {asked}");
    for number in 1..=3 {
        assert_eq!(messages(&folder.join(format!("last.dump{number}.mtf"))), ["off", "on"], "{number}");
    }
    let mut reader = TraceReader::open(Path::new(&trace)).unwrap();
    let (mut image, mut on) = (None, None);
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Image { .. } => image = Some(event.time),
            EventKind::Recording { on: true } => on = Some(event.time),
            _ => {}
        }
    }
    let (image, on) = (image.unwrap(), on.unwrap());
    // The program sleeps for a second in between.
    assert!(on >= image + 1_000_000_000, "{image} {on}");
    let kept_ns = &reader.user_metadata()["kept_ns"];
    assert!(kept_ns.as_u64().is_some_and(|kept| kept < 60_000_000_000), "{kept_ns}");
}

#[test]
fn the_last_part_after_a_kill() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let (trace, spools) = (folder.path("kill.mtf"), folder.join("spools"));
    std::fs::create_dir(&spools).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatf"));
    command.args(["record", "-q", "--keep", "256KiB", "-o", &trace, "--spool"]).arg(&spools).arg("--");
    // `output` also waits until the program has closed its output.
    let output = command.arg(&program).arg("kill").output().unwrap();
    assert!(!output.status.success());
    let spool = std::fs::read_dir(&spools).unwrap().next().unwrap().unwrap().path();
    // The unfinished trace names the location of the remaining events.
    hatf(["report", &trace]).says(&format!("unfinished trace; the remaining events are in {}", spool.display()));
    hatf(["recover", &trace]).exits(0);
    hatf(["recover", &trace]).exits(1).says("its spool no longer exists");
    assert_eq!(messages(Path::new(&trace)), ["off", "on", "1000002", "exit"]);
    assert_eq!(invariants::broken(Path::new(&trace)), [""; 0]);
    assert!(!spool.exists());
}

/// If the state for a recovery cannot be saved, recording continues, and the trace can be read.
#[test]
fn what_lasts_cannot_be_noted() {
    let folder = Folder::new();
    let trace = folder.path("kept.mtf");
    let spools = Folder::new();
    let script = "mkdir ${HATF_SPOOL%/*}/lasting.json; f() { x=$x$1; [ $1 = 0 ] || f $(($1 - 1)); }; i=0; \
        while [ $i -lt 20000 ]; do i=$((i + 1)); x=; f 7; done; sleep 0.2; exit 7";
    let arguments = ["record", "--keep", "64KiB", "--spool", &spools.path("."), "-o", &trace];
    let run = hatf([&arguments[..], &["--", "/bin/bash", "-c", script]].concat()).exits(7);
    run.says("less than the part requested by --keep could have been recovered").says("lasting.json is a directory");
    hatf(["report", &trace]).exits(0);
}
