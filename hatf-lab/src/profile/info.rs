//! Heap info blocks: what is known of the blocks of one context that ended one after the other.

use super::table::Entry;
use hatf_trace::event::Accesses;

use crate::sites::Amount;

/// A value of each block: the sum of all, the least and the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The sum.
    pub total: u64,
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl Spread {
    /// Makes that of one block.
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

/// When blocks were live, in ticks from the first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// From the tick of a block's allocation to that of its end.
    pub lifetime: Spread,
    /// When the block that was merged last was allocated.
    pub alloc_timestamp: u64,
    /// When it ended.
    pub dealloc_timestamp: u64,
    /// Blocks that were allocated before the one merged before them had ended.
    pub num_lifetime_overlaps: u64,
    /// When the block that was merged first was allocated; `None`: not known.
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

/// On which processors the block that was merged first was allocated and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstCpus {
    /// Where it was allocated.
    pub first_alloc_cpu_id: u64,
    /// Where it ended.
    pub first_dealloc_cpu_id: u64,
}

/// On which processors blocks were allocated and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// Where the block that was merged last was allocated.
    pub alloc_cpu_id: u64,
    /// Where it ended.
    pub dealloc_cpu_id: u64,
    /// Blocks that ended on another processor than they were allocated on.
    pub num_migrated_cpu: u64,
    /// Blocks that were allocated on the same processor as the one merged before them.
    pub num_same_alloc_cpu: u64,
    /// Blocks that ended on the same processor as the one merged before them.
    pub num_same_dealloc_cpu: u64,
    /// Those of the block that was merged first; `None`: not known.
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

/// How blocks were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loads {
    /// Loads.
    pub total_load_count: u64,
    /// Stores.
    pub total_store_count: u64,
    /// Blocks without a load, of which all loads are known.
    pub unread_count: u64,
    /// Blocks without a load, which code that is not counted may have read.
    pub unknown_count: u64,
    /// Blocks that such code has reached: their counts are at least these.
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

/// What was live of a context at two moments of the whole trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// When most bytes of all contexts were live, for the first time.
    pub peak: Amount,
    /// At the end.
    pub end: Amount,
}

/// A block that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// The number of its context.
    pub context: u64,
    /// Bytes asked for.
    pub size: u64,
    /// The ticks of its allocation and its end; `None`: the source has no times.
    pub timestamps: Option<(u64, u64)>,
    /// The processors of its allocation and its end, where they are known.
    pub cpus: Option<(u64, u64)>,
    /// Its loads and stores, where they are known.
    pub accesses: Option<Accesses>,
    /// A hash of its type's name, where that is known.
    pub data_type_id: Option<u64>,
}

/// A heap info block. What the source does not know is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapInfo {
    /// The number of the context.
    pub context: u64,
    /// Blocks.
    pub alloc_count: u64,
    /// Bytes asked for.
    pub size: Spread,
    /// When blocks were live.
    pub lifetimes: Option<Lifetimes>,
    /// Loads and stores.
    pub access_count: Option<Spread>,
    /// Granules that were accessed, in percent.
    pub percent_utilized: Option<Spread>,
    /// On which processors blocks began and ended.
    pub cpus: Option<Cpus>,
    /// A hash of the type's name.
    pub data_type_id: Option<u64>,
    /// Accesses to a byte, times 100.
    pub access_density: Option<Spread>,
    /// Accesses to a byte in a second of its lifetime, times 100.
    pub lifetime_access_density: Option<Spread>,
    /// Accesses by their place in the block, 8 bytes each.
    pub access_histogram: Option<Vec<u64>>,
    /// How blocks were read.
    pub loads: Option<Loads>,
    /// What was live. Of several of one run, the last has it for all.
    pub live: Option<Live>,
}

impl HeapInfo {
    /// Makes that of which only sums are known. The least and the most of its sizes are the average, rounded down and up.
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

    /// Makes that of one block. A tick has this many nanoseconds.
    ///
    /// Densities are as in LLVM: a block of 0 bytes counts as one of 1, a lifetime of less than a millisecond as one of 1.
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

    /// Merges one of the same context that comes later. What one of them does not know is not known of both.
    ///
    /// Where they are of different runs, their blocks are not `neighbours`: the last of one and the first of the other are not
    /// compared.
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
        // Without a block there are no sizes to compare, nor anything else.
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

    /// Forgets times, which the source turned out not to have.
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
