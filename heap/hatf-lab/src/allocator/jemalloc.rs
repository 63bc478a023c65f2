//! JEMALLOC: size classes in slabs, extents, and a per-thread cache, as in jemalloc 5.3.
//!
//! Sources: Evans, "A Scalable Concurrent malloc(3) Implementation for FreeBSD" (BSDCan 2006); the jemalloc 5.3 manual
//! page for options and their defaults, and `arena.c`, `tcache.c`, `eset.c` and `extent.c` for the selection order.
//! Small classes allocate from slabs: an allocation uses the lowest free region in the lowest slab that has one. Slabs
//! and large blocks are extents, for which an allocation uses the lowest extent that is large enough. Freed extents
//! stay held and are returned to the system later. The file is long because caches, slabs and extents call each other;
//! independent parts are in `runs.rs` and `classes.rs`.
//!
//! Not modelled: alignment, metadata other than the records of extents, and thread exit. Time is that of the trace.

use std::collections::BTreeSet;

use super::classes::Classes;
use super::mapped::Mapped;
use super::runs::{Fit, RunSettings, Runs};
use super::{ADDRESS_SPACE, Act, Acts, Allocator, PAGE, Place};

/// Settings of `MALLOC_CONF`, and two constants of jemalloc. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JemallocSettings {
    /// The number of arenas (`narenas`). jemalloc's default is 4 per core; the default here is 8. Threads are assigned
    /// to arenas in turn.
    pub arenas: u64,
    /// Whether threads have caches; 0 means that they do not (`tcache:false`).
    pub tcache: u64,
    /// The largest cached block (`lg_tcache_max` is its logarithm).
    pub tcache_max: u64,
    /// The time in nanoseconds over which freed extents are returned to the system bit by bit; 0 means immediately. This
    /// is `dirty_decay_ms`, 10 seconds by default.
    pub decay: u64,
    /// Size classes per doubling. In jemalloc this is the constant 4.
    pub steps: u64,
    /// The smallest slab. In jemalloc this is one page.
    pub slab: u64,
    /// The size above which freed blocks are returned immediately (`oversize_threshold`).
    pub oversize: u64,
}

impl Default for JemallocSettings {
    fn default() -> Self {
        let (tcache_max, decay, oversize) = (32 << 10, 10_000_000_000, 8 << 20);
        Self { arenas: 8, tcache: 1, tcache_max, decay, steps: 4, slab: PAGE, oversize }
    }
}

/// Bytes of address space per arena.
const ARENA: u64 = 1 << 39;
/// The maximum number of regions in a slab.
const REGIONS: u64 = 512;
/// Bytes of an extent's record (`edata_t`).
const RECORD: u64 = 128;
/// The smallest large size class.
const LARGE: u64 = 16 << 10;
/// Bytes allocated or freed between two collection steps of a cache.
const COLLECT: u64 = 64 << 10;
/// Flag of a block that occupies an entire extent instead of a region of a slab.
const EXTENT: u32 = 1 << 31;

/// Regions of one class.
#[derive(Debug)]
struct Slab {
    run: u32,
    address: u64,
    class: usize,
    /// One bit per region, set if the region is free.
    free: [u64; 8],
    used: u64,
}

impl Slab {
    /// Takes the lowest free region.
    #[expect(clippy::cast_lossless, reason = "the value is a bit number")]
    fn take(&mut self) -> Option<u64> {
        let (n, word) = self.free.iter_mut().enumerate().find(|(_, word)| **word != 0)?;
        let bit = word.trailing_zeros() as u64;
        *word &= *word - 1;
        self.used += 1;
        Some(n as u64 * 64 + bit)
    }
}

/// The slabs of a class in one arena.
#[derive(Debug, Default)]
struct Bin {
    current: Option<u32>,
    /// Further slabs with a free region, by address.
    partial: BTreeSet<(u64, u32)>,
}

#[derive(Debug)]
struct Arena {
    runs: Runs,
    bins: Vec<Bin>,
}

/// A thread's cached blocks of one class, and its refill state.
#[derive(Debug, Default)]
struct Cached {
    blocks: Vec<Place>,
    /// The minimum number of cached blocks since the last collection.
    low: usize,
    /// The binary logarithm of the divisor of a refill: an empty cache is refilled to 1/2, 1/4, ... of its capacity.
    divide: u32,
    refilled: bool,
}

#[derive(Debug, Default)]
struct Cache {
    bins: Vec<Cached>,
    /// Bytes allocated and bytes freed since the last collection step.
    bytes: [u64; 2],
    next: usize,
}

