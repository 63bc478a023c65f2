//! What an analysis found.

use hatf_lab::sites::Amount;
use hatf_lab::{Contradictions, Object};
use serde::Serialize;

use super::{Histogram, MarkReport, PagesReport, PhaseReport, SitesReport, ThreadReport, Timeline, UsableReport};

/// The analysis of a program's heap. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The first comments of the trace.
    pub comments: Vec<String>,
    /// The sums.
    pub totals: ReportTotals,
    /// How often each function was called.
    pub calls: CallCounts,
    /// The most that was live.
    pub peak: Peak,
    /// Blocks allocated, by size.
    pub sizes: Histogram,
    /// Blocks freed, by the time they lived.
    pub lifetimes: Histogram,
    /// Blocks freed, by the bytes allocated while they lived.
    pub lifetimes_in_bytes: Histogram,
    /// Quantiles of `lifetimes`, at most 0.8 % too high.
    pub lifetime_quantiles: Quantiles,
    /// Quantiles of `lifetimes_in_bytes`, at most 0.8 % too high.
    pub lifetime_in_bytes_quantiles: Quantiles,
    /// By thread.
    pub threads: Vec<ThreadReport>,
    /// Marks, by name, in the order of the first of each name.
    pub marks: Vec<MarkReport>,
    /// Phases, by name, in the order of the first of each name.
    pub phases: Vec<PhaseReport>,
    /// Marks and phases that are in neither: they have too many names, or too many phases were in progress at once.
    pub marks_and_phases_left_out: u64,
    /// The blocks that were never freed.
    pub still_live: StillLive,
    /// Live bytes over time.
    pub timeline: Timeline,
    /// The last time in the trace.
    pub duration: u64,
    /// Pages; none if the trace says nothing of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<PagesReport>,
    /// What blocks really have; none if the trace does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usable: Option<UsableReport>,
    /// The stacks that allocated most; none if the trace has no stacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sites: Option<SitesReport>,
    /// Where recording was off; none if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<Off>,
    /// What the program did in all, where the trace is a sample; all other numbers but those of `sites` are of the sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// It is known what was allocated, but not when it ended: numbers of what was live, or freed, mean nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sizes_only: bool,
}

/// What is not known because recording was off for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Off {
    /// How often it stopped.
    pub times: u64,
    /// For how long it was off in all.
    pub duration: u64,
    /// Whether it was off at the end: blocks that are still live may have been freed since.
    pub at_end: bool,
    /// Blocks that were live when it stopped, and do not count any more where it goes on: they may have been freed meanwhile.
    pub forgotten_blocks: u64,
    /// Their sizes' sum.
    pub forgotten_bytes: u64,
    /// Frees (and reallocs) of blocks that the recording never saw, or forgot. They are not among [`Contradictions::unmatched_frees`].
    pub frees: u64,
}

/// What a program did, estimated from a sample of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Estimate {
    /// The mean bytes from one block that was recorded to the next.
    pub mean: u64,
    /// Allocated in all.
    pub allocated: Amount,
    /// Live when most bytes were.
    pub peak: Amount,
    /// Live at the end.
    pub leaked: Amount,
}

/// The values that 50 %, 90 % and 99 % of all values do not exceed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: u64,
    /// 90 % are not greater.
    pub p90: u64,
    /// 99 % are not greater.
    pub p99: u64,
}

impl Quantiles {
    pub(super) fn of(histogram: &Histogram) -> Self {
        Self { p50: histogram.quantile(500), p90: histogram.quantile(900), p99: histogram.quantile(990) }
    }
}

/// Sums. A realloc of a block is an alloc and a free, as valgrind counts them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReportTotals {
    /// Records, comments not counted.
    pub records: u64,
    /// Events: blocks that began or ended, by exec or with their heap, too.
    pub events: u64,
    /// Blocks that began.
    pub allocs: u64,
    /// Blocks that ended.
    pub frees: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// What contradicts itself: all 0 unless records are missing, or the program is wrong.
    #[serde(flatten)]
    pub contradictions: Contradictions,
    /// Events that were lost while recording.
    pub lost: u64,
    /// Heaps: for a recorded program, the images it was by exec.
    pub heaps: u64,
}

/// Calls by function.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CallCounts {
    /// `malloc`, or an allocation of unknown kind.
    pub malloc: u64,
    /// `calloc`.
    pub calloc: u64,
    /// `memalign` and its kin.
    pub aligned: u64,
    /// `realloc` and `reallocarray` of no block, which are mallocs.
    pub realloc_of_null: u64,
    /// `realloc` and `reallocarray` of a block.
    pub realloc: u64,
    /// Of those: the block stayed where it was.
    pub reallocs_in_place: u64,
    /// Of those: it grew.
    pub reallocs_grown: u64,
    /// Of those: it shrank.
    pub reallocs_shrunk: u64,
    /// Bytes copied by those that moved.
    pub realloc_bytes_copied: u64,
    /// `free`.
    pub free: u64,
    /// Calls that gave no block.
    pub failed: u64,
}

/// The most that was live at once.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Peak {
    /// Bytes.
    pub bytes: u64,
    /// Blocks that were live then.
    pub blocks_then: u64,
    /// When.
    pub time: u64,
    /// After how many records.
    pub record: u64,
    /// The most blocks at once, at whatever time.
    pub blocks: u64,
}

impl Peak {
    /// Notes what is live; returns whether there was never more.
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
    /// How many.
    pub blocks: u64,
    /// Their sizes' sum.
    pub bytes: u64,
    /// The largest, at most ten, largest first.
    pub largest: Vec<LargestBlock>,
    /// Further blocks that were live when another program took the place of theirs (`exec`).
    pub replaced_blocks: u64,
    /// Their sizes' sum.
    pub replaced_bytes: u64,
}

/// A large block that was never freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LargestBlock {
    /// Bytes asked for.
    pub size: u64,
    /// When it began.
    pub time: u64,
    /// Where.
    pub address: u64,
}

impl StillLive {
    const LARGEST: usize = 10;

    pub(super) fn add(&mut self, object: &Object) {
        let Object { size, time, address, .. } = *object;
        self.blocks += 1;
        self.bytes = self.bytes.saturating_add(size);
        let block = LargestBlock { size, time, address };
        // Among equals the earlier and lower one: the order of a hash map must not show.
        let key = |b: &LargestBlock| (std::cmp::Reverse(b.size), b.time, b.address);
        let at = self.largest.partition_point(|other| key(other) < key(&block));
        if at < Self::LARGEST {
            self.largest.insert(at, block);
            self.largest.truncate(Self::LARGEST);
        }
    }
}
