//! How much faster several threads read the groups of a compressed trace than one, by the clock on the wall:
//!
//! ```text
//! cargo run --release -p metatf-bench --no-default-features --features parallel --bin threads
//! ```
//!
//! The shipped events, ten times over. It wants a machine that does nothing else; the figure is the median of the rounds, in each of
//! which every number of threads has its turn.

use metatf::container::{Codec, Filter, WriteOptions};
use metatf_bench::ours::hatf10::{Fit, plain};
use metatf_bench::ours::heap;
use metatf_bench::{Event, Result, events};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
/// Bytes of content in a group of plain HATF 1.0, about 300,000 records; and of the others, whose records are some bytes.
const GROUP: usize = 4 << 20;
const SMALL_GROUP: usize = 1 << 19;

/// Reads a trace by so many threads.
type Read = fn(&[u8], usize) -> Result<u64>;

fn main() -> Result<()> {
    let (once, what) = events::load()?;
    let events = once.repeat(10);
    let cores = std::thread::available_parallelism()?.get();
    println!("{what}; ten times, {cores} cores\n");
    let threads: Vec<usize> = (0..).map(|power| 1 << power).take_while(|&threads| threads <= cores).collect();
    let head: Vec<String> = threads
        .iter()
        .map(|threads| if *threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") })
        .collect();
    println!("| million records a second | {} | the last to the first |", head.join(" | "));
    println!("| --- |{} ---: |", " ---: |".repeat(threads.len()));
    let with = |codec| WriteOptions { codec, filter: Filter::None, group_size: GROUP, ..WriteOptions::default() };
    let small = WriteOptions { group_size: SMALL_GROUP, ..heap::options() };
    let written = |codec| plain::write(&events, &with(codec), Fit::Widen, true, Vec::new());
    let ways: [(&str, Vec<u8>, Read); 5] = [
        ("plain HATF 1.0, LZ4", written(Codec::Lz4)?, plain::par_all),
        ("plain HATF 1.0, zstd 3", written(Codec::Zstd(3))?, plain::par_all),
        ("`heap-split.dtd`, zstd", heap::split::write(&events, &small, Vec::new())?, heap::split::par_all),
        ("`heap-values.dtd`, zstd", heap::values::write(&events, &small, Vec::new())?, heap::values::par_all),
        ("`heap.dtd`, zstd", heap::model::write(&events, &small, Vec::new())?, heap::model::par_all),
    ];
    for (name, trace, read) in ways {
        let times = medians(&trace, read, &threads)?;
        let rates: Vec<String> = times.iter().map(|time| format!("{:.0}", rate(&events, *time))).collect();
        let gain = times.first().zip(times.last()).map_or(1.0, |(one, all)| one.as_secs_f64() / all.as_secs_f64());
        println!("| {name} | {} | {gain:.2} |", rates.join(" | "));
    }
    Ok(())
}

fn rate(events: &[Event], time: Duration) -> f64 {
    events.len() as f64 / 1e6 / time.as_secs_f64()
}

/// The median time by number of threads.
fn medians(trace: &[u8], read: Read, threads: &[usize]) -> Result<Vec<Duration>> {
    let expected = read(trace, 1)?;
    let mut times = vec![Vec::new(); threads.len()];
    for _ in 0..ROUNDS {
        for (&threads, times) in threads.iter().zip(&mut times) {
            let start = Instant::now();
            let sum = black_box(read(black_box(trace), threads)?);
            times.push(start.elapsed());
            if sum != expected {
                return Err(format!("{sum} by {threads} threads, and {expected} by one").into());
            }
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times.get(ROUNDS / 2).copied().unwrap_or_default()
    };
    Ok(times.iter_mut().map(median).collect())
}
