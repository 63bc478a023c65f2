//! `cargo bench -p metatf-bench`: measures every loop of the crate with criterion in CPU time, and generates the table
//! of `docs/performance.md`.
//!
//! `cargo bench -p metatf-bench -- plain` measures loops with `plain` in their names. `METATF_BLESS=1` writes the table
//! to the page, which requires a complete run. `METATF_BENCH_EVENTS` names event files to use instead of the shipped
//! files.

mod clock;
mod containers;
mod limits;
mod machine;
mod names;
mod peers;
mod reading;
mod report;
mod suite;
mod writing;

use metatf_bench::events;
use metatf_bench::ours::hatf10;
use metatf_bench::{Event, Result};
use suite::Suite;

/// The input of the measurements.
struct Input {
    events: Vec<Event>,
    /// Plain HATF 1.0, stored.
    plain: Vec<u8>,
}

fn main() -> Result<()> {
    let (events, what) = events::load()?;
    println!("{what}");
    let input = Input { plain: hatf10::plain_trace(&events)?, events };
    let mut suite = Suite::new(input.events.len())?;
    limits::run(&mut suite, &input)?;
    reading::run(&mut suite, &input)?;
    writing::run(&mut suite, &input)?;
    containers::run(&mut suite, &input)?;
    names::run(&mut suite, input.events.len())?;
    peers::run(&mut suite, &input)?;
    suite.finish(&what)
}