/// Evans' allocator.
///
/// # Examples
///
/// Sizes from 113 to 128 bytes belong to the same class:
///
/// ```
/// use hatf_lab::allocator::{Acts, Allocator, Jemalloc, JemallocSettings};
///
/// let (mut jemalloc, mut acts) = (Jemalloc::new(JemallocSettings::default()), Acts::default());
/// jemalloc.switch_to(0);
/// let mut address = |size| jemalloc.allocate(size, &mut acts).map(|place| place.address);
/// let (one, two) = (address(113), address(128));
/// assert_eq!(two.zip(one).map(|(two, one)| two - one), Some(128));
/// // A page and the records of two extents.
/// assert_eq!(jemalloc.held(), 4_096 + 2 * 128);
/// ```
#[derive(Debug)]
pub struct Jemalloc {
    settings: JemallocSettings,
    classes: Classes,
    /// For each small class, the pages and regions of a slab.
    slabs_of: Vec<(u64, u64)>,
    /// For each cached class, the maximum number of cached blocks.
    most: Vec<usize>,
    slabs: Vec<Slab>,
    spare: Vec<u32>,
    arenas: Vec<Arena>,
    caches: Vec<Cache>,
    mapped: Mapped,
    thread: usize,
    clock: u64,
    heap: u64,
    held: u64,
    /// The extent records of all arenas.
    records: u64,
    touched: u64,
}

impl Jemalloc {
    /// Creates an empty heap.
    #[must_use]
    pub fn new(settings: JemallocSettings) -> Self {
        let mut sizes = vec![8];
        sizes.extend(Classes::geometric(16, settings.steps, ADDRESS_SPACE / 8));
        let classes = Classes::new(sizes);
        let small = classes.sizes().iter().take_while(|size| **size < LARGE);
        let slabs_of: Vec<(u64, u64)> = small.map(|size| slab(*size, settings.slab)).collect();
        let cached =
            classes.sizes().iter().take_while(|size| **size <= settings.tcache_max.min(settings.oversize - 1)).count();
        // Cache twice as many blocks as a slab has regions, within bounds, or 20 blocks of a large class.
        let most = |class: usize| slabs_of.get(class).map_or(20, |(_, regions)| (2 * regions).clamp(20, 200));
        let cached = if settings.tcache == 0 { 0 } else { cached };
        let most = (0..cached).map(|class| usize::try_from(most(class)).unwrap_or(20)).collect();
        Self {
            settings,
            classes,
            slabs_of,
            most,
            slabs: Vec::new(),
            spare: Vec::new(),
            arenas: Vec::new(),
            caches: Vec::new(),
            mapped: Mapped::new(),
            thread: 0,
            clock: 0,
            heap: 0,
            held: 0,
            records: 0,
            touched: 0,
        }
    }

    fn arena(&self) -> usize {
        self.thread % usize::try_from(self.settings.arenas).unwrap_or(1).max(1)
    }

    /// Runs `work` on the runs of an arena and updates the totals of held memory.
    fn recount<T>(&mut self, arena: usize, work: impl FnOnce(&mut Runs) -> Option<T>) -> Option<T> {
        let of = &mut self.arenas.get_mut(arena)?.runs;
        let (heap, held, records) = (of.heap(), of.pages.bytes(), of.records());
        let result = work(of);
        self.heap = self.heap + of.heap() - heap;
        self.held = self.held + of.pages.bytes() - held;
        self.records += of.records() - records;
        result
    }

    /// Takes a region of a small class from an arena.
    fn region(&mut self, arena: usize, class: usize, acts: &mut Acts) -> Option<Place> {
        let size = self.classes.size(class);
        loop {
            let bin = self.arenas.get_mut(arena)?.bins.get_mut(class)?;
            if let Some(id) = bin.current {
                let slab = self.slabs.get_mut(id as usize)?;
                if let Some(region) = slab.take() {
                    acts.note(Act::Cut);
                    return Some(Place { address: slab.address + region * size, block: id });
                }
            }
            bin.current = bin.partial.pop_first().map(|(_, id)| id);
            if bin.current.is_none() {
                let id = self.new_slab(arena, class, acts)?;
                self.arenas.get_mut(arena)?.bins.get_mut(class)?.current = Some(id);
            }
        }
    }

