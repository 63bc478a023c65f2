//! Measures the maximum rate of events written to a file, and the combined rate of two threads, in wall-clock time.

use crate::ours::{self, to_file};
use crate::table::median;
use crate::{EVENTS, Result};
use metatf_telemetry::{Policy, Settings};
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Seconds per measurement of a rate.
const SECONDS: f64 = 1.0;
/// The number of bisection steps in the search for the maximum rate.
const STEPS: usize = 7;

/// Starts a process that measures, with additional arguments.
type Start<'s> = &'s dyn Fn(&[&str]) -> Result<String>;

/// Measures the rates and returns a table.
pub(crate) fn text(start: Start<'_>, rounds: usize) -> Result<String> {
    let numbers = |arguments: &[&str]| -> Result<Vec<f64>> {
        Ok(start(arguments)?.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?)
    };
    let runs = (0..rounds).map(|_| numbers(&["blocked"])).collect::<Result<Vec<_>>>()?;
    let column = |index: usize| median(runs.iter().filter_map(|run| run.get(index).copied()).collect()).unwrap_or(0.0);
    let [blocked, longest] = [column(0), column(1)];
    let twice = (0..rounds).map(|_| Ok(numbers(&["threads"])?.first().copied().unwrap_or(0.0)));
    let twice = median(twice.collect::<Result<Vec<_>>>()?).unwrap_or(0.0);
    // Losses depend on the load of the machine, so use the maximum rate without losses in two runs.
    let highest = |ring: &str| -> Result<f64> {
        let (mut most, mut least) = (2e9 / blocked, 0.0);
        for _ in 0..STEPS {
            let rate = f64::midpoint(most, least);
            let argument = rate.to_string();
            let mut lost = 0.0;
            for _ in 0..2 {
                lost += numbers(&["paced", ring, &argument])?.first().copied().unwrap_or(1.0);
            }
            if lost == 0.0 { least = rate } else { most = rate }
        }
        Ok(least / 1e6)
    };
    let (small, large) = (highest("1")?, highest("8")?);
    Ok(format!(
        "| into a file, one thread | |\n| --- | ---: |\n\
         | highest rate without a loss, `drop`, a buffer of 1 MiB | {small:.2} million a second |\n\
         | the same, a buffer of 8 MiB | {large:.2} million a second |\n\
         | as fast as it can, `block`, a buffer of 1 MiB | {:.2} million a second |\n\
         | an event of these, by the wall clock | {blocked:.0} ns |\n\
         | the longest that one waited | {longest:.1} ms |\n\
         | flight recorder: events a second of two threads to those of one | {twice:.2} |\n",
        1e3 / blocked,
    ))
}

/// Measures in this process: `blocked`, `threads`, or `paced` with the buffer's megabytes and the events per second.
pub(crate) fn measure(folder: &Path, arguments: &[&str]) -> Result<()> {
    match arguments {
        ["blocked"] => blocked(folder),
        ["threads"] => ours::together(folder),
        ["paced", ring, rate] => paced(folder, ring.parse()?, rate.parse()?),
        _ => Err(format!("unknown rate {arguments:?}").into()),
    }
}

/// Emits events as fast as `block` permits. Prints the nanoseconds per event, and the duration of the slowest event in
/// milliseconds.
fn blocked(folder: &Path) -> Result<()> {
    let telemetry = ours::filed_events::TELEMETRY.start_with(ours::settings(folder, "blocked.mtf", Policy::Block))?;
    let mut longest = Duration::ZERO;
    let begun = Instant::now();
    let mut last = begun;
    for n in 0..2 * EVENTS {
        to_file(n);
        let now = Instant::now();
        longest = longest.max(now - last);
        last = now;
    }
    let took = begun.elapsed();
    telemetry.finish()?;
    println!("{} {}", took.as_secs_f64() * 1e9 / (2 * EVENTS) as f64, longest.as_secs_f64() * 1e3);
    Ok(())
}

/// Emits `rate` events per second in batches of a hundred. Prints the number of lost events.
fn paced(folder: &Path, ring: u64, rate: f64) -> Result<()> {
    let settings = Settings { ring_bytes: ring << 20, ..ours::settings(folder, "paced.mtf", Policy::Drop) };
    let telemetry = ours::filed_events::TELEMETRY.start_with(settings)?;
    let events = (rate * SECONDS) as u64;
    let begun = Instant::now();
    for n in 0..events {
        if n % 100 == 0 {
            let due = Duration::from_secs_f64(n as f64 / rate);
            while begun.elapsed() < due {
                std::hint::spin_loop();
            }
        }
        to_file(n);
    }
    telemetry.finish()?;
    let (mut trace, mut records) = (ours::filed_events::Trace::open(folder.join("paced.mtf"))?, 0);
    trace.for_each(|_| records += 1)?;
    println!("{}", events - records);
    Ok(())
}

/// Returns the seconds that this many threads take to do the same work simultaneously. The work should take much longer
/// than starting the threads.
pub(crate) fn seconds(threads: usize, work: impl Fn() + Sync) -> f64 {
    let (begin, end) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                begin.wait();
                work();
                end.wait();
            });
        }
        begin.wait();
        let begun = Instant::now();
        end.wait();
        begun.elapsed().as_secs_f64()
    })
}
