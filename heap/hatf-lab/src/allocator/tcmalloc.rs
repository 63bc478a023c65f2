//! TCMALLOC: spans, central lists and per-thread caches, as in gperftools 2.10. (Google's later allocator of the same
//! name has per-CPU caches.)
//!
//! Sources: Ghemawat, Menage, "TCMalloc: Thread-Caching Malloc" (gperftools' `docs/tcmalloc.html`); `common.cc` for
//! size classes and batches, `thread_cache.cc` for list lengths, `central_freelist.cc`, and `page_heap.cc` for runs of
//! pages. The file is long because caches, central lists and spans call each other; independent parts are in `runs.rs`
//! and `classes.rs`.
//!
//! Not modelled: alignment, stealing between caches, thread exit, and the allocator's own metadata. Of several runs of
//! equal length, the lowest is used instead of the most recently freed.

use super::classes::Classes;
use super::runs::{Fit, RunSettings, Runs};
use super::{ADDRESS_SPACE, Act, Acts, Allocator, PAGE, Place};

/// Settings from environment variables, and two constants of gperftools. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcmallocSettings {
    /// Total bytes of all caches (`TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES`).
    pub caches: u64,
    /// The maximum number of blocks that move between a cache and a central list in one batch
    /// (`TCMALLOC_TRANSFER_NUM_OBJ`).
    pub batch: u64,
    /// The rate at which pages are returned to the system (`TCMALLOC_RELEASE_RATE`). One run is returned per 1000 /
    /// `release` pages freed, and none if the rate is 0.
    pub release: u64,
    /// Whether a free run is returned to the system immediately (`TCMALLOC_AGGRESSIVE_DECOMMIT`); 1 means yes.
    pub aggressive: u64,
    /// Bytes per allocator page, which is the constant 8 KiB in gperftools.
    pub page: u64,
}

impl Default for TcmallocSettings {
    fn default() -> Self {
        Self { caches: 32 << 20, batch: 32, release: 1, aggressive: 0, page: 8192 }
    }
}

/// The largest size class.
const LARGEST: u64 = 256 << 10;
/// The initial capacity of a cache and the amount by which a full cache grows, in bytes.
const STEP: u64 = 64 << 10;
/// The initial capacity of a cache if no bytes are left to claim.
const LEAST_CACHE: u64 = 512 << 10;
/// The maximum length of a cache's list.
const LONGEST: usize = 8192;
/// The number of times that a list may exceed its current maximum length before the maximum is reduced.
const OVERAGES: u32 = 3;
/// The initial number of complete batches that a central list can hold.
const SLOTS: usize = 16;
/// The maximum number of complete batches in a central list.
const MOST_SLOTS: u64 = 64;
/// The maximum number of bytes in these batches.
const SLOT_BYTES: u64 = 1 << 20;
/// Flag of a block that occupies an entire run instead of a slot in a span.
const RUN: u32 = 1 << 31;

/// A size class, with the pages per span, the blocks per batch, and the maximum number of batches in the central list.
#[derive(Clone, Copy, Debug)]
struct Class {
    pages: u64,
    batch: usize,
    slots: usize,
}

/// Blocks of one class.
#[derive(Debug)]
struct Span {
    run: u32,
    class: usize,
    address: u64,
    free: Vec<u64>,
    used: u64,
    /// The index of the span in its class's list of spans with free blocks.
    at: usize,
}

/// The central list of a class, which contains complete batches and spans with free blocks. The last span is used
/// first.
#[derive(Debug, Default)]
struct Central {
    slots: Vec<Vec<Place>>,
    /// The current maximum number of batches.
    size: usize,
    spans: Vec<u32>,
}

/// The blocks of a class in a cache.
#[derive(Debug)]
struct List {
    blocks: Vec<Place>,
    /// The minimum length of the list since the last scavenge.
    low: usize,
    longest: usize,
    overages: u32,
}

#[derive(Debug)]
struct Cache {
    lists: Vec<List>,
    bytes: u64,
    most: u64,
}

