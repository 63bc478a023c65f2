//! Heap info blocks, which contain statistics of the blocks of one context. Blocks are merged in the order in which
//! they ended.

use super::table::Entry;
use hatf_trace::event::Accesses;

use crate::site_counts::Amount;

/// The sum, minimum and maximum of a value over all blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The sum.
    pub total: u64,
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

impl Spread {
    /// Returns the statistics of one block.
    #[must_use]
    pub fn of(value: u64) -> Self {
        Self { total: value, min: value, max: value }
    }

    fn merge(&mut self, later: &Self) {
        self.total = self.total.saturating_add(later.total);
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
    }
}

/// The lifetimes of blocks, in ticks from the first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// The ticks between a block's allocation and its end.
    pub lifetime: Spread,
    /// The allocation tick of the last merged block.
    pub alloc_timestamp: u64,
    /// The end tick of the last merged block.
    pub dealloc_timestamp: u64,
    /// The number of blocks allocated before the previously merged block ended.
    pub num_lifetime_overlaps: u64,
    /// The allocation tick of the first merged block, if known.
    pub first_alloc_timestamp: Option<u64>,
}

impl Lifetimes {
    fn merge(&mut self, later: &Self, neighbours: bool) {
        let first = later.first_alloc_timestamp.filter(|_| neighbours);
        let overlap = first.is_some_and(|first| first < self.dealloc_timestamp);
        let overlaps = self.num_lifetime_overlaps.saturating_add(later.num_lifetime_overlaps);
        self.num_lifetime_overlaps = overlaps.saturating_add(u64::from(overlap));
        self.lifetime.merge(&later.lifetime);
        (self.alloc_timestamp, self.dealloc_timestamp) = (later.alloc_timestamp, later.dealloc_timestamp);
    }
}

/// The CPUs on which the first merged block was allocated and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstCpus {
    /// The CPU of the allocation.
    pub first_alloc_cpu_id: u64,
    /// The CPU of the end.
    pub first_dealloc_cpu_id: u64,
}

/// The CPUs on which blocks were allocated and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// The CPU on which the last merged block was allocated.
    pub alloc_cpu_id: u64,
    /// The CPU on which the last merged block ended.
    pub dealloc_cpu_id: u64,
    /// The number of blocks that were allocated and ended on different CPUs.
    pub num_migrated_cpu: u64,
    /// The number of blocks allocated on the CPU where the previously merged block was allocated.
    pub num_same_alloc_cpu: u64,
    /// The number of blocks that ended on the CPU where the previously merged block ended.
    pub num_same_dealloc_cpu: u64,
    /// The CPUs of the first merged block, if known.
    pub first: Option<FirstCpus>,
}

impl Cpus {
    fn merge(&mut self, later: &Self, neighbours: bool) {
        let first = later.first.filter(|_| neighbours);
        let alloc = u64::from(first.is_some_and(|first| first.first_alloc_cpu_id == self.alloc_cpu_id));
        let dealloc = u64::from(first.is_some_and(|first| first.first_dealloc_cpu_id == self.dealloc_cpu_id));
        let sum = |a: u64, b: u64| a.saturating_add(b);
        *self = Self {
            alloc_cpu_id: later.alloc_cpu_id,
            dealloc_cpu_id: later.dealloc_cpu_id,
            num_migrated_cpu: sum(self.num_migrated_cpu, later.num_migrated_cpu),
            num_same_alloc_cpu: sum(sum(self.num_same_alloc_cpu, later.num_same_alloc_cpu), alloc),
            num_same_dealloc_cpu: sum(sum(self.num_same_dealloc_cpu, later.num_same_dealloc_cpu), dealloc),
            first: self.first,
        };
    }
}

/// Read accesses to blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loads {
    /// The number of loads.
    pub total_load_count: u64,
    /// The number of stores.
    pub total_store_count: u64,
    /// The number of blocks without a load whose accesses are all known.
    pub unread_count: u64,
    /// The number of blocks without a counted load that uninstrumented code may have read.
    pub unknown_count: u64,
    /// The number of blocks that uninstrumented code may have accessed. The counts of these blocks are lower bounds.
    pub reached_count: u64,
}

impl Loads {
    fn of(accesses: &Accesses) -> Self {
        let Accesses { loads, stores, reached, .. } = *accesses;
        Self {
            total_load_count: loads,
            total_store_count: stores,
            unread_count: u64::from(loads == 0 && !reached),
            unknown_count: u64::from(loads == 0 && reached),
            reached_count: reached.into(),
        }
    }

