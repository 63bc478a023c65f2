//! The result of an analysis.

use hatf_lab::sites::Amount;
use hatf_lab::statistics::Histogram;
use hatf_lab::{Contradictions, Object};
use serde::Serialize;

use super::{
    Ending, FailedRequest, MarkReport, PagesReport, PhaseReport, Programs, SitesReport, ThreadReport, Timeline,
    UsableReport,
};

/// The analysis of a program's heap. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The way in which the program ended.
    pub ending: Ending,
    /// Whether the program exited and the trace contains all events up to then. Otherwise, blocks that are live at the
    /// end may not be leaks.
    pub is_complete: bool,
    /// The memory limit of the program's cgroup in bytes, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// The last call that failed to allocate memory, if any failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failed: Option<FailedRequest>,
    /// The programs that the process executed, if the trace names them.
    #[serde(skip_serializing_if = "Programs::is_empty")]
    pub programs: Programs,
    /// The first comments of the trace.
    pub comments: Vec<String>,
    /// The totals.
    pub totals: ReportTotals,
    /// The number of calls to each function.
    pub calls: CallCounts,
    /// The peak of live memory.
    pub peak: Peak,
    /// Allocated blocks by size.
    pub sizes: Histogram,
    /// Freed blocks by lifetime.
    pub lifetimes: Histogram,
    /// Freed blocks by the bytes allocated during their lifetimes.
    pub lifetimes_in_bytes: Histogram,
    /// Quantiles of `lifetimes`, at most 0.8% too high.
    pub lifetime_quantiles: Quantiles,
    /// Quantiles of `lifetimes_in_bytes`, at most 0.8% too high.
    pub lifetime_in_bytes_quantiles: Quantiles,
    /// Reports by thread.
    pub threads: Vec<ThreadReport>,
    /// Marks by name, in order of first occurrence.
    pub marks: Vec<MarkReport>,
    /// Phases by name, in order of first occurrence.
    pub phases: Vec<PhaseReport>,
    /// The number of marks and phases omitted from both lists because there are too many names, or because too many
    /// phases were in progress at the same time.
    pub marks_and_phases_left_out: u64,
    /// The blocks that are live at the end.
    pub still_live: StillLive,
    /// Live bytes over time.
    pub timeline: Timeline,
    /// The last time in the trace.
    pub duration: u64,
    /// Pages, or `None` if the trace has no page events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<PagesReport>,
    /// Usable sizes of blocks, or `None` if the trace does not contain them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usable: Option<UsableReport>,
    /// The stacks that allocated most, or `None` if the trace has no stacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sites: Option<SitesReport>,
    /// The periods in which recording was off, or `None` if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<Off>,
    /// Estimates for the whole program if the trace is a sample. Except for `sites`, all other numbers cover only the
    /// sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Whether the trace contains only allocation sizes, not the ends of blocks. Numbers about live or freed blocks are
    /// then meaningless.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sizes_only: bool,
}

/// Gaps in the report, caused by periods in which recording was off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Off {
    /// The number of times that recording stopped.
    pub times: u64,
    /// The total time for which recording was off.
    pub duration: u64,
    /// Whether recording was off at the end. Blocks that are still live may have been freed since.
    pub at_end: bool,
    /// Blocks that were live when recording stopped. They no longer count after recording resumed, because they may
    /// have been freed in the meantime.
    pub forgotten_blocks: u64,
    /// The total size of these blocks.
    pub forgotten_bytes: u64,
    /// Frees (and reallocs) of blocks that were allocated before or during a period in which recording was off. They
    /// are not included in [`Contradictions::unmatched_frees`].
    pub frees: u64,
}

/// Estimates for a program, derived from a sample of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Estimate {
    /// The mean number of bytes between recorded blocks.
    pub mean: u64,
    /// Total allocations.
    pub allocated: Amount,
    /// Live memory at the peak of live bytes.
    pub peak: Amount,
    /// Live memory at the end.
    pub leaked: Amount,
}

/// The values that 50%, 90% and 99% of all values do not exceed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
}