/// Ghemawat and Menage's allocator.
///
/// # Examples
///
/// A span is filled with blocks of one class:
///
/// ```
/// use hatf_lab::allocator::{Acts, Allocator, Tcmalloc, TcmallocSettings};
///
/// let (mut tcmalloc, mut acts) = (Tcmalloc::new(TcmallocSettings::default()), Acts::default());
/// tcmalloc.switch_to(0);
/// let mut address = |size| tcmalloc.allocate(size, &mut acts).map(|place| place.address);
/// let (one, two) = (address(100), address(112));
/// assert_eq!(two.zip(one).map(|(two, one)| two - one), Some(112));
/// assert_eq!(tcmalloc.held(), 8_192);
/// ```
#[derive(Debug)]
pub struct Tcmalloc {
    settings: TcmallocSettings,
    classes: Classes,
    of: Vec<Class>,
    central: Vec<Central>,
    /// The class from which the next batch slot is taken.
    next: usize,
    spans: Vec<Span>,
    spare: Vec<u32>,
    caches: Vec<Cache>,
    /// Bytes that caches may still claim.
    unclaimed: u64,
    runs: Runs,
    thread: usize,
    clock: u64,
    /// The number of pages that must be freed before the next run is returned to the system.
    wait: i64,
}

/// Returns the block sizes of the classes, and the classes. At most an eighth of a span is left over after its last
/// block.
fn classes(settings: &TcmallocSettings) -> (Vec<u64>, Vec<Class>) {
    let (mut sizes, mut of): (Vec<u64>, Vec<Class>) = (Vec::new(), Vec::new());
    let mut size = 8;
    while size <= LARGEST {
        let alignment = match size {
            128.. => ((1 << size.ilog2()) / 8).min(settings.page),
            16.. => 16,
            _ => 8,
        };
        let batch = ((64 << 10) / size).clamp(2, settings.batch.max(2));
        let mut bytes = settings.page;
        while bytes % size > bytes >> 3 || bytes / size < batch / 4 {
            bytes += settings.page;
        }
        let slots = (SLOT_BYTES / (size * batch)).clamp(1, MOST_SLOTS);
        let batch = usize::try_from(batch).unwrap_or(2);
        let class = Class { pages: bytes / PAGE, batch, slots: usize::try_from(slots).unwrap_or(1) };
        match (sizes.last_mut(), of.last_mut()) {
            // A span holds the same number of blocks of either size, so replace the smaller class with the larger one.
            (Some(last), Some(before)) if before.pages == class.pages && bytes / *last == bytes / size => {
                (*last, *before) = (size, class);
            }
            _ => {
                sizes.push(size);
                of.push(class);
            }
        }
        size += alignment;
    }
    (sizes, of)
}

impl Tcmalloc {
    /// Creates an empty heap.
    #[must_use]
    pub fn new(settings: TcmallocSettings) -> Self {
        let (sizes, of) = classes(&settings);
        let delay = if settings.aggressive == 1 { 0 } else { u64::MAX };
        let unit = (1 << 20) / PAGE;
        let runs = RunSettings { fit: Fit::Best, unit, regions: false, header: 0, merged: 0, delay, decay: 0 };
        Self {
            settings,
            classes: Classes::new(sizes),
            central: of.iter().map(|of| Central { size: SLOTS.min(of.slots), ..Central::default() }).collect(),
            next: 0,
            of,
            spans: Vec::new(),
            spare: Vec::new(),
            caches: Vec::new(),
            unclaimed: settings.caches,
            runs: Runs::new(runs, ADDRESS_SPACE),
            thread: 0,
            clock: 0,
            wait: 0,
        }
    }

    /// Finds a block without touching its pages.
    #[inline]
    fn find(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
        self.clock += 1;
        match self.classes.of(size) {
            Some(class) => {
                let of = self.classes.size(class);
                let cache = self.caches.get_mut(self.thread)?;
                let list = cache.lists.get_mut(class)?;
                match list.blocks.pop() {
                    Some(place) => {
                        acts.note(Act::Unlinked);
                        list.low = list.low.min(list.blocks.len());
                        cache.bytes -= of;
                        Some(place)
                    }
                    None => self.fill(class, acts),
                }
            }
            None => {
                let pages = size.checked_next_multiple_of(self.settings.page)? / PAGE;
                let run = self.runs.take(pages, acts).filter(|run| *run < RUN)?;
                Some(Place { address: self.runs.address(run), block: RUN | run })
            }
        }
    }

    /// Returns the class of a block, or `None` if the block occupies an entire run.
    #[inline]
    fn class(&self, place: Place) -> Option<usize> {
        if place.block & RUN != 0 { None } else { self.spans.get(place.block as usize).map(|span| span.class) }
    }

