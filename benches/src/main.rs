//! How many records a second are read and written on one core, beside loops written by hand over the same bytes.
//!
//! ```text
//! cargo run --release -p metatf-bench -- [--heap] [--first N] [FILE.raw32[.zst]..]
//! ```
//!
//! `--heap`: `dtds/heap.dtd` alone. A file holds heap events of 32 bytes: four little-endian `u64`: tag (1 malloc, 2 free, 3 calloc, 4 realloc,
//! 5 memalign), size, address, old address. Without a file, events are made up. They are written as HATF 1.0
//! (`dtds/HATF10.dtd`) with 8-byte addresses, stored, in memory. The figure is the best of several passes, as noise only
//! ever slows down; where the machine is busy, `--first 100000` makes passes short enough to go undisturbed.

mod events;
mod hand;
mod heap;
mod runs;

use events::{Event, made_up, read_file};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long each measurement goes on.
const LONG_ENOUGH: Duration = Duration::from_millis(600);

fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    if paths.is_empty() {
        return measure("made up", &made_up(first.min(1_000_000)));
    }
    for path in paths {
        let name = path.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or_default();
        let mut events = read_file(&path)?;
        events.truncate(first);
        if only_heap { measure_heap(&events)? } else { measure(name, &events)? }
    }
    Ok(())
}

fn measure(name: &str, events: &[Event]) -> Result<(), Box<dyn std::error::Error>> {
    let records = runs::records(events);
    let trace = runs::write_generated(&records)?;
    let contents = hand::contents(&trace)?;
    let expected = hand::read(&contents);
    assert_eq!(expected, runs::read_generated(&trace)?, "generated reader");
    assert_eq!(expected, runs::read_universal(&trace)?, "universal reader");
    let n = records.len();
    println!(
        "{name:<16} {n:>9} {:>8.1} {:>9.1} {:>9.1} {:>8.1} {:>9.1}",
        rate(n, || Ok(hand::read(black_box(&contents))))?,
        rate(n, || Ok(runs::read_generated(black_box(&trace))?))?,
        rate(n, || runs::read_universal(black_box(&trace)))?,
        rate(n, || Ok(hand::write(black_box(&records))))?,
        rate(n, || Ok(runs::write_generated(black_box(&records))?))?,
    );
    measure_heap(events)
}

fn measure_heap(events: &[Event]) -> Result<(), Box<dyn std::error::Error>> {
    let n = events.len();
    let heap = heap::write(events)?;
    assert_eq!(heap::sum(events), heap::read(&heap)?, "heap.dtd");
    println!(
        "{:<16} {n:>9} {:>8} {:>9.1} {:>9.1}  {:.4} bytes a record",
        "  heap.dtd",
        "",
        rate(n, || Ok(heap::read(black_box(&heap))?))?,
        rate(n, || Ok(heap::write(black_box(events))?))?,
        heap.len() as f64 / n as f64,
    );
    Ok(())
}

/// Millions of records a second, in the best pass.
fn rate<T>(
    records: usize,
    mut pass: impl FnMut() -> Result<T, Box<dyn std::error::Error>>,
) -> Result<f64, Box<dyn std::error::Error>> {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    while begin.elapsed() < LONG_ENOUGH {
        // Processor time, so that what else the machine does hardly counts.
        let start = cpu_time::ThreadTime::now();
        black_box(pass()?);
        best = best.min(start.elapsed());
    }
    Ok(records as f64 / 1e6 / best.as_secs_f64())
}