    #[cold]
    fn new_slab(&mut self, arena: usize, class: usize, acts: &mut Acts) -> Option<u32> {
        let (pages, regions) = *self.slabs_of.get(class)?;
        let run = self.recount(arena, |runs| runs.take(pages, acts))?;
        let address = arena as u64 * ARENA + self.arenas.get(arena)?.runs.address(run);
        let bits = |n: u64| {
            u64::MAX
                .checked_shr(u32::try_from(64_u64.saturating_sub(regions.saturating_sub(n * 64))).unwrap_or(64))
                .unwrap_or(0)
        };
        let free = [0, 1, 2, 3, 4, 5, 6, 7].map(bits);
        let slab = Slab { run, address, class, free, used: 0 };
        if let Some(id) = self.spare.pop() {
            *self.slabs.get_mut(id as usize)? = slab;
            return Some(id);
        }
        let id = u32::try_from(self.slabs.len()).ok().filter(|id| *id < EXTENT)?;
        self.slabs.push(slab);
        Some(id)
    }

    /// Takes a block from an arena, bypassing the cache.
    fn take_block(&mut self, arena: usize, class: usize, acts: &mut Acts) -> Option<Place> {
        if class < self.slabs_of.len() {
            return self.region(arena, class, acts);
        }
        let size = self.classes.size(class);
        if size >= self.settings.oversize {
            return None;
        }
        // Add a page and an offset into it, so that large blocks do not share cache lines (`cache_oblivious`).
        let run = self.recount(arena, |runs| runs.take(size.div_ceil(PAGE) + 1, acts))?;
        let offset = self.clock.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58 << 6;
        let address = arena as u64 * ARENA + self.arenas.get(arena)?.runs.address(run) + offset;
        Some(Place { address, block: EXTENT | run })
    }

    /// Returns a block to its arena.
    fn give_block(&mut self, place: Place, acts: &mut Acts) {
        let arena = usize::try_from(place.address / ARENA).unwrap_or(0);
        let clock = self.clock;
        if place.block & EXTENT != 0 {
            self.recount(arena, |runs| Some(runs.put(place.block & !EXTENT, clock, acts)));
            return;
        }
        acts.note(Act::Inserted);
        let id = place.block;
        let Some(slab) = self.slabs.get_mut(id as usize) else { return };
        let region = (place.address - slab.address) / self.classes.size(slab.class).max(1);
        if let Some(word) = usize::try_from(region / 64).ok().and_then(|word| slab.free.get_mut(word)) {
            *word |= 1 << (region % 64);
        }
        slab.used -= 1;
        let (class, address, run, used) = (slab.class, slab.address, slab.run, slab.used);
        let regions = self.slabs_of.get(class).map_or(0, |(_, regions)| *regions);
        let Some(bin) = self.arenas.get_mut(arena).and_then(|of| of.bins.get_mut(class)) else { return };
        if used == 0 {
            // The entire slab is free.
            if bin.current == Some(id) {
                bin.current = None;
            } else {
                bin.partial.remove(&(address, id));
            }
            self.spare.push(id);
            self.recount(arena, |runs| Some(runs.put(run, clock, acts)));
        } else if used + 1 == regions && bin.current != Some(id) {
            // The slab was full and is now usable. The slab with the lowest address is used first.
            let current = bin.current.and_then(|current| Some((self.slabs.get(current as usize)?.address, current)));
            match current {
                Some((above, current)) if above > address => {
                    if self.slabs.get(current as usize).is_some_and(|slab| slab.free.iter().any(|word| *word != 0)) {
                        bin.partial.insert((above, current));
                    }
                    bin.current = Some(id);
                }
                _ => drop(bin.partial.insert((address, id))),
            }
        }
    }

    /// Returns the longest-cached blocks to their arenas until `left` blocks remain.
    fn flush(&mut self, class: usize, left: usize, acts: &mut Acts) {
        let Some(cached) = self.caches.get_mut(self.thread).and_then(|cache| cache.bins.get_mut(class)) else { return };
        let count = cached.blocks.len().saturating_sub(left);
        let old: Vec<Place> = cached.blocks.drain(..count).collect();
        cached.low = cached.low.min(left);
        acts.add(Act::Flushed, old.len() as u64);
        old.into_iter().for_each(|place| self.give_block(place, acts));
    }