    /// Frees a run and returns some runs to the system, depending on the number of freed pages.
    fn put(&mut self, run: u32, acts: &mut Acts) {
        let pages = self.runs.bytes(run) / self.settings.page;
        self.runs.put(run, self.clock, acts);
        if self.settings.release == 0 || self.settings.aggressive == 1 {
            return;
        }
        self.wait -= i64::try_from(pages).unwrap_or(i64::MAX);
        if self.wait < 0 {
            let oldest = self.runs.oldest();
            let given = oldest.map_or(0, |run| self.runs.give_back(run, acts)) * PAGE / self.settings.page;
            let wait = if given == 0 { 1 << 18 } else { (given * 1000 / self.settings.release).min(1 << 20) };
            self.wait = i64::try_from(wait).unwrap_or(0);
        }
    }

    /// Creates a span for a class and links all of its blocks, which touches them.
    #[cold]
    fn populate(&mut self, class: usize, acts: &mut Acts) -> Option<u32> {
        let size = self.classes.size(class);
        let run = self.runs.take(self.of.get(class)?.pages, acts)?;
        let (address, bytes) = (self.runs.address(run), self.runs.bytes(run));
        let free: Vec<u64> = (0..bytes / size).rev().map(|n| address + n * size).collect();
        free.iter().for_each(|block| self.runs.pages.touch(*block, 8));
        acts.add(Act::Cut, free.len() as u64);
        let central = self.central.get_mut(class)?;
        let span = Span { run, class, address, free, used: 0, at: central.spans.len() };
        let id = match self.spare.pop() {
            Some(id) => {
                *self.spans.get_mut(id as usize)? = span;
                id
            }
            None => {
                self.spans.push(span);
                u32::try_from(self.spans.len() - 1).ok().filter(|id| *id < RUN)?
            }
        };
        central.spans.push(id);
        Some(id)
    }

    /// Takes blocks of a class from its central list.
    fn fetch(&mut self, class: usize, count: usize, acts: &mut Acts) -> Vec<Place> {
        let batch = self.of.get(class).map_or(1, |of| of.batch);
        if count == batch
            && let Some(slot) = self.central.get_mut(class).and_then(|central| central.slots.pop())
        {
            return slot;
        }
        let mut blocks = Vec::with_capacity(count);
        while blocks.len() < count {
            let last = self.central.get(class).and_then(|central| central.spans.last().copied());
            let id = match last {
                Some(id) => id,
                // Create a new span only for the first block.
                None if blocks.is_empty() => match self.populate(class, acts) {
                    Some(id) => id,
                    None => break,
                },
                None => break,
            };
            let Some(span) = self.spans.get_mut(id as usize) else { break };
            let some = span.free.len().min(count - blocks.len());
            let taken = span.free.drain(span.free.len() - some..).rev();
            blocks.extend(taken.map(|address| Place { address, block: id }));
            span.used += some as u64;
            acts.add(Act::Unlinked, some as u64);
            if span.free.is_empty() {
                self.unlist(id);
            }
        }
        blocks
    }

    /// Removes a span from its class's list.
    fn unlist(&mut self, id: u32) {
        let Some(span) = self.spans.get(id as usize) else { return };
        let Some(central) = self.central.get_mut(span.class) else { return };
        let at = span.at;
        if at + 1 == central.spans.len() {
            central.spans.pop();
        } else if at < central.spans.len() {
            central.spans.swap_remove(at);
            if let Some(moved) = central.spans.get(at).and_then(|id| self.spans.get_mut(*id as usize)) {
                moved.at = at;
            }
        }
    }

    /// Returns blocks to their central list. A complete batch is kept together if there is a slot for it.
    fn release(&mut self, class: usize, blocks: Vec<Place>, acts: &mut Acts) {
        let Some(of) = self.of.get(class).copied() else { return };
        acts.add(Act::Flushed, blocks.len() as u64);
        if blocks.len() == of.batch
            && self.make_room(class, of.slots, acts)
            && let Some(central) = self.central.get_mut(class)
        {
            central.slots.push(blocks);
            return;
        }
        self.give_spans(blocks, acts);
    }

