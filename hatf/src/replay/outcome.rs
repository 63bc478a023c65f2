//! What replays on several allocators gave, beside each other.

use hatf_lab::model::evaluate::{Interval, interval};
use serde::Serialize;

use super::compile::{Operations, Summary};
use super::latency::Latency;
use super::process::{Allocator, Worker};
use super::worker::{Look, Run, Task};
use crate::Result;

/// A trace on several allocators.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// What was replayed.
    pub trace: Summary,
    /// Nanoseconds of processor time an operation that the replay itself takes. They are not in the outcomes.
    pub own_ns: Interval,
    /// Times of calls that do nothing: what the clock takes.
    pub own_latencies: Vec<Latency>,
    /// In the order asked for.
    pub outcomes: Vec<Outcome>,
}

/// A trace on one allocator. Times are nanoseconds an operation, net of the replay's own.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The allocator, as the user named it.
    pub name: String,
    /// The file that it is in.
    pub library: String,
    /// Processor time, of all threads and of the system.
    pub processor_ns: Interval,
    /// Time from beginning to end.
    pub elapsed_ns: Interval,
    /// The part of the processor time that the system took, before the replay's own was taken off; 0 to 1.
    pub system: f64,
    /// Page faults of the whole replay.
    pub faults: Interval,
    /// The most bytes resident, over those before the replay; looked at 512 times.
    pub peak_resident: u64,
    /// The mean of them.
    pub mean_resident: u64,
    /// `peak_resident` to the most bytes live.
    pub peak_to_live: Option<f64>,
    /// Bytes resident after the last operation.
    pub resident_at_end: u64,
    /// And after all blocks were freed.
    pub after_all_freed: u64,
    /// Where phases ended: their names, and bytes resident.
    pub phases: Vec<(String, u64)>,
    /// The most bytes resident in each of the steps that `trace.live_bytes` has.
    pub resident: Vec<u64>,
    /// Times of calls, by function and size; what the clock takes is in them.
    pub latencies: Vec<Latency>,
}

/// Replays on each allocator `runs` times for times, in turn, and once each for memory and for single calls. `step` is called
/// after each replay.
///
/// # Errors
/// One of the replays failed.
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

/// The most resident in each step of the trace's curve.
fn steps(run: &Run, summary: &Summary) -> Vec<u64> {
    let mut most = vec![0; summary.live_bytes.len()];
    for sample in &run.memory {
        let step = usize::try_from(sample.operations.saturating_sub(1) / summary.step.max(1)).unwrap_or(usize::MAX);
        if let Some(most) = most.get_mut(step) {
            *most = sample.resident.max(*most);
        }
    }
    // A step without a sample is like the one before.
    let mut last = 0;
    for most in &mut most {
        last = if *most == 0 { last } else { *most };
        *most = last;
    }
    most
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds, and counts, to be shown")]
fn float(value: u64) -> f64 {
    value as f64
}