    /// Performs a collection step, which returns three quarters of the unused blocks of one class to their arenas.
    #[cold]
    fn collect(&mut self, acts: &mut Acts) {
        let Some(cache) = self.caches.get_mut(self.thread) else { return };
        let class = cache.next;
        cache.next = (class + 1) % cache.bins.len().max(1);
        let most = self.most.get(class).copied().unwrap_or(0);
        let Some(cached) = cache.bins.get_mut(class) else { return };
        let (low, length) = (cached.low, cached.blocks.len());
        if low > 0 {
            if most >> (cached.divide + 1) >= 1 {
                cached.divide += 1;
            }
            self.flush(class, length - (low - (low >> 2)), acts);
        } else if cached.refilled {
            cached.divide = cached.divide.saturating_sub(1).max(1);
            cached.refilled = false;
        }
        if let Some(cached) = self.caches.get_mut(self.thread).and_then(|cache| cache.bins.get_mut(class)) {
            cached.low = cached.blocks.len();
        }
    }

    /// Counts bytes towards the next collection.
    #[inline]
    fn pass(&mut self, which: usize, bytes: u64, acts: &mut Acts) {
        let Some(cache) = self.caches.get_mut(self.thread) else { return };
        let Some(passed) = cache.bytes.get_mut(which) else { return };
        *passed += bytes;
        if *passed >= COLLECT {
            *passed = 0;
            self.collect(acts);
        }
    }

    /// Refills the cache of a class and returns the first block.
    #[cold]
    fn fill(&mut self, class: usize, acts: &mut Acts) -> Option<Place> {
        let arena = self.arena();
        // Large blocks are taken one at a time.
        let most = if class < self.slabs_of.len() { self.most.get(class).copied().unwrap_or(0) } else { 0 };
        let cached = self.caches.get_mut(self.thread)?.bins.get_mut(class)?;
        (cached.low, cached.refilled) = (0, true);
        let count = (most >> cached.divide).max(1);
        let mut blocks = Vec::with_capacity(count);
        while blocks.len() < count
            && let Some(block) = self.take_block(arena, class, acts)
        {
            blocks.push(block);
        }
        let cached = self.caches.get_mut(self.thread)?.bins.get_mut(class)?;
        // The lowest block is used first.
        cached.blocks.extend(blocks.into_iter().rev());
        cached.blocks.pop()
    }

    /// Counts the pages that a block touches.
    #[inline]
    fn touch(&mut self, place: Place, size: u64) {
        self.touched = place.address;
        if Mapped::has(place) {
            return;
        }
        let arena = usize::try_from(place.address / ARENA).unwrap_or(0);
        let Some(of) = self.arenas.get_mut(arena) else { return };
        let held = of.runs.pages.bytes();
        of.runs.pages.touch(place.address % ARENA, size);
        self.held = self.held + of.runs.pages.bytes() - held;
    }

    /// Tries to move a block to another class in place. Returns whether it succeeded.
    fn stays(&mut self, place: Place, from: usize, to: usize, size: u64, acts: &mut Acts) -> bool {
        let oversize = |class: usize| self.classes.size(class) >= self.settings.oversize;
        if oversize(from) || oversize(to) {
            return oversize(from) && oversize(to);
        }
        if from != to {
            let (small, bytes, clock) = (self.slabs_of.len(), self.classes.size(to), self.clock);
            if from < small || to < small {
                return false;
            }
            let arena = usize::try_from(place.address / ARENA).unwrap_or(0);
            let run = place.block & !EXTENT;
            if self.recount(arena, |runs| runs.resize(run, bytes.div_ceil(PAGE) + 1, clock, acts)).is_none() {
                return false;
            }
        }
        self.touch(place, size);
        true
    }

    fn find(&mut self, class: usize, size: u64, acts: &mut Acts) -> Option<Place> {
        if class >= self.most.len() {
            if self.classes.size(class) >= self.settings.oversize {
                acts.note(Act::Sbrk);
                return self.mapped.map(size);
            }
            return self.take_block(self.arena(), class, acts);
        }
        let cached = self.caches.get_mut(self.thread)?.bins.get_mut(class)?;
        let Some(place) = cached.blocks.pop() else { return self.fill(class, acts) };
        acts.note(Act::Unlinked);
        cached.low = cached.low.min(cached.blocks.len());
        Some(place)
    }
}

/// Returns the numbers of pages and regions of the smallest slab that has no remainder.
fn slab(size: u64, least: u64) -> (u64, u64) {
    let mut bytes = least.next_multiple_of(PAGE);
    while !bytes.is_multiple_of(size) && bytes / size < REGIONS {
        bytes += PAGE;
    }
    (bytes / PAGE, (bytes / size).clamp(1, REGIONS))
}

impl Allocator for Jemalloc {
    fn name(&self) -> String {
        let JemallocSettings { arenas, tcache, tcache_max, decay, steps, slab, oversize } = self.settings;
        format!(
            "jemalloc:arenas={arenas}:tcache={tcache}:tcache_max={tcache_max}:decay={decay}:steps={steps}:slab={slab}:oversize={oversize}"
        )
    }

