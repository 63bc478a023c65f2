//! A program is killed at any moment. What its trace and its buffers have together is all events of each thread up to the last.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test that goes wrong has to panic"
)]

mod common;

use common::{Events, Scene, events, records, scenario, steps};
use metatf::container::Sink;
use metatf_telemetry::{Settings, postmortem};
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many kills there are, and how long a program lives at most, in microseconds.
const KILLS: u64 = 20;
const LONGEST: u64 = 60_000;
const THREADS: usize = 3;

/// What the threads have done, in memory that outlives them.
fn counters(path: &Path) -> &'static [AtomicU64; THREADS] {
    let file = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    file.set_len(4096).unwrap();
    let flags = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of a file of 4,096 bytes, which stays.
    unsafe {
        use std::os::fd::AsRawFd as _;
        let mapped = libc::mmap(std::ptr::null_mut(), 4096, flags, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(mapped, libc::MAP_FAILED);
        &*mapped.cast()
    }
}

#[test]
fn child() {
    if scenario().is_none() {
        return;
    }
    let counters = counters(Path::new("counters"));
    let _guard =
        events::TELEMETRY.start_with(Settings { drain: true, ..Settings::default().with_environment().unwrap() });
    let run = |done: &'static AtomicU64| {
        for number in 0.. {
            events::step!(number);
            // Strings whose records a kill must neither lose nor double.
            if number % 64 == 0 && number < 200_000 {
                events::touch!(place = u64::from(number), by = events::intern(&number.to_string()));
            }
            done.store(u64::from(number) + 1, Ordering::SeqCst);
        }
    };
    let threads: Vec<_> = counters.iter().map(|done| std::thread::spawn(move || run(done))).collect();
    println!("ready");
    std::io::stdout().flush().unwrap();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Writes the trace of what a process left.
fn recover(buffers: &Path, to: &Path) -> postmortem::Found {
    let sink: Box<dyn Sink + Send> = Box::new(BufWriter::new(std::fs::File::create(to).unwrap()));
    let (found, mut sink) = postmortem::Buffers::open(buffers).unwrap().recover(sink).unwrap();
    sink.flush().unwrap();
    found
}

#[test]
fn a_kill_loses_nothing_that_was_whole() {
    let kills = std::env::var("METATF_TEST_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let mut from_both = 0;
    for kill in 0..kills {
        let scene = Scene::new();
        let environment = [
            ("METATF_TELEMETRY_CONTROL", "all"),
            ("METATF_TELEMETRY_RING", "65536"),
            ("METATF_TELEMETRY_POLICY", "block"),
        ];
        let mut child = scene.start("kill", &environment);
        let mut output = child.stdout.take().unwrap();
        let mut seen = Vec::new();
        while !seen.windows(5).any(|bytes| bytes == b"ready") {
            let mut byte = [0];
            output.read_exact(&mut byte).unwrap();
            seen.push(byte[0]);
        }
        // All moments up to the longest, in an order without a pattern.
        let wait = kill.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) % LONGEST;
        std::thread::sleep(Duration::from_micros(wait));
        child.kill().unwrap();
        child.wait().unwrap();

        let done: Vec<u64> =
            counters(&scene.folder.path().join("counters")).iter().map(|c| c.load(Ordering::SeqCst)).collect();
        let buffers = scene.buffers();
        assert_eq!(buffers.len(), 1);
        let whole = scene.folder.path().join("whole.mtf");
        let found = recover(&buffers[0], &whole);
        assert!(found.warnings.iter().all(|warning| !warning.contains("another run")), "{found:?}");
        let records = records(&whole);
        let mut counts: Vec<u64> = steps(&records).into_values().collect();
        assert_eq!(found.in_trace + found.in_buffers, records.len() as u64, "{found:?}");
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
        // A thread counts an event after it is whole: one more may be there than it counted.
        counts.resize(THREADS, 0);
        counts.sort_unstable();
        let mut done = done;
        done.sort_unstable();
        for (found, done) in counts.iter().zip(&done) {
            assert!((*done..=done + 1).contains(found), "kill {kill} after {wait} us: {counts:?} of {done:?}");
        }
        from_both += u64::from(found.in_trace > 0 && found.in_buffers > 0);
    }
    assert!(from_both > 0, "no kill left events in both the trace and the buffers");
}
