//! `hatf record` sleeps while the recorded program sleeps, and wakes up in time.
#![expect(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{compiled, hatf};
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, PATIENCE};

/// Returns the number of times that the threads of a process have slept.
fn sleeps(process: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let status = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok());
    let number = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap().to_owned();
        line.trim().parse::<u64>().unwrap()
    };
    status.map(number).sum()
}

/// Returns the number of allocations of the program's sizes in a trace, which may still be growing.
fn allocations(trace: &Path) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    let Ok(mut reader) = TraceReader::open(trace) else { return counts };
    while let Ok(Some(item)) = reader.next() {
        if let Item::Event(event) = item
            && let EventKind::Call(call) = event.kind
            && (7000..7100).contains(&call.size)
        {
            *counts.entry(call.size).or_default() += 1;
        }
    }
    counts
}

fn traces(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "mtf")).collect()
}

/// Starts a recording. Returns it when the program has written its line.
fn start(trace: &str, options: &[&str], program: &Path, arguments: [&str; 4]) -> Child {
    let mut recording = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "--quiet", "-o", trace])
        .args(options)
        .arg("--")
        .arg(program)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 6];
    recording.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"quiet\n");
    recording
}

fn end(mut recording: Child) {
    // SAFETY: a child that has not been waited for; it forwards the signal to the program.
    unsafe { libc::kill(recording.id().cast_signed(), libc::SIGTERM) };
    let begun = Instant::now();
    while recording.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
    // A sleeping `hatf` learns of the end from the kernel.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// A program that sleeps wakes `hatf` neither at all nor often: 4 seconds of the earlier polling were 3000 wake-ups.
#[test]
fn a_sleeping_program_lets_hatf_sleep() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "idle", &["-O1"]) else { return };
    let trace = folder.path("trace.mtf");
    let cases: [(&[&str], &str, u64); 5] = [
        (&[], "0", 40),
        (&["--sample", "512KiB"], "0", 40),
        (&["--keep", "60s"], "0", 40),
        (&["--pages"], "0", 40),
        (&[], "20", 400),
    ];
    for (options, children, most) in cases {
        let recording = start(&trace, options, &program, [children, "1", "1", "1"]);
        std::thread::sleep(Duration::from_secs(3));
        let before = sleeps(recording.id());
        std::thread::sleep(Duration::from_secs(4));
        let wakes = sleeps(recording.id()) - before;
        assert!(wakes < most, "{options:?}, {children} children: {wakes} wake-ups");
        end(recording);
    }
}

/// Events that occur rarely reach the trace within the flush interval (1 s), not only with a later event.
#[test]
fn rare_events_are_not_late() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "idle", &["-O1"]) else { return };
    let trace = folder.join("trace.mtf");
    for options in [&[][..], &["--sample", "1"], &["--stacks"]] {
        let options = [options, &["--flush", "1"]].concat();
        // The last of these allocations is followed by a sleep without an end.
        let recording = start(trace.to_str().unwrap(), &options, &program, ["0", "5", "1", "3"]);
        let begun = Instant::now();
        while allocations(&trace).get(&7000) != Some(&5) {
            assert!(begun.elapsed() < Duration::from_secs(10), "{options:?}: {:?}", allocations(&trace));
            std::thread::sleep(Duration::from_millis(20));
        }
        end(recording);
    }
}

/// Processes that wake up at random times, and end at random times, lose nothing.
#[test]
fn nothing_is_lost_between_sleeps() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "idle", &["-O1"]) else { return };
    let program = program.to_str().unwrap();
    for (seed, options) in [("1", &[][..]), ("2", &["--stacks"]), ("3", &["--sample", "1"]), ("4", &["--keep", "60s"])]
    {
        let trace = folder.path(&format!("{seed}.mtf"));
        let start = ["record", "-o", &trace];
        hatf([&start, options, &["--", program, "20", "12", "400", seed]].concat()).exits(0);
        let mut counts = allocations(Path::new(&trace));
        for trace in traces(&folder.join(format!("{seed}.processes"))) {
            counts.extend(allocations(&trace));
        }
        let expected: BTreeMap<u64, u64> = (7000..=7020).map(|size| (size, 12)).collect();
        assert_eq!(counts, expected, "{options:?}");
    }
}

/// Kills the program or `hatf` while `hatf` sleeps or wakes up. No event is missing.
#[test]
fn kills_at_rest() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "idle", &["-O1"]) else { return };
    for round in 0..12_u64 {
        let (mut trace, spools) = (folder.join(format!("{round}.mtf")), folder.path(&format!("{round}.spools")));
        fs::create_dir(&spools).unwrap();
        let options = ["--spool", spools.as_str()];
        let mut recording = start(trace.to_str().unwrap(), &options, &program, ["0", "5", "1", "7"]);
        std::thread::sleep(Duration::from_millis(round * 7));
        let child = fs::read_to_string(format!("/proc/{0}/task/{0}/children", recording.id())).unwrap();
        let child: i32 = child.trim().parse().unwrap();
        if round % 2 == 0 {
            // SAFETY: the program, which its parent has not waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            let begun = Instant::now();
            while recording.try_wait().unwrap().is_none() {
                assert!(begun.elapsed() < PATIENCE);
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        } else {
            recording.kill().unwrap();
            recording.wait().unwrap();
            // SAFETY: the program, which only this test ends.
            unsafe { libc::kill(child, libc::SIGKILL) };
            // The kernel ends it a little later, and its new parent may leave it a zombie.
            let stat = || fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            while stat().rsplit_once(')').is_some_and(|(_, state)| !state.starts_with(" Z")) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let spool = fs::read_dir(&spools).unwrap().next().unwrap().unwrap().path();
            trace = folder.join("recovered.mtf");
            hatf(["recover", spool.to_str().unwrap(), "-o", trace.to_str().unwrap()]).exits(0);
            fs::remove_dir_all(folder.join("recovered.processes")).unwrap_or_default();
        }
        assert_eq!(allocations(&trace).get(&7000), Some(&5), "round {round}");
    }
}

/// A program that sleeps until it exits ends when it exits, not at its last event.
#[test]
fn the_end_of_a_sleeping_program_has_its_time() {
    let folder = Folder::new();
    for options in [&[][..], &["--keep", "60s"], &["--no-resident"]] {
        let trace = folder.path("trace.mtf");
        let arguments = [&["record", "--quiet", "-o", &trace], options, &["--", "sleep", "1.5"]].concat();
        hatf(arguments).exits(0);
        let mut reader = TraceReader::open(trace.as_ref()).unwrap();
        let mut ended = None;
        while let Some(item) = reader.next().unwrap() {
            if let Item::Event(event) = item
                && let EventKind::Exit { .. } = event.kind
            {
                ended = Some(event.time);
            }
        }
        assert!(ended.is_some_and(|ended| ended >= 1_400_000_000), "{options:?}: {ended:?}");
        fs::remove_file(&trace).unwrap();
    }
}
