//! What a report has that is quickly copied, for those who look while events come.

use hatf_lab::Heap;
use hatf_lab::sites::Amount;

use super::{Bucket, MarkReport, Peak, ReportBuilder, ReportTotals, ThreadReport, Timeline};

/// A heap at a place in a trace. Making it takes no time that grows with what is live.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    /// The sums.
    pub totals: ReportTotals,
    /// What is live; when a program has ended, what it never freed.
    pub live: Amount,
    /// The most that was live.
    pub peak: Peak,
    /// Blocks allocated, by size.
    pub sizes: Vec<Bucket>,
    /// By thread.
    pub threads: Vec<ThreadReport>,
    /// Marks, by name, in the order of the first of each name.
    pub marks: Vec<MarkReport>,
    /// Live bytes over time.
    pub timeline: Timeline,
    /// The last time so far, in nanoseconds.
    pub now: u64,
    /// The mean bytes from one block to the next, where they are a sample.
    pub sampling: Option<u64>,
    /// It is known what was allocated, but not when it ended.
    pub sizes_only: bool,
}

impl ReportBuilder {
    /// Returns the last time so far, in nanoseconds.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Returns what is quickly known of what came so far.
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