    /// Makes room for a batch, if necessary by taking a slot from another class. Prefers an empty slot to a full one.
    fn make_room(&mut self, class: usize, most: usize, acts: &mut Acts) -> bool {
        let Some(central) = self.central.get(class) else { return false };
        if central.slots.len() < central.size {
            return true;
        }
        if central.size >= most || !(self.evict(class, false, acts) || self.evict(class, true, acts)) {
            return false;
        }
        if let Some(central) = self.central.get_mut(class) {
            central.size += 1;
        }
        true
    }

    /// Takes a slot from the next class in turn. Takes a full slot only if `force` is set.
    fn evict(&mut self, class: usize, force: bool, acts: &mut Acts) -> bool {
        let from = self.next % self.central.len().max(1);
        self.next = from + 1;
        let Some(central) = self.central.get_mut(from).filter(|central| from != class && central.size > 0) else {
            return false;
        };
        let full = central.slots.len() == central.size;
        if full && !force {
            return false;
        }
        central.size -= 1;
        if full && let Some(blocks) = central.slots.pop() {
            self.give_spans(blocks, acts);
        }
        true
    }

    /// Returns blocks to their spans.
    fn give_spans(&mut self, blocks: Vec<Place>, acts: &mut Acts) {
        for Place { address, block } in blocks {
            let Some(span) = self.spans.get_mut(block as usize) else { continue };
            acts.note(Act::Inserted);
            if span.free.is_empty()
                && let Some(central) = self.central.get_mut(span.class)
            {
                span.at = central.spans.len();
                central.spans.push(block);
            }
            span.free.push(address);
            span.used -= 1;
            if span.used == 0 {
                span.free = Vec::new();
                let run = span.run;
                self.unlist(block);
                self.spare.push(block);
                self.put(run, acts);
            }
        }
    }

    /// Removes blocks from a cache list, most recently cached first.
    fn shorten(&mut self, class: usize, count: usize, acts: &mut Acts) {
        let batch = self.of.get(class).map_or(1, |of| of.batch);
        let size = self.classes.size(class);
        let mut left = count;
        while left > 0 {
            let Some(cache) = self.caches.get_mut(self.thread) else { return };
            let Some(list) = cache.lists.get_mut(class) else { return };
            let some = left.min(batch).min(list.blocks.len());
            let blocks = list.blocks.split_off(list.blocks.len() - some);
            list.low = list.low.min(list.blocks.len());
            cache.bytes = cache.bytes.saturating_sub(size * some as u64);
            self.release(class, blocks, acts);
            if some == 0 {
                return;
            }
            left -= some;
        }
    }

    /// Returns half of the unused blocks of each list.
    #[cold]
    fn scavenge(&mut self, acts: &mut Acts) {
        for class in 0..self.of.len() {
            let batch = self.of.get(class).map_or(1, |of| of.batch);
            let Some(list) = self.caches.get_mut(self.thread).and_then(|cache| cache.lists.get_mut(class)) else {
                return;
            };
            if list.low > 0 {
                let count = (list.low / 2).max(1);
                if list.longest > batch {
                    list.longest = (list.longest - batch).max(batch);
                }
                self.shorten(class, count, acts);
            }
            if let Some(list) = self.caches.get_mut(self.thread).and_then(|cache| cache.lists.get_mut(class)) {
                list.low = list.blocks.len();
            }
        }
        if let Some(cache) = self.caches.get_mut(self.thread)
            && self.unclaimed >= STEP
        {
            self.unclaimed -= STEP;
            cache.most += STEP;
        }
    }

    /// Refills an empty cache list and returns the first block.
    #[cold]
    fn fill(&mut self, class: usize, acts: &mut Acts) -> Option<Place> {
        let batch = self.of.get(class)?.batch;
        let longest = self.caches.get(self.thread)?.lists.get(class)?.longest;
        let mut blocks = self.fetch(class, longest.min(batch), acts);
        let size = self.classes.size(class);
        let first = if blocks.is_empty() { None } else { Some(blocks.remove(0)) };
        let cache = self.caches.get_mut(self.thread)?;
        cache.bytes += size * blocks.len() as u64;
        let list = cache.lists.get_mut(class)?;
        list.blocks.extend(blocks.into_iter().rev());
        // Allow a longer list next time: grow by one up to a batch, then by batches.
        list.longest = if longest < batch { longest + 1 } else { (longest + batch).min(LONGEST) / batch * batch };
        first
    }

