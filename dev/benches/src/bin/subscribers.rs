//! Measures the cost of `tracing` events and spans with several subscribers: the CPU time in nanoseconds of the entire
//! process until all data is in the file, and the bytes in the file.
//!
//! `cargo run --release -p metatf-bench --no-default-features --features telemetry --bin subscribers`

use cpu_time::ProcessTime;
use metatf_bench::{Result, subscribers};
use std::process::Command;

/// The number of events or spans per measurement. Results are medians of `RUNS` measurements.
const COUNT: u32 = 500_000;
const RUNS: usize = 5;

/// The name of each subscriber in the table, and its name on the command line.
const WAYS: [(&str, &str); 8] = [
    ("no subscriber", "none"),
    ("a registry without a layer", "registry"),
    ("`metatf-tracing`, flight recorder", "keep"),
    ("`metatf-tracing`, to a file", "file"),
    ("`tracing-subscriber` fmt, to a file", "fmt"),
    ("the same, to nowhere", "fmt-null"),
    ("`tracing-chrome`, to a file", "chrome"),
    ("`fastrace`, a reporter that counts", "fastrace"),
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    if let (Some(way), Some(what)) = (arguments.next(), arguments.next()) {
        return measure(&way, what == "spans");
    }
    println!("| | event, ns | bytes | span, ns | bytes |\n| --- | ---: | ---: | ---: | ---: |");
    for (title, way) in WAYS {
        let (events, spans) = (median(way, "events")?, median(way, "spans")?);
        println!("| {title} | {:.0} | {} | {:.0} | {} |", events.0, events.1, spans.0, spans.1);
    }
    Ok(())
}

/// Returns the median of several runs. Each run is a separate process, because a program has only one subscriber.
fn median(way: &str, what: &str) -> Result<(f64, String)> {
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let output = Command::new(std::env::current_exe()?).args([way, what]).output()?;
        let text = String::from_utf8(output.stdout)?;
        let (nanoseconds, bytes) = text.trim().split_once(' ').ok_or_else(|| format!("{way}: {text}"))?;
        runs.push((nanoseconds.parse::<f64>()?, bytes.to_owned()));
    }
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(runs.swap_remove(RUNS / 2))
}

/// Emits all events and prints the nanoseconds and bytes per event.
fn measure(way: &str, spans: bool) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("out");
    let begun = ProcessTime::now();
    subscribers::run(way, &path, COUNT, spans)?;
    let nanoseconds = begun.elapsed().as_secs_f64() * 1e9 / f64::from(COUNT);
    let bytes = std::fs::metadata(&path).map(|metadata| metadata.len()).unwrap_or_default();
    let bytes = if bytes == 0 { "-".to_owned() } else { format!("{:.2}", bytes as f64 / f64::from(COUNT)) };
    println!("{nanoseconds} {bytes}");
    Ok(())
}
