//! Benchmark rows of `metatf-telemetry`.

use crate::built::run;
use crate::measure::{cold, each};
use crate::rates::seconds;
use crate::row::Row;
use crate::{EVENTS, Result, itself};
use cpu_time::ProcessTime;
use metatf_derive::metatf;
use metatf_telemetry::{Policy, Settings};
use std::hint::black_box;
use std::path::Path;

/// Keeps the last events of each thread and writes nothing.
#[metatf(dtd = "schemas/telemetry.dtd", emitters = "crate::ours::kept")]
mod kept {}

/// Writes all events to a file.
#[metatf(dtd = "schemas/telemetry.dtd", emitters = "crate::ours::filed_events")]
pub(crate) mod filed_events {}

fn plain(n: u64) {
    kept::plain!(address = n * 64, size = n as u32 & 0xfff, cpu = 3);
}

fn stamped(n: u64) {
    kept::stamped!(address = n * 64, size = n as u32 & 0xfff, cpu = 3);
}

/// Emits an event with a time to a file.
#[inline(always)]
pub(crate) fn to_file(n: u64) {
    filed_events::stamped!(address = n * 64, size = n as u32 & 0xfff, cpu = 3);
}

/// Emits an event to a file, with values that no interpretation stores in fewer bytes.
#[inline(always)]
fn random_to_file(n: u64) {
    let (address, others) = (random(2 * n), random(2 * n + 1));
    filed_events::stamped!(address, size = others as u32, cpu = (others >> 32) as u16);
}

/// Returns the nth random number of the SplitMix64 generator.
fn random(n: u64) -> u64 {
    let z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Returns the settings for a trace in a directory, with all kinds but one enabled.
pub(crate) fn settings(folder: &Path, name: &str, policy: Policy) -> Settings {
    Settings { control: "Plain Stamped".to_owned(), filename: Some(folder.join(name)), policy, ..Settings::default() }
}

/// Measures a flight recorder, which writes nothing.
pub(crate) fn recorder(folder: &Path) -> Result<()> {
    let _guard = kept::TELEMETRY.start_with(settings(folder, "kept.mtf", Policy::Overwrite))?;
    let off = each(EVENTS, |n| kept::off!(address = n * 64, size = n as u32 & 0xfff, cpu = 3));
    println!("{}", Row::new("off", off));
    println!("{}", Row::new("flight recorder, three fields", each(EVENTS, plain)));
    println!("{}", Row::new("flight recorder, three fields and a time", each(EVENTS, stamped)));
    println!("{}", Row::new("the same, two threads at once, each", two_threads()));
    let said = each(EVENTS, |_| kept::said!(text = black_box("a text to be put")));
    println!("{}", Row::new("flight recorder, a text of 16 bytes and a time", said));
    let alone = each(EVENTS, |_| {
        black_box(cycles());
    });
    println!("{}", Row::new("the cycle counter alone", alone));
    Ok(())
}

/// Returns the nanoseconds per event of the slower of two threads.
fn two_threads() -> f64 {
    let begin = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let emit = || {
            begin.wait();
            each(EVENTS, stamped)
        };
        let threads = [scope.spawn(emit), scope.spawn(emit)];
        threads.into_iter().map(|thread| thread.join().expect("a loop of events does not panic")).fold(0.0, f64::max)
    })
}

/// Prints the ratio of the event rates of two threads and one thread.
pub(crate) fn together(folder: &Path) -> Result<()> {
    let _guard = kept::TELEMETRY.start_with(settings(folder, "kept.mtf", Policy::Overwrite))?;
    // Run for half a second first, because the system may initially put both threads on one core.
    let emit = || (0..25 * EVENTS).for_each(stamped);
    seconds(2, emit);
    println!("{}", 2.0 * seconds(1, emit) / seconds(2, emit));
    Ok(())
}

/// Measures writing all events to a file with each policy. A process has one trace, so each measurement runs in its own
/// process.
pub(crate) fn files(folder: &Path) -> Result<()> {
    for policy in ["block", "random", "drop"] {
        print!("{}", run(itself("filed", folder)?.arg(policy))?);
    }
    for policy in ["block", "drop"] {
        print!("{}", run(itself("churn", folder)?.arg(policy))?);
    }
    Ok(())
}

/// The number of consecutive threads, as in a server with one thread per request. Each emits `SHORT` events.
const THREADS: u64 = 5000;
const SHORT: u64 = 50;

/// Measures short-lived threads, two at a time, writing to a file.
pub(crate) fn churn(folder: &Path, policy: &str) -> Result<()> {
    let (policy, name) = match policy {
        "block" => (Policy::Block, "churn: threads of 50 events each, to a file, `block`"),
        _ => (Policy::Drop, "churn: threads of 50 events each, to a file, `drop`"),
    };
    let telemetry = filed_events::TELEMETRY.start_with(settings(folder, "churn.mtf", policy))?;
    let started = ProcessTime::now();
    let emit = || cold(SHORT, to_file);
    let mut sum = 0.0;
    for _ in 0..THREADS / 2 {
        std::thread::scope(|scope| {
            let threads = [scope.spawn(emit), scope.spawn(emit)];
            for thread in threads {
                sum += thread.join().expect("a loop of events does not panic");
            }
        });
    }
    telemetry.finish()?;
    let events = THREADS * SHORT;
    let all = started.elapsed().as_secs_f64() * 1e9 / events as f64;
    filed_row(&folder.join("churn.mtf"), events, Row { all: Some(all), ..Row::new(name, sum / THREADS as f64) })
}

/// Prints a row, with the bytes and losses found in the file.
fn filed_row(path: &Path, events: u64, row: Row) -> Result<()> {
    let (mut trace, mut records) = (filed_events::Trace::open(path)?, 0);
    trace.for_each(|_| records += 1)?;
    let bytes = std::fs::metadata(path)?.len() as f64 / records as f64;
    let lost = (events - records) as f64 * 100.0 / events as f64;
    println!("{}", Row { bytes: Some(bytes), lost: Some(lost), ..row });
    Ok(())
}

/// Measures emitting all events to a file as fast as possible.
pub(crate) fn filed(folder: &Path, policy: &str) -> Result<()> {
    let (policy, name) = match policy {
        "block" => (Policy::Block, "to a file, `block`"),
        "random" => (Policy::Block, "to a file, `block`, fields of random bits"),
        _ => (Policy::Drop, "to a file, `drop`, as fast as it can"),
    };
    let telemetry = filed_events::TELEMETRY.start_with(settings(folder, "filed.mtf", policy))?;
    let started = ProcessTime::now();
    let thread = if name.ends_with("bits") { cold(EVENTS, random_to_file) } else { cold(EVENTS, to_file) };
    telemetry.finish()?;
    let all = started.elapsed().as_secs_f64() * 1e9 / EVENTS as f64;
    filed_row(&folder.join("filed.mtf"), EVENTS, Row { all: Some(all), ..Row::new(name, thread) })
}

#[cfg(target_arch = "x86_64")]
fn cycles() -> u64 {
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles() -> u64 {
    0
}