    fn merge(&mut self, later: &Self) {
        let sum = |a: u64, b: u64| a.saturating_add(b);
        self.total_load_count = sum(self.total_load_count, later.total_load_count);
        self.total_store_count = sum(self.total_store_count, later.total_store_count);
        self.unread_count = sum(self.unread_count, later.unread_count);
        self.unknown_count = sum(self.unknown_count, later.unknown_count);
        self.reached_count = sum(self.reached_count, later.reached_count);
    }
}

/// The live amounts of a context at two points of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// The amount when the number of live bytes of all contexts first reached its maximum.
    pub peak: Amount,
    /// The amount at the end.
    pub end: Amount,
}

/// A block that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// The number of the block's context.
    pub context: u64,
    /// The requested size in bytes.
    pub size: u64,
    /// The ticks of the allocation and the end, or `None` if the source has no timestamps.
    pub timestamps: Option<(u64, u64)>,
    /// The CPUs of the allocation and the end, if known.
    pub cpus: Option<(u64, u64)>,
    /// The loads and stores, if known.
    pub accesses: Option<Accesses>,
    /// A hash of the type name, if known.
    pub data_type_id: Option<u64>,
}

/// A heap info block. Values unknown to the source are `None`.
///
/// # Examples
///
/// The program wrote both blocks but never read them:
///
/// ```
/// use hatf_lab::profile::{Ended, HeapInfo, Reads, TICK};
/// use hatf_trace::event::Accesses;
///
/// let accesses = Some(Accesses { stores: 3, touched: 1, granules: 2, ..Accesses::default() });
/// let block = Ended { context: 1, size: 100, accesses, ..Ended::default() };
/// let mut info = HeapInfo::new(&block, TICK);
/// info.merge_with(HeapInfo::new(&Ended { size: 60, ..block }, TICK), true);
/// assert_eq!((info.alloc_count, info.size.total, info.size.min), (2, 160, 60));
/// assert_eq!(Reads::of(&info), Reads::OnlyWritten);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapInfo {
    /// The number of the context.
    pub context: u64,
    /// The number of blocks.
    pub alloc_count: u64,
    /// The requested bytes.
    pub size: Spread,
    /// The lifetimes of blocks.
    pub lifetimes: Option<Lifetimes>,
    /// The number of loads and stores.
    pub access_count: Option<Spread>,
    /// The percentage of accessed granules.
    pub percent_utilized: Option<Spread>,
    /// The CPUs on which blocks were allocated and ended.
    pub cpus: Option<Cpus>,
    /// A hash of the type name.
    pub data_type_id: Option<u64>,
    /// Accesses per byte, times 100.
    pub access_density: Option<Spread>,
    /// Accesses per byte per second of lifetime, times 100.
    pub lifetime_access_density: Option<Spread>,
    /// Accesses by position in the block, in units of 8 bytes.
    pub access_histogram: Option<Vec<u64>>,
    /// Read accesses to the blocks.
    pub loads: Option<Loads>,
    /// The live amounts. If one run has several heap info blocks for a context, only the last heap info block contains
    /// the amounts.
    pub live: Option<Live>,
}

impl HeapInfo {
    /// Creates a heap info block from sums alone. The minimum and maximum size are set to the average, rounded down and
    /// up.
    #[must_use]
    pub fn of_sums(context: u64, allocated: Amount, live: Option<Live>) -> Self {
        let Amount { blocks, bytes } = allocated;
        let average = |round: fn(u64, u64) -> u64| if blocks == 0 { 0 } else { round(bytes, blocks) };
        let size = Spread { total: bytes, min: average(|a, b| a / b), max: average(u64::div_ceil) };
        Self {
            context,
            alloc_count: blocks,
            size,
            lifetimes: None,
            access_count: None,
            percent_utilized: None,
            cpus: None,
            data_type_id: None,
            access_density: None,
            lifetime_access_density: None,
            access_histogram: None,
            loads: None,
            live,
        }
    }