    fn too_long(&mut self, class: usize, acts: &mut Acts) {
        let batch = self.of.get(class).map_or(1, |of| of.batch);
        self.shorten(class, batch, acts);
        let Some(list) = self.caches.get_mut(self.thread).and_then(|cache| cache.lists.get_mut(class)) else { return };
        if list.longest < batch {
            list.longest += 1;
        } else if list.longest > batch {
            list.overages += 1;
            if list.overages > OVERAGES {
                list.longest -= batch;
                list.overages = 0;
            }
        }
    }
}

impl Allocator for Tcmalloc {
    fn name(&self) -> String {
        let TcmallocSettings { caches, batch, release, aggressive, page } = self.settings;
        format!("tcmalloc:caches={caches}:batch={batch}:release={release}:aggressive={aggressive}:page={page}")
    }

    fn switch_to(&mut self, thread: usize) {
        self.thread = thread % super::THREADS;
        while self.caches.len() <= self.thread {
            let list = |_: &Class| List { blocks: Vec::new(), low: 0, longest: 1, overages: 0 };
            let claimed = self.unclaimed.min(STEP);
            self.unclaimed -= claimed;
            let most = if claimed > 0 { claimed } else { LEAST_CACHE };
            self.caches.push(Cache { lists: self.of.iter().map(list).collect(), bytes: 0, most });
        }
    }

    fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
        let place = self.find(size, acts)?;
        self.runs.pages.touch(place.address, size);
        Some(place)
    }

    /// Resizes in place if the new size fits and is at least half of the block. Otherwise, allocates another block, at
    /// least a quarter larger if the object grows, and frees the old one after the copy.
    fn reallocate(&mut self, place: Place, old: u64, size: u64, acts: &mut Acts) -> Option<Place> {
        let block = match self.class(place) {
            Some(class) => self.classes.size(class),
            None => self.runs.bytes(place.block & !RUN),
        };
        if size <= block && size >= block / 2 {
            self.runs.pages.touch(place.address, size);
            return Some(place);
        }
        let grown = if size > block { size.max(block + block / 4) } else { size };
        let new = self.find(grown, acts);
        if let Some(new) = new {
            self.runs.pages.touch(new.address, size);
        }
        self.free(place, old, acts);
        new
    }

    fn free(&mut self, place: Place, _: u64, acts: &mut Acts) {
        self.clock += 1;
        let Some(class) = self.class(place) else { return self.put(place.block & !RUN, acts) };
        let of = self.classes.size(class);
        let Some(cache) = self.caches.get_mut(self.thread) else { return };
        let Some(list) = cache.lists.get_mut(class) else { return };
        list.blocks.push(place);
        acts.note(Act::Inserted);
        cache.bytes += of;
        let (long, full) = (list.blocks.len() > list.longest, cache.bytes > cache.most);
        if long {
            self.too_long(class, acts);
        } else if full {
            self.scavenge(acts);
        }
    }

    fn heap(&self) -> u64 {
        self.runs.heap()
    }

    fn reserves(&self) -> bool {
        true
    }

    fn held(&self) -> u64 {
        self.runs.pages.bytes()
    }

    fn check_touched(&self) -> Result<(), String> {
        let Some(cache) = self.caches.get(self.thread) else { return Ok(()) };
        let bytes = |(list, size): (&List, &u64)| list.blocks.len() as u64 * size;
        let sum: u64 = cache.lists.iter().zip(self.classes.sizes()).map(bytes).sum();
        if sum == cache.bytes {
            Ok(())
        } else {
            Err(format!("a cache contains {sum} bytes, but {} were counted", cache.bytes))
        }
    }

    fn check(&self) -> Result<(), String> {
        for (class, central) in self.central.iter().enumerate() {
            for (at, id) in central.spans.iter().enumerate() {
                let span = self.spans.get(*id as usize).ok_or("no such span")?;
                let blocks = self.runs.bytes(span.run) / self.classes.size(class).max(1);
                let whole = span.free.len() as u64 + span.used == blocks && !span.free.is_empty();
                if !whole || (span.class, span.at) != (class, at) || span.address != self.runs.address(span.run) {
                    return Err(format!("the span at {} has {} free blocks", span.address, span.free.len()));
                }
            }
        }
        self.runs.check()
    }
}
