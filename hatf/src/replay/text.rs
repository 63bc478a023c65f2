//! A comparison as tables for people.

use std::io::{self, Write};

use hatf_lab::model::evaluate::Interval;
use metatf_cli::shown;
use metatf_page::units::{bytes, count, nanoseconds};

use super::compile::{Repairs, Summary};
use super::latency::Latency;
use super::outcome::{Comparison, Outcome};

/// Calls of a function and a size that are less than one in so many are not printed.
const SELDOM: u64 = 200;

/// Prints a comparison: what was replayed; then time, memory and single calls, for each allocator. Tables begin with the best.
///
/// # Errors
/// The output's.
pub fn text(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let trace = &comparison.trace;
    replayed(trace, out)?;
    let width = comparison.outcomes.iter().map(|outcome| outcome.name.len()).max().unwrap_or(0).max(9);

    writeln!(
        out,
        "\nTIME (nanoseconds an operation, 90 % intervals; the replay's own {} are taken off)",
        own(comparison)
    )?;
    let head = ["processor", "elapsed", "system", "page faults"];
    writeln!(out, "  {:width$} {:>16} {:>16} {:>8} {:>14}", "allocator", head[0], head[1], head[2], head[3])?;
    for outcome in sorted(comparison, |outcome| outcome.processor_ns.mean) {
        writeln!(
            out,
            "  {:width$} {:>16} {:>16} {:>7.1}% {:>14.0}",
            outcome.name,
            show(outcome.processor_ns),
            show(outcome.elapsed_ns),
            outcome.system * 100.0,
            outcome.faults.mean,
        )?;
    }

    writeln!(out, "\nMEMORY (bytes resident; most live: {})", bytes(trace.most_live_bytes))?;
    let head = ["peak", "peak/live", "mean", "at the end", "after all freed"];
    writeln!(
        out,
        "  {:width$} {:>10} {:>10} {:>10} {:>11} {:>16}",
        "allocator", head[0], head[1], head[2], head[3], head[4]
    )?;
    for outcome in sorted(comparison, |outcome| outcome.peak_to_live.unwrap_or(0.0)) {
        writeln!(
            out,
            "  {:width$} {:>10} {:>10} {:>10} {:>11} {:>16}",
            outcome.name,
            bytes(outcome.peak_resident),
            outcome.peak_to_live.map_or("-".to_owned(), |ratio| format!("{ratio:.3}")),
            bytes(outcome.mean_resident),
            bytes(outcome.resident_at_end),
            bytes(outcome.after_all_freed),
        )?;
    }
    phases(comparison, width, out)?;

    let seldom = trace.operations / SELDOM;
    writeln!(
        out,
        "\nCALLS (nanoseconds that so many do not exceed; `nothing` is what the clock takes; less than {} calls: see JSON)",
        count(seldom.max(1))
    )?;
    let head = ["function", "size", "allocator", "calls", "50 %", "90 %", "99 %", "99.9 %", "longest"];
    let [function, size, allocator, calls, p50, p90, p99, p999, longest] = head;
    writeln!(
        out,
        "  {function:8} {size:>11} {allocator:width$} {calls:>12} {p50:>7} {p90:>7} {p99:>7} {p999:>8} {longest:>9}"
    )?;
    for own in comparison.own_latencies.iter().filter(|own| own.calls >= seldom) {
        let same = |latency: &&Latency| latency.function == own.function && latency.largest == own.largest;
        latency("nothing", own, width, out)?;
        for outcome in &comparison.outcomes {
            outcome.latencies.iter().find(same).map_or(Ok(()), |of| latency(&outcome.name, of, width, out))?;
        }
    }
    Ok(())
}

fn replayed(trace: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let threads = trace.threads;
    writeln!(
        out,
        "  {} operations on {threads} {}; at most {} blocks live",
        count(trace.operations),
        if threads == 1 { "thread" } else { "threads" },
        count(trace.most_live)
    )?;
    let Repairs { unknown_frees, unknown_reallocs, addresses_twice, unknown_sizes } = trace.repairs;
    let notes = [
        (trace.set_up, "blocks were set up before the replay began"),
        (trace.failed, "calls that failed or returned nothing are not replayed"),
        (trace.ended_with_heap, "blocks are freed where their program or heap ended"),
        (trace.lost, "events were lost in the recording"),
        (unknown_frees, "repairs: frees of blocks that were not live are left out"),
        (unknown_reallocs, "repairs: reallocations of blocks that were not live allocate"),
        (addresses_twice, "repairs: blocks are freed where another has their address"),
        (unknown_sizes, "repairs: calls without a size ask for 0 bytes"),
    ];
    let mut told = notes.iter().filter(|(number, _)| *number > 0);
    told.try_for_each(|(number, what)| writeln!(out, "  {} {what}", count(*number)))
}

fn phases(comparison: &Comparison, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let ended = || comparison.outcomes.iter().flat_map(|of| of.phases.iter().map(move |phase| (of, phase)));
    if ended().next().is_none() {
        return Ok(());
    }
    writeln!(out, "\nPHASES (bytes resident where they end)")?;
    ended().try_for_each(|(of, (name, resident))| {
        writeln!(out, "  {:width$} {:>10} {}", of.name, bytes(*resident), shown(name))
    })
}

fn latency(name: &str, of: &Latency, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let size = of.largest.map_or("more".to_owned(), |largest| format!("<= {}", bytes(largest)));
    writeln!(
        out,
        "  {:8} {size:>11} {name:width$} {:>12} {:>7} {:>7} {:>7} {:>8} {:>9}",
        of.function,
        count(of.calls),
        of.p50,
        of.p90,
        of.p99,
        of.p999,
        nanoseconds(of.most)
    )
}

fn own(comparison: &Comparison) -> String {
    show(comparison.own_ns)
}

/// An interval with one decimal.
fn show(interval: Interval) -> String {
    match interval.half {
        Some(half) => format!("{:.1} +- {half:.1}", interval.mean),
        None => format!("{:.1}", interval.mean),
    }
}

/// The outcomes, the least first.
fn sorted(comparison: &Comparison, by: impl Fn(&Outcome) -> f64) -> Vec<&Outcome> {
    let mut outcomes: Vec<&Outcome> = comparison.outcomes.iter().collect();
    outcomes.sort_by(|a, b| by(a).total_cmp(&by(b)));
    outcomes
}