impl Quantiles {
    pub(super) fn of(histogram: &Histogram) -> Self {
        Self { p50: histogram.quantile(500), p90: histogram.quantile(900), p99: histogram.quantile(990) }
    }
}

/// Totals. A realloc of a block counts as an allocation and a free, as in valgrind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReportTotals {
    /// Records, excluding comments.
    pub records: u64,
    /// Events, which are allocations and ends of blocks, including blocks ended by exec or with their heap.
    pub events: u64,
    /// Allocated blocks.
    pub allocs: u64,
    /// Freed blocks.
    pub frees: u64,
    /// Requested bytes.
    pub bytes: u64,
    /// Contradictions. They are all 0 unless records are missing or the program is incorrect.
    #[serde(flatten)]
    pub contradictions: Contradictions,
    /// Events lost during recording.
    pub lost: u64,
    /// Heaps. For a recorded program, this is the number of images that it executed.
    pub heaps: u64,
}

/// Calls by function.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CallCounts {
    /// `malloc`, or an unknown allocation function.
    pub malloc: u64,
    /// `calloc`.
    pub calloc: u64,
    /// `memalign` and similar functions.
    pub aligned: u64,
    /// `realloc` and `reallocarray` without an old block, which are equivalent to mallocs.
    pub realloc_of_null: u64,
    /// `realloc` and `reallocarray` of an existing block.
    pub realloc: u64,
    /// Reallocs of an existing block that was not moved.
    pub reallocs_in_place: u64,
    /// Reallocs of an existing block that grew.
    pub reallocs_grown: u64,
    /// Reallocs of an existing block that shrank.
    pub reallocs_shrunk: u64,
    /// Bytes copied by reallocs that moved their block.
    pub realloc_bytes_copied: u64,
    /// `free`.
    pub free: u64,
    /// Calls that returned no block.
    pub failed: u64,
}

/// The peak of live memory.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Peak {
    /// The maximum number of live bytes.
    pub bytes: u64,
    /// Live blocks at that time.
    pub blocks_then: u64,
    /// The time of the peak.
    pub time: u64,
    /// The number of records that precede the peak.
    pub record: u64,
    /// The maximum number of live blocks at any time.
    pub blocks: u64,
}

impl Peak {
    /// Updates the peak with the current live memory. Returns whether this is a new maximum of live bytes.
    pub(super) fn note(&mut self, bytes: u64, blocks: u64, time: u64, record: u64) -> bool {
        self.blocks = self.blocks.max(blocks);
        let most = bytes > self.bytes;
        if most {
            *self = Self { bytes, blocks_then: blocks, time, record, blocks: self.blocks };
        }
        most
    }
}

/// Blocks that were never freed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StillLive {
    /// The number of blocks.
    pub blocks: u64,
    /// The total size of the blocks.
    pub bytes: u64,
    /// The largest blocks, at most ten, in descending order of size.
    pub largest: Vec<LargestBlock>,
    /// Additional blocks that were live when `exec` replaced their program.
    pub replaced_blocks: u64,
    /// The total size of these blocks.
    pub replaced_bytes: u64,
}

/// A large block that was never freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LargestBlock {
    /// Requested bytes.
    pub size: u64,
    /// The time of the allocation.
    pub time: u64,
    /// The address.
    pub address: u64,
}

impl StillLive {
    const LARGEST: usize = 10;

    pub(super) fn add(&mut self, object: &Object) {
        let Object { size, time, address, .. } = *object;
        self.blocks += 1;
        self.bytes = self.bytes.saturating_add(size);
        let block = LargestBlock { size, time, address };
        // Equally large blocks are ordered by time and then by address. Otherwise, the result would depend on the order
        // of a hash map.
        let key = |b: &LargestBlock| (std::cmp::Reverse(b.size), b.time, b.address);
        let at = self.largest.partition_point(|other| key(other) < key(&block));
        if at < Self::LARGEST {
            self.largest.insert(at, block);
            self.largest.truncate(Self::LARGEST);
        }
    }
}
