//! Kills a program at a random point while it writes a trace, or continues one. A salvaging reader must return the
//! written records in order, except for the last ones, which the writer may buffer (`FlushEvery`).
//!
//! Runs 30 kills; `METATF_KILLS` sets another number.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation, reason = "tests")]

#[path = "../../src/bin/endless_writer/paced.rs"]
mod paced;

use metatf::container::AppendFile;
use metatf::typed::TraceOptions;
use paced::{PATHS, PERIOD, Pace, jobs, requests, text};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

/// Maximum number of bytes that the writer buffers by default.
const BYTES: u64 = 1 << 20;
/// Tolerance for delayed threads on a busy machine.
const SLACK: Duration = Duration::from_secs(2);

/// Result of a reader: the number of records, and the numbers of the incorrect ones.
struct Given {
    records: u64,
    wrong: Vec<u64>,
}

impl Given {
    fn note(&mut self, is_right: bool) {
        if !is_right {
            self.wrong.push(self.records);
        }
        self.records += 1;
    }
}

fn read_jobs(path: &Path, all: bool) -> Given {
    let mut given = Given { records: 0, wrong: Vec::new() };
    let mut trace = jobs::Trace::from_opened(TraceOptions::new().salvage(true).open(path).unwrap());
    while let Some(record) = trace.next().unwrap() {
        let n = given.records;
        given.note(match record {
            jobs::Record::Queue(jobs::Queue::Submit(r)) => {
                r.job == n / 2 + 1 && r.vfield == text(n) && n.is_multiple_of(2) && !all
            }
            jobs::Record::Queue(jobs::Queue::Done(r)) if all => r.job == n && r.status == n & 0xff,
            jobs::Record::Queue(jobs::Queue::Done(r)) => r.job == n / 2 + 1 && r.status == n & 0xff && n % 2 == 1,
        });
    }
    given
}

fn read_requests(path: &Path) -> Given {
    read_runs(requests::Trace::from_opened(TraceOptions::new().salvage(true).open(path).unwrap()), &[])
}

/// Reads the requests of several runs. Each run counts its records from 0, and `later` contains the number of the first
/// record of each run after the first.
fn read_runs(mut trace: requests::Trace<'_>, later: &[u64]) -> Given {
    let mut given = Given { records: 0, wrong: Vec::new() };
    while let Some(record) = trace.next_owned().unwrap() {
        let start = later.iter().rfind(|&&start| start <= given.records).copied().unwrap_or(0);
        let n = given.records - start;
        given.note(match record {
            requests::Record::Log(requests::Log::Message(r)) => {
                r.level == n & 0xff && r.vfield == text(n) && n.is_multiple_of(3)
            }
            requests::Record::Log(requests::Log::Request(r)) => {
                let path = trace.paths().get(r.path).unwrap();
                let is_path = path.vfield == format!("/{}", n % PATHS).as_bytes();
                is_path && r.status == n & 0xffff && r.took == n && !n.is_multiple_of(3)
            }
        });
    }
    given
}

/// Returns the minimum number of content bytes of a record.
fn least_bytes(format: &str, n: u64) -> u64 {
    match (format, n % 2, n % 3) {
        ("jobs", 0, _) | ("requests", _, 0) => 5 + text(n).len() as u64,
        _ => 7,
    }
}

/// Starts a writer and waits for its first record.
fn start(trace: &Path, log: &Path, format: &str, pace: Pace, threads: usize) -> Child {
    // The previous kill left its log.
    let _ = std::fs::remove_file(log);
    let mut child = Command::new(env!("CARGO_BIN_EXE_endless_writer"))
        .args([trace.as_os_str(), log.as_os_str(), format.as_ref(), pace.name().as_ref()])
        .arg(threads.to_string())
        .spawn()
        .unwrap();
    while std::fs::metadata(log).map_or(0, |m| m.len()) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "the writer ended");
        std::thread::yield_now();
    }
    child
}

