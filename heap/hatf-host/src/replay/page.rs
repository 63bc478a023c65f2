//! The report on a comparison.

use hatf_lab::history::{Curves, Line};
use hatf_lab::statistics::Interval;
use metatf_page::{Chart, Column, Note, Page, Report, Table, Unit, Value};
use serde::Serialize;

use super::compile::{Repairs, Summary};
use super::latency::Latency;
use super::outcome::{Comparison, Outcome};

/// A size class is printed only if it contains at least one in this many calls.
const SELDOM: u64 = 200;

/// Measurements of real allocators on a trace.
#[derive(Debug, Serialize)]
pub struct ReplayReport {
    /// The name of the trace.
    #[serde(skip)]
    pub name: String,
    /// The comparison of allocators.
    #[serde(flatten)]
    pub comparison: Comparison,
}

impl Report for ReplayReport {
    /// Returns a summary of the replayed trace, followed by time, memory and single calls for each allocator. Each
    /// table begins with the best allocator.
    fn page(&self) -> Page {
        let comparison = &self.comparison;
        let mut page = Page::new(self.name.clone());
        replayed(&comparison.trace, &mut page);
        time(comparison, &mut page);
        memory(comparison, &mut page);
        phases(comparison, &mut page);
        calls(comparison, &mut page);
        page.figure(self.chart());
        page
    }
}

impl ReplayReport {
    /// Returns a chart of live bytes, and of resident bytes for each allocator, by operations.
    #[must_use]
    pub fn chart(&self) -> Chart {
        let Comparison { trace, outcomes, .. } = &self.comparison;
        let live = Line { name: "live".to_owned(), most: trace.live_bytes.clone() };
        let lines = outcomes.iter().map(|outcome| Line { name: outcome.name.clone(), most: outcome.resident.clone() });
        let curves = Curves { step: trace.step, lines: std::iter::once(live).chain(lines).collect() };
        let title = format!("{}: live and resident bytes over operations", self.name);
        Chart { x_name: "operations".into(), ..curves.chart(title, Unit::Bytes) }
    }
}

fn replayed(trace: &Summary, page: &mut Page) {
    let threads = Value::text(trace.threads.to_string());
    let operations = if trace.threads == 1 {
        Note::new("{} operations on {} thread; at most {} live blocks")
    } else {
        Note::new("{} operations on {} threads; at most {} live blocks")
    };
    page.push(operations.with([Value::Count(trace.operations), threads, Value::Count(trace.most_live)]));
    let Repairs { unknown_frees, unknown_reallocs, addresses_twice, unknown_sizes } = trace.repairs;
    let notes = [
        (trace.set_up, "{} blocks were allocated before the replay began"),
        (trace.failed, "{} calls that failed or returned no block were not replayed"),
        (trace.ended_with_heap, "{} blocks were freed when their program or heap ended"),
        (trace.lost, "{} events were lost during recording"),
        (unknown_frees, "{} repairs: omitted frees of blocks that were not live"),
        (unknown_reallocs, "{} repairs: replayed reallocations of blocks that were not live as allocations"),
        (addresses_twice, "{} repairs: freed live blocks at the address of a new block"),
        (unknown_sizes, "{} repairs: replayed calls without a size as requests for 0 bytes"),
    ];
    for (number, what) in notes.into_iter().filter(|(number, _)| *number > 0) {
        page.push(Note::new(what).with([Value::Count(number)]));
    }
}

fn time(comparison: &Comparison, page: &mut Page) {
    let title = "TIME (nanoseconds per operation, 90% confidence intervals; the replay's own overhead of {} is \
                 subtracted)";
    page.heading(Note::new(title).with([interval(comparison.own_ns)]));
    let mut table = table(["processor", "elapsed", "system", "page faults"]);
    for outcome in sorted(comparison, |outcome| outcome.processor_ns.mean) {
        table.row([
            name(outcome),
            interval(outcome.processor_ns),
            interval(outcome.elapsed_ns),
            Value::text(format!("{:.1}%", outcome.system * 100.0)),
            Value::Number(outcome.faults.mean, 0),
        ]);
    }
    page.push(table);
}

fn memory(comparison: &Comparison, page: &mut Page) {
    let live = Value::Bytes(comparison.trace.most_live_bytes);
    page.heading(Note::new("MEMORY (resident bytes; peak of live bytes: {})").with([live]));
    let mut table = table(["peak", "peak/live", "mean", "at the end", "after all freed"]);
    for outcome in sorted(comparison, |outcome| outcome.peak_to_live.unwrap_or(0.0)) {
        table.row([
            name(outcome),
            Value::Bytes(outcome.peak_resident),
            outcome.peak_to_live.map_or(Value::Unknown, |ratio| Value::Number(ratio, 3)),
            Value::Bytes(outcome.mean_resident),
            Value::Bytes(outcome.resident_at_end),
            Value::Bytes(outcome.after_all_freed),
        ]);
    }
    page.push(table);
}

fn phases(comparison: &Comparison, page: &mut Page) {
    let mut table = table(["resident", "phase"]);
    for outcome in &comparison.outcomes {
        for (phase, resident) in &outcome.phases {
            table.row([name(outcome), Value::Bytes(*resident), Value::text(phase.clone())]);
        }
    }
    if !table.is_empty() {
        page.heading("PHASES (resident bytes at the end of each)");
        page.push(table);
    }
}

fn calls(comparison: &Comparison, page: &mut Page) {
    let seldom = comparison.trace.operations / SELDOM;
    let title = "CALLS (latency percentiles in nanoseconds; `nothing` is the cost of reading the clock; rows with \
                 fewer than {} calls are in JSON only)";
    page.heading(Note::new(title).with([Value::Count(seldom.max(1))]));
    let keys = ["function", "size", "allocator"].map(Column::key);
    let columns = ["calls", "50%", "90%", "99%", "99.9%", "longest"].map(Column::new);
    let mut table = Table::new(keys.into_iter().chain(columns));
    for own in comparison.own_latencies.iter().filter(|own| own.calls >= seldom) {
        let same = |latency: &&Latency| latency.function == own.function && latency.largest == own.largest;
        table.row(latency("nothing", own));
        for outcome in &comparison.outcomes {
            outcome.latencies.iter().find(same).into_iter().for_each(|of| table.row(latency(&outcome.name, of)));
        }
    }
    page.push(table);
}

fn latency(name: &str, of: &Latency) -> [Value; 9] {
    let size = of.largest.map_or("more".to_owned(), |largest| format!("<= {}", Value::Bytes(largest)));
    [
        Value::text(of.function.to_string()),
        Value::text(size),
        Value::text(name.to_owned()),
        Value::Count(of.calls),
        Value::Count(of.p50),
        Value::Count(of.p90),
        Value::Count(of.p99),
        Value::Count(of.p999),
        Value::Time(of.most),
    ]
}

/// Returns a table with a row for each allocator.
fn table<const N: usize>(columns: [&'static str; N]) -> Table {
    Table::new([Column::key("allocator")].into_iter().chain(columns.map(Column::new)))
}

fn name(outcome: &Outcome) -> Value {
    Value::text(outcome.name.clone())
}

fn interval(interval: Interval) -> Value {
    Value::Interval(interval.mean, interval.half, 1)
}

/// Returns the outcomes in ascending order of the value that `by` returns.
fn sorted(comparison: &Comparison, by: impl Fn(&Outcome) -> f64) -> Vec<&Outcome> {
    let mut outcomes: Vec<&Outcome> = comparison.outcomes.iter().collect();
    outcomes.sort_by(|a, b| by(a).total_cmp(&by(b)));
    outcomes
}
