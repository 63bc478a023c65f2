//! The parts of a report that are quick to copy, for live views of a heap.

use hatf_lab::Heap;
use hatf_lab::sites::Amount;
use hatf_lab::statistics::Bucket;

use super::{MarkReport, Peak, ReportBuilder, ReportTotals, ThreadReport, Timeline};

/// The state of a heap at a position in a trace. The time to capture this state does not depend on the number of live
/// blocks.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    /// Totals so far.
    pub totals: ReportTotals,
    /// Live blocks. After the program has ended, these are the blocks that it never freed.
    pub live: Amount,
    /// The peak of live memory.
    pub peak: Peak,
    /// Allocated blocks by size.
    pub sizes: Vec<Bucket>,
    /// Reports by thread.
    pub threads: Vec<ThreadReport>,
    /// Marks by name, in order of first occurrence.
    pub marks: Vec<MarkReport>,
    /// Live bytes over time.
    pub timeline: Timeline,
    /// The latest time so far, in nanoseconds.
    pub now: u64,
    /// The mean number of bytes between sampled blocks, if the trace is a sample.
    pub sampling: Option<u64>,
    /// Whether the trace contains only allocation sizes, not the ends of blocks.
    pub sizes_only: bool,
}

impl ReportBuilder {
    /// Returns the latest time so far, in nanoseconds.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Returns a summary of the trace so far that is quick to compute.
    #[must_use]
    pub fn glance(&self, heap: &Heap) -> Glance {
        let (marks, _, _) = self.phases.report(self.state(heap));
        Glance {
            totals: self.totals(heap),
            live: Amount { blocks: heap.objects.live_count(), bytes: heap.objects.live_bytes() },
            peak: self.peak.clone(),
            sizes: self.sizes.buckets().collect(),
            threads: self.threads.report(),
            marks,
            timeline: self.timeline.clone(),
            now: self.now,
            sampling: heap.sampling,
            sizes_only: self.sizes_only,
        }
    }
}