/// Each run continues the trace of the run that was killed before it. No record that could be read is ever lost.
#[test]
fn killed_writers_can_be_continued() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, log) = (folder.path().join("trace"), folder.path().join("log"));
    let mut later = Vec::new();
    for run in 0..12_u64 {
        let mut child = start(&trace, &log, "requests", Pace::ALL[run as usize % 2], 1);
        std::thread::sleep(Duration::from_millis(50 + 37 * (run % 5)));
        child.kill().unwrap();
        child.wait().unwrap();
        let given =
            read_runs(requests::Trace::from_opened(TraceOptions::new().salvage(true).open(&trace).unwrap()), &later);
        assert_eq!(given.wrong, [0; 0], "run {run}, which follows {later:?}");
        assert!(given.records >= later.last().copied().unwrap_or(0), "run {run}, which follows {later:?}");
        later.push(given.records);
    }
    requests::Writer::new(AppendFile::open(&trace).unwrap()).unwrap().finish().unwrap();
    let mut reader = requests::Trace::open(&trace).unwrap();
    assert_eq!(reader.header().nrecords, *later.last().unwrap());
    while reader.next().unwrap().is_some() {}
    assert!(reader.warnings().is_empty());
    let given = read_runs(requests::Trace::open(&trace).unwrap(), &later);
    assert_eq!((given.records, given.wrong), (*later.last().unwrap(), Vec::new()));
    assert!(given.records > 0, "no writer was ever flushed");
}

#[test]
fn a_killed_writer_loses_what_it_may_hold_at_most() {
    let kills = std::env::var("METATF_KILLS").map_or(30, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut seed = std::process::id() | 1;
    let (mut most_bytes, mut most_time, mut flushed) = (0, Duration::ZERO, 0);
    for kill in 0..kills {
        let pace = Pace::ALL[kill % 3];
        let format = ["jobs", "jobs-all", "requests"][kill / 3 % 3];
        let threads = 1 + kill / 9 % 2;
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        let longest = if pace == Pace::Fast { 300 } else { 1500 };
        let (trace, log) = (folder.path().join("trace"), folder.path().join("log"));
        let _ = std::fs::remove_file(&trace);
        let mut child = start(&trace, &log, format, pace, threads);
        std::thread::sleep(Duration::from_micros(u64::from(seed % (1000 * longest))));
        child.kill().unwrap();
        child.wait().unwrap();

        let case = format!("kill {kill}, {pace:?}, {format}, {threads} threads");
        let log = std::fs::read(&log).unwrap();
        let times: Vec<u32> = log.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect();
        let given = match format {
            "requests" => read_requests(&trace),
            _ => read_jobs(&trace, format == "jobs-all"),
        };
        assert_eq!(given.wrong, [0; 0], "{case}: records that were not written");
        // A record may reach the file before the log.
        let written = times.len() as u64;
        assert!(given.records <= written + 1, "{case}: {} records of {written}", given.records);
        flushed += u32::from(given.records > 0);
        let lost = given.records.min(written)..written;
        let bytes: u64 = lost.clone().map(|n| least_bytes(format, n)).sum();
        // Compressing threads hold chunks in flight: the number of threads plus two, and the chunk submitted last.
        let in_flight = if threads > 1 { threads as u64 + 3 } else { 0 };
        assert!(bytes <= BYTES * (1 + in_flight), "{case}: {bytes} bytes lost, {lost:?}");
        most_bytes = most_bytes.max(bytes);
        if let Some(period) = pace.period()
            && let (Some(&first), Some(&last)) = (times.get(lost.start as usize), times.last())
        {
            let time = Duration::from_millis(u64::from(last - first));
            assert!(time <= period + SLACK, "{case}: {time:?} lost, {lost:?}");
            most_time = most_time.max(time);
        }
    }
    assert!(flushed > 0, "no writer was ever flushed");
    println!(
        "{kills} kills, {flushed} of them after a flush: at most {most_bytes} bytes lost, and {most_time:?} where {PERIOD:?} are allowed"
    );
}
