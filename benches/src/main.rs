//! How many records a second are read and written on one core, beside loops written by hand over the same bytes.
//!
//! ```text
//! cargo run --release -p metatf-bench -- [--first N] [FILE.raw32[.zst]..]
//! ```
//!
//! A file holds heap events of 32 bytes: four little-endian `u64`: tag (1 malloc, 2 free, 3 calloc, 4 realloc,
//! 5 memalign), size, address, old address. Without a file, events are made up. They are written as HATF 1.0
//! (`dtds/HATF10.dtd`) with 8-byte addresses, stored, in memory. The figure is the best of several passes, as noise only
//! ever slows down; where the machine is busy, `--first 100000` makes passes short enough to go undisturbed.

mod events;
mod hand;
mod runs;

use events::{Event, made_up, read_file};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long each measurement goes on.
const LONG_ENOUGH: Duration = Duration::from_millis(600);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let mut first = usize::MAX;
    if let [option, n, ..] = &*paths
        && option == "--first"
    {
        first = n.parse()?;
        paths.drain(..2);
    }
    println!("{:<16} {:>9}  million records a second", "", "");
    println!(
        "{:<16} {:>9} {:>8} {:>9} {:>9} {:>8} {:>9}",
        "events", "records", "hand rd", "generated", "universal", "hand wr", "generated"
    );
    if paths.is_empty() {
        return measure("made up", &made_up(first.min(1_000_000)));
    }
    for path in paths {
        let name = path.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or_default();
        let mut events = read_file(&path)?;
        events.truncate(first);
        measure(name, &events)?;
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
        let start = Instant::now();
        black_box(pass()?);
        best = best.min(start.elapsed());
    }
    Ok(records as f64 / 1e6 / best.as_secs_f64())
}
