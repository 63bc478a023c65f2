//! Results of replays on several allocators, for comparison.

use hatf_lab::statistics::{Interval, interval};
use serde::Serialize;

use super::compile::{Operations, Summary};
use super::latency::Latency;
use super::process::{Allocator, Worker};
use super::worker::{Look, Run, Task};
use hatf_trace::Result;

/// A comparison of several allocators on one trace.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The replayed operations.
    pub trace: Summary,
    /// Nanoseconds of CPU time per operation for the replay itself, which are not included in the outcomes.
    pub own_ns: Interval,
    /// Latencies of calls that do nothing, which measure the clock.
    pub own_latencies: Vec<Latency>,
    /// Outcomes in the requested order.
    pub outcomes: Vec<Outcome>,
}

/// The outcome of a trace on one allocator. Times are nanoseconds per operation, excluding the cost of the replay
/// itself.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The allocator, as named by the user.
    pub name: String,
    /// The file that contains the allocator.
    pub library: String,
    /// CPU time of all threads in user and kernel mode.
    pub processor_ns: Interval,
    /// Elapsed time from beginning to end.
    pub elapsed_ns: Interval,
    /// The fraction of CPU time spent in the kernel, from 0 to 1, before the cost of the replay itself was subtracted.
    pub system: f64,
    /// Page faults of the entire replay.
    pub faults: Interval,
    /// The maximum increase in resident bytes since before the replay, sampled 512 times.
    pub peak_resident: u64,
    /// The mean of the sampled increases.
    pub mean_resident: u64,
    /// The ratio of `peak_resident` to the maximum number of live bytes.
    pub peak_to_live: Option<f64>,
    /// Resident bytes after the last operation.
    pub resident_at_end: u64,
    /// Resident bytes after all blocks were freed.
    pub after_all_freed: u64,
    /// The names of ended phases, and the resident bytes at their ends.
    pub phases: Vec<(String, u64)>,
    /// The maximum number of resident bytes in each step of `trace.live_bytes`.
    pub resident: Vec<u64>,
    /// Latencies of calls by function and size, including the cost of reading the clock.
    pub latencies: Vec<Latency>,
}

/// Measures the time of `runs` replays on each allocator in turn, and then memory and the latency of single calls in
/// one replay each. Calls `step` after each replay.
///
/// # Errors
/// Returns an error if a replay failed.
pub fn compare(
    worker: &Worker,
    operations: &Operations,
    allocators: &[Allocator],
    runs: usize,
    task: Task,
    mut step: impl FnMut(),
) -> Result<Comparison> {
    let summary = &operations.summary;
    let nothing = Allocator { name: "nothing".to_owned(), library: None, environment: Vec::new() };
    let mut run = |allocator: &Allocator, task: Task| {
        let run = worker.run(operations, allocator, task);
        step();
        run
    };
    let (mut own, mut timed) = (Vec::new(), vec![Vec::new(); allocators.len()]);
    for _ in 0..runs.max(1) {
        own.push(run(&nothing, Task { look: Look::Total, nothing: true, ..task })?);
        for (allocator, timed) in allocators.iter().zip(&mut timed) {
            timed.push(run(allocator, Task { look: Look::Total, ..task })?);
        }
    }
    let own_latencies = run(&nothing, Task { look: Look::Latency, nothing: true, ..task })?.latencies;
    let count = float(summary.operations.max(1));
    let an_operation = |of: fn(&Run) -> u64, runs: &[Run], off: f64| {
        let values: Vec<f64> = runs.iter().map(|run| float(of(run)) / count - off).collect();
        interval(&values)
    };
    let own_ns = an_operation(|run| run.processor_ns, &own, 0.0);
    let own_elapsed = an_operation(|run| run.elapsed_ns, &own, 0.0);
    let mut outcomes = Vec::new();
    for (allocator, timed) in allocators.iter().zip(&timed) {
        let memory = run(allocator, Task { look: Look::Memory, ..task })?;
        let latencies = run(allocator, Task { look: Look::Latency, ..task })?.latencies;
        let of = |of: fn(&Run) -> u64| timed.iter().map(|run| float(of(run))).sum::<f64>();
        let faults: Vec<f64> = timed.iter().map(|run| float(run.minor_faults + run.major_faults)).collect();
        let resident = memory.memory.iter().map(|sample| sample.resident);
        let peak = resident.clone().max().unwrap_or(0);
        let sum: u128 = resident.clone().map(u128::from).sum();
        let phase = |number: u32| summary.phases.get(number as usize).cloned().unwrap_or_default();
        outcomes.push(Outcome {
            name: allocator.name.clone(),
            library: memory.allocator.clone(),
            processor_ns: an_operation(|run| run.processor_ns, timed, own_ns.mean),
            elapsed_ns: an_operation(|run| run.elapsed_ns, timed, own_elapsed.mean),
            system: of(|run| run.system_ns) / of(|run| run.processor_ns).max(1.0),
            faults: interval(&faults),
            peak_resident: peak,
            mean_resident: u64::try_from(sum / (memory.memory.len().max(1) as u128)).unwrap_or(u64::MAX),
            peak_to_live: (summary.most_live_bytes > 0).then(|| float(peak) / float(summary.most_live_bytes)),
            resident_at_end: memory.memory.last().map_or(0, |sample| sample.resident),
            after_all_freed: memory.after_all_freed,
            phases: memory.phases.iter().map(|(number, sample)| (phase(*number), sample.resident)).collect(),
            resident: steps(&memory, summary),
            latencies,
        });
    }
    Ok(Comparison { trace: summary.clone(), own_ns, own_latencies, outcomes })
}

/// Returns the maximum number of resident bytes in each step of the trace's curve.
fn steps(run: &Run, summary: &Summary) -> Vec<u64> {
    let mut most = vec![0; summary.live_bytes.len()];
    for sample in &run.memory {
        let step = usize::try_from(sample.operations.saturating_sub(1) / summary.step.max(1)).unwrap_or(usize::MAX);
        if let Some(most) = most.get_mut(step) {
            *most = sample.resident.max(*most);
        }
    }
    // A step without a sample uses the value of the previous step.
    let mut last = 0;
    for most in &mut most {
        last = if *most == 0 { last } else { *most };
        *most = last;
    }
    most
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds and counts are only displayed")]
fn float(value: u64) -> f64 {
    value as f64
}