    /// Creates the heap info block of a single block. `tick` is the length of a tick in nanoseconds.
    ///
    /// Densities are computed as in LLVM, where a block of 0 bytes counts as 1 byte and a lifetime below one
    /// millisecond counts as one millisecond.
    #[must_use]
    pub fn new(ended: &Ended, tick: u64) -> Self {
        let Ended { context, size, timestamps, cpus, accesses, data_type_id } = *ended;
        let lifetime = timestamps.map(|(alloc, dealloc)| dealloc.saturating_sub(alloc));
        let density = accesses.map(|accesses| accesses.count().saturating_mul(100) / size.max(1));
        let milliseconds = lifetime.map(|ticks| (u128::from(ticks) * u128::from(tick) / 1_000_000).max(1));
        let over_time = density.zip(milliseconds).map(|(density, milliseconds)| {
            u64::try_from(u128::from(density) * 1000 / milliseconds).unwrap_or(u64::MAX)
        });
        Self {
            context,
            alloc_count: 1,
            size: Spread::of(size),
            lifetimes: timestamps.zip(lifetime).map(|((alloc, dealloc), lifetime)| Lifetimes {
                lifetime: Spread::of(lifetime),
                alloc_timestamp: alloc,
                dealloc_timestamp: dealloc,
                num_lifetime_overlaps: 0,
                first_alloc_timestamp: Some(alloc),
            }),
            access_count: accesses.map(|accesses| Spread::of(accesses.count())),
            percent_utilized: accesses.map(|accesses| Spread::of(accesses.percent_utilized())),
            cpus: cpus.map(|(alloc, dealloc)| Cpus {
                alloc_cpu_id: alloc,
                dealloc_cpu_id: dealloc,
                num_migrated_cpu: u64::from(alloc != dealloc),
                num_same_alloc_cpu: 0,
                num_same_dealloc_cpu: 0,
                first: Some(FirstCpus { first_alloc_cpu_id: alloc, first_dealloc_cpu_id: dealloc }),
            }),
            data_type_id: data_type_id.filter(|id| *id != 0),
            access_density: density.map(Spread::of),
            lifetime_access_density: over_time.map(Spread::of),
            access_histogram: None,
            loads: accesses.as_ref().map(Loads::of),
            live: None,
        }
    }

    /// Merges a later heap info block of the same context. A value that is unknown in either block is unknown in the
    /// result.
    ///
    /// `neighbours` must be false if the two heap info blocks come from different runs. The last block of one run is
    /// then not compared with the first block of the other.
    pub fn merge_with(&mut self, later: Self, neighbours: bool) {
        fn both<T>(earlier: &mut Option<T>, later: Option<T>, merge: impl FnOnce(&mut T, T)) {
            match (earlier.as_mut(), later) {
                (Some(earlier), Some(later)) => merge(earlier, later),
                _ => *earlier = None,
            }
        }
        let spread = |earlier: &mut Spread, later: Spread| earlier.merge(&later);
        let live = match (self.live, later.live) {
            (earlier, later) if neighbours => later.or(earlier),
            (Some(mut earlier), Some(later)) => {
                earlier.peak.sum(later.peak);
                earlier.end.sum(later.end);
                Some(earlier)
            }
            _ => None,
        };
        // If either heap info block counts no blocks, there are no values to merge.
        if later.alloc_count == 0 || self.alloc_count == 0 {
            if self.alloc_count == 0 {
                *self = later;
            }
            self.live = live;
            return;
        }
        self.live = live;
        self.alloc_count = self.alloc_count.saturating_add(later.alloc_count);
        self.size.merge(&later.size);
        both(&mut self.lifetimes, later.lifetimes, |earlier, later| earlier.merge(&later, neighbours));
        both(&mut self.access_count, later.access_count, spread);
        both(&mut self.percent_utilized, later.percent_utilized, spread);
        both(&mut self.cpus, later.cpus, |earlier, later| earlier.merge(&later, neighbours));
        self.data_type_id = later.data_type_id.or(self.data_type_id);
        both(&mut self.access_density, later.access_density, spread);
        both(&mut self.lifetime_access_density, later.lifetime_access_density, spread);
        both(&mut self.loads, later.loads, |earlier, later| earlier.merge(&later));
        both(&mut self.access_histogram, later.access_histogram, |earlier, later| {
            earlier.resize(earlier.len().max(later.len()), 0);
            earlier.iter_mut().zip(later).for_each(|(sum, value)| *sum = sum.saturating_add(value));
        });
    }

    /// Removes the lifetimes, for a source that turns out to have no timestamps.
    pub fn without_times(self) -> Self {
        Self { lifetimes: None, lifetime_access_density: None, ..self }
    }
}

impl Entry for HeapInfo {
    fn context(&self) -> u64 {
        self.context
    }

    fn count(&self) -> u64 {
        self.alloc_count
    }

    fn merge(&mut self, later: Self) {
        self.merge_with(later, true);
    }
}
