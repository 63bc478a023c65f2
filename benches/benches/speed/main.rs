//! `cargo bench -p metatf-bench`: every loop of the crate, measured by criterion in processor time, and the table of
//! `docs/performance.md`.
//!
//! `cargo bench -p metatf-bench -- plain` measures what has `plain` in its name. With `METATF_BLESS=1` the table goes to the
//! page; that takes a whole run. `METATF_BENCH_EVENTS` names files of events to take instead of the shipped ones.

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

/// What is measured upon.
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
