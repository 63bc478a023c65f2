//! Kills a program at arbitrary times. The trace and the buffers together must contain all events of each thread up to
//! the last event.

use crate::common::{Events, Scene, events, records, scenario, steps};
use metatf::container::Sink;
use metatf_telemetry::{Settings, postmortem};
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of kills.
const KILLS: u64 = 20;
/// Maximum lifetime of a program in microseconds.
const LONGEST: u64 = 60_000;
/// Minimum size in bytes of a trace with events; the header and the DTD are smaller.
const BEGUN: u64 = 32 << 10;
/// Number of counters of a process, one for each thread.
const COUNTERS: usize = 48;

/// A program to kill, with its scenario, its number of simultaneous threads, and the number of processes that share its
/// file name.
struct Row {
    scenario: &'static str,
    threads: usize,
    processes: usize,
}

const ROWS: [Row; 4] = [
    Row { scenario: "kill", threads: 3, processes: 1 },
    Row { scenario: "churn", threads: 1, processes: 1 },
    Row { scenario: "kill", threads: COUNTERS, processes: 1 },
    Row { scenario: "kill", threads: 2, processes: 2 },
];
/// The environment variable with the number of threads.
const THREADS: &str = "METATF_TEST_THREADS";

/// Returns the progress of the threads, in memory that outlives them.
fn counters(path: &Path) -> &'static [AtomicU64; COUNTERS] {
    let file = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    file.set_len(4096).unwrap();
    let flags = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: this is a new, permanent mapping of a file of 4,096 bytes.
    unsafe {
        use std::os::fd::AsRawFd as _;
        let mapped = libc::mmap(std::ptr::null_mut(), 4096, flags, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(mapped, libc::MAP_FAILED);
        &*mapped.cast()
    }
}

#[test]
fn child() {
    let Some(scenario) = scenario() else { return };
    let counters = counters(Path::new(&format!("counters.{}", std::process::id())));
    let threads: usize = std::env::var(THREADS).unwrap().parse().unwrap();
    let _guard =
        events::TELEMETRY.start_with(Settings { drain: true, ..Settings::default().with_environment().unwrap() });
    println!("ready");
    std::io::stdout().flush().unwrap();
    let emit = |done: &'static AtomicU64, numbers: std::ops::Range<u32>| {
        for number in numbers {
            events::step!(number);
            // Intern strings, whose records a kill must neither lose nor duplicate.
            if number % 64 == 0 && number < 200_000 {
                events::touch!(place = u64::from(number), by = events::intern(&number.to_string()));
            }
            done.store(u64::from(number) + 1, Ordering::SeqCst);
        }
    };
    if scenario == "churn" {
        // Each thread continues where the previous one ended.
        for first in (0..u32::MAX - 50).step_by(50) {
            std::thread::spawn(move || emit(&counters[0], first..first + 50)).join().unwrap();
        }
    }
    let start = |done: &'static AtomicU64| std::thread::spawn(move || emit(done, 0..u32::MAX));
    let threads: Vec<_> = counters.iter().take(threads).map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Writes the trace recovered from a killed process.
fn recover(buffers: &Path, to: &Path) -> postmortem::Found {
    let sink: Box<dyn Sink + Send> = Box::new(BufWriter::new(std::fs::File::create(to).unwrap()));
    let (found, mut sink) = postmortem::Buffers::open(buffers).unwrap().recover(sink).unwrap();
    sink.flush().unwrap();
    found
}

#[test]
fn a_kill_loses_nothing_that_was_whole() {
    let kills = std::env::var("METATF_TEST_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    for row in &ROWS {
        let from_both: u64 = (0..kills).map(|number| kill(row, number)).sum();
        let Row { scenario, threads, processes } = row;
        println!(
            "{scenario}, {threads} threads, {processes} processes: {kills} kills, {from_both} with events in the trace and the buffers"
        );
        assert!(from_both > 0, "no kill left events in both the trace and the buffers");
    }
}

/// Kills the processes of a row. Returns the number of processes that left events in both their trace and their
/// buffers.
fn kill(row: &Row, number: u64) -> u64 {
    let scene = Scene::new("kills::child");
    let threads = row.threads.to_string();
    let environment = [
        ("METATF_TELEMETRY_CONTROL", "all"),
        ("METATF_TELEMETRY_RING", "65536"),
        ("METATF_TELEMETRY_POLICY", "block"),
        (THREADS, threads.as_str()),
    ];
    let mut children: Vec<_> = (0..row.processes).map(|_| scene.start(row.scenario, &environment)).collect();
    for child in &mut children {
        let mut output = child.stdout.take().unwrap();
        let mut seen = Vec::new();
        while !seen.windows(5).any(|bytes| bytes == b"ready") {
            let mut byte = [0];
            output.read_exact(&mut byte).unwrap();
            seen.push(byte[0]);
        }
    }
    // Kill at any time, except for every fourth kill. Otherwise, on a slow machine, none of the processes might write
    // anything.
    let begun = Instant::now();
    while number.is_multiple_of(4) && scene.trace().metadata().map_or(0, |trace| trace.len()) < BEGUN {
        assert!(begun.elapsed() < Duration::from_secs(600), "no event is written");
        std::thread::sleep(Duration::from_millis(1));
    }
    // Cover all times up to the longest, in a pseudorandom order.
    let wait = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) % LONGEST;
    std::thread::sleep(Duration::from_micros(wait));
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let left = scene.buffers();
    assert_eq!(left.len(), row.processes);
    left.iter().map(|buffers| u64::from(look(&scene, row, buffers, &format!("kill {number} after {wait} us")))).sum()
}

/// Compares the data left by a process with its counters. Returns whether events are in both the trace and the buffers.
fn look(scene: &Scene, row: &Row, buffers: &Path, when: &str) -> bool {
    let process = buffers.file_name().unwrap().to_str().unwrap().split('.').nth(1).unwrap();
    let mut done: Vec<u64> = counters(&scene.folder.path().join(format!("counters.{process}")))
        .iter()
        .take(row.threads)
        .map(|c| c.load(Ordering::SeqCst))
        .collect();
    let whole = scene.folder.path().join("whole.mtf");
    let found = recover(buffers, &whole);
    assert!(found.warnings.iter().all(|warning| !warning.contains("another run")), "{found:?}");
    assert!(found.lost.is_empty(), "{found:?}");
    let records = records(&whole);
    assert_eq!(found.in_trace + found.in_buffers, records.len() as u64, "{found:?}");
    let mut counts: Vec<u64> = if row.scenario == "churn" {
        let numbers = records.iter().filter_map(|r| if let Events::Step(step) = r { Some(step.number) } else { None });
        let numbers: Vec<_> = numbers.collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{when}: a number is missing, or there twice");
        vec![numbers.len() as u64]
    } else {
        steps(&records).into_values().collect()
    };
    let mut strings = std::collections::BTreeMap::new();
    for record in &records {
        match record {
            Events::Intern(string) => {
                let number: u64 = String::from_utf8_lossy(&string.text).parse().unwrap();
                assert_eq!(strings.insert(string.id, number), None, "{string:?}");
            }
            Events::Touch(touch) => assert_eq!(strings.get(&touch.by), Some(&touch.place), "{touch:?}"),
            _ => {}
        }
    }
    // A thread counts an event after completing it, so there may be one event more than it counted.
    counts.resize(row.threads, 0);
    counts.sort_unstable();
    done.sort_unstable();
    for (found, done) in counts.iter().zip(&done) {
        assert!((*done..=done + 1).contains(found), "{when}: {counts:?} of {done:?}");
    }
    found.in_trace > 0 && found.in_buffers > 0
}
