//! Quickly measures the records read and written per second on one core, file by file.
//!
//! ```text
//! cargo run --release -p metatf-bench [--no-default-features] -- [--heap] [--first N] [FILE..]
//! ```
//!
//! `--heap` measures only `dtds/heap.dtd`. FILE is a file that [`events::read_file`] accepts. Without files, the
//! shipped files are used. The result is the best of several passes, because noise can only slow them down. On a busy
//! machine, `--first 100000` makes passes short enough to run undisturbed. `cargo bench -p metatf-bench` takes more
//! measurements, and takes them more carefully.

use metatf_bench::events::{self, Event, read_file, shipped};
use metatf_bench::ours::hatf10::{self, Fit, plain, stored};
use metatf_bench::ours::{heap, universal};
use metatf_bench::{Result, hand};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The duration of each measurement.
const LONG_ENOUGH: Duration = Duration::from_millis(600);

fn main() -> Result<()> {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let mut first = usize::MAX;
    let mut only_heap = false;
    while let Some(option) = paths.first().filter(|option| option.starts_with("--")) {
        match &**option {
            "--heap" => only_heap = true,
            "--first" if paths.len() > 1 => first = paths.remove(1).parse()?,
            _ => return Err(format!("{option}: no such option").into()),
        }
        paths.remove(0);
    }
    println!("{:<16} {:>9}  million records a second", "", "");
    println!(
        "{:<16} {:>9} {:>8} {:>9} {:>9} {:>8} {:>9}",
        "events", "records", "hand rd", "generated", "universal", "hand wr", "generated"
    );
    println!("{:<16} {:>9} {:>8} {:>9} {:>9}", "  heap.dtd", "", "", "read", "written");
    let paths = match paths.is_empty() {
        true => shipped()?,
        false => paths.into_iter().map(PathBuf::from).collect(),
    };
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()?.split('.').next()).unwrap_or_default();
        let mut events = Vec::new();
        read_file(Path::new(&path), first, &mut events)?;
        if only_heap { measure_heap(&events)? } else { measure(name, &events)? }
    }
    Ok(())
}

fn measure(name: &str, events: &[Event]) -> Result<()> {
    let trace = hatf10::plain_trace(events)?;
    let content = hand::content(&trace)?;
    let expected = events::sum(events);
    assert_eq!(Some(expected), hand::plain::all(&content), "hand-written loop");
    assert_eq!(expected, plain::all(&trace)?, "generated reader");
    assert_eq!(expected, universal::all(&trace)?, "universal reader");
    let n = events.len();
    let (options, mut out, mut hand_out) = (stored(), Vec::new(), Vec::new());
    println!(
        "{name:<16} {n:>9} {:>8.1} {:>9.1} {:>9.1} {:>8.1} {:>9.1}",
        rate(n, || Ok(hand::plain::all(black_box(&content))))?,
        rate(n, || plain::all(black_box(&trace)))?,
        rate(n, || universal::all(black_box(&trace)))?,
        rate(n, || {
            hand::plain::write(black_box(events), &mut hand_out);
            Ok(())
        })?,
        rate(n, || {
            out = plain::write(black_box(events), &options, Fit::Widen, true, std::mem::take(&mut out))?;
            Ok(())
        })?,
    );
    measure_heap(events)
}

fn measure_heap(events: &[Event]) -> Result<()> {
    let n = events.len();
    let options = heap::options();
    let trace = heap::model::write(events, &options, Vec::new())?;
    let expected = events::sum(events).wrapping_add(events::realloc_sizes(events));
    assert_eq!(expected, heap::model::all(&trace)?, "heap.dtd");
    let mut out = Vec::new();
    println!(
        "{:<16} {n:>9} {:>8} {:>9.1} {:>9.1}  {:.4} bytes a record",
        "  heap.dtd",
        "",
        rate(n, || heap::model::all(black_box(&trace)))?,
        rate(n, || {
            out = heap::model::write(black_box(events), &options, std::mem::take(&mut out))?;
            Ok(())
        })?,
        trace.len() as f64 / n as f64,
    );
    Ok(())
}

/// Returns the rate of the best pass in millions of records per second.
fn rate<T>(records: usize, mut pass: impl FnMut() -> Result<T>) -> Result<f64> {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    while begin.elapsed() < LONG_ENOUGH {
        // Measure CPU time, which is hardly affected by other load on the machine.
        let start = cpu_time::ThreadTime::now();
        black_box(pass()?);
        best = best.min(start.elapsed());
    }
    Ok(records as f64 / 1e6 / best.as_secs_f64())
}