    fn switch_to(&mut self, thread: usize) {
        self.thread = thread % super::THREADS;
        let settings = RunSettings {
            fit: Fit::First,
            unit: 512,
            regions: true,
            header: 0,
            merged: LARGE / PAGE,
            delay: if self.settings.decay == 0 { 0 } else { u64::MAX },
            decay: self.settings.decay,
        };
        while self.arenas.len() <= self.arena() {
            let bins = (0..self.slabs_of.len()).map(|_| Bin::default()).collect();
            self.arenas.push(Arena { runs: Runs::new(settings, ARENA), bins });
        }
        while self.caches.len() <= self.thread {
            let bins = (0..self.most.len()).map(|_| Cached { divide: 1, ..Cached::default() }).collect();
            self.caches.push(Cache { bins, ..Cache::default() });
        }
    }

    fn at(&mut self, time: u64, acts: &mut Acts) {
        let arena = self.arena();
        self.recount(arena, |runs| {
            runs.at(time, acts);
            Some(())
        });
    }

    fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
        self.clock += 1;
        let class = self.classes.of(size)?;
        let place = self.find(class, size, acts)?;
        self.touch(place, size);
        self.pass(0, self.classes.size(class), acts);
        Some(place)
    }

    /// Resizes in place if the class is unchanged or if a large block has room above. Otherwise, moves the object and
    /// frees the old block after the copy.
    fn reallocate(&mut self, place: Place, old: u64, size: u64, acts: &mut Acts) -> Option<Place> {
        if let (Some(from), Some(to)) = (self.classes.of(old), self.classes.of(size))
            && self.stays(place, from, to, size, acts)
        {
            return if Mapped::has(place) { self.mapped.remap(place, size) } else { Some(place) };
        }
        let new = self.allocate(size, acts);
        self.free(place, old, acts);
        new
    }

    fn free(&mut self, place: Place, size: u64, acts: &mut Acts) {
        self.clock += 1;
        self.touched = place.address;
        if Mapped::has(place) {
            acts.note(Act::Returned);
            self.mapped.unmap(place);
            return;
        }
        let Some(class) = self.classes.of(size) else { return };
        let Some(&most) = self.most.get(class) else { return self.give_block(place, acts) };
        let full = |cached: &Cached| cached.blocks.len() >= most;
        let bins = self.caches.get(self.thread).and_then(|cache| cache.bins.get(class));
        if bins.is_some_and(full) {
            self.flush(class, most / 2, acts);
        }
        if let Some(cached) = self.caches.get_mut(self.thread).and_then(|cache| cache.bins.get_mut(class)) {
            cached.blocks.push(place);
            acts.note(Act::Inserted);
        }
        self.pass(1, self.classes.size(class), acts);
    }

    fn heap(&self) -> u64 {
        self.heap + self.mapped.bytes()
    }

    fn reserves(&self) -> bool {
        true
    }

    fn held(&self) -> u64 {
        self.held + self.mapped.bytes() + self.records * RECORD
    }

    fn end(&self) -> u64 {
        ADDRESS_SPACE
    }

    fn check_touched(&self) -> Result<(), String> {
        let full = |cache: &Cache| cache.bins.iter().zip(&self.most).any(|(cached, most)| cached.blocks.len() > *most);
        if self.caches.get(self.thread).is_some_and(full) {
            return Err("a cache has too many blocks".to_owned());
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let (mut heap, mut held) = (0, 0);
        for (n, of) in self.arenas.iter().enumerate() {
            of.runs.check()?;
            heap += of.runs.heap();
            held += of.runs.pages.bytes();
            for bin in &of.bins {
                for (address, id) in &bin.partial {
                    let slab = self.slabs.get(*id as usize).ok_or("no such slab")?;
                    let free: u64 = slab.free.iter().map(|word| u64::from(word.count_ones())).sum();
                    let regions = self.slabs_of.get(slab.class).map_or(0, |(_, regions)| *regions);
                    if slab.address != *address || free + slab.used != regions || free == 0 || slab.used == 0 {
                        let used = slab.used;
                        return Err(format!(
                            "arena {n}: {free} free and {used} used of {regions} regions at {address}"
                        ));
                    }
                }
            }
        }
        if (heap, held) != (self.heap, self.held) {
            return Err(format!(
                "the arenas have {heap} bytes and hold {held}, but {} and {} were counted",
                self.heap, self.held
            ));
        }
        self.mapped.check()
    }
}
