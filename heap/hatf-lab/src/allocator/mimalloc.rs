//! MIMALLOC: pages of blocks of one size, each with its own free lists, as in mimalloc 2.0.
//!
//! Sources: Leijen, Zorn, de Moura, "Mimalloc: Free List Sharding in Action" (MSR-TR-2019-18); mimalloc 2.0.9's
//! `types.h` for sizes, `page.c` for choosing and extending pages, and `segment.c` for runs of slices. A thread has 32
//! MiB segments cut into 64 KiB slices. A page is one slice (blocks up to 16 KiB), eight slices (up to 128 KiB), or as
//! many as a larger block needs. A page links only a few blocks at a time, so blocks that are never used are not
//! touched. The file is long because heaps, pages and blocks call each other; independent parts are in `runs.rs` and
//! `classes.rs`.
//!
//! Not modelled: alignment, segments adopted by other threads, and metadata other than a segment's header.

use std::collections::VecDeque;

use super::classes::Classes;
use super::mapped::Mapped;
use super::runs::{Fit, RunSettings, Runs};
use super::{ADDRESS_SPACE, Act, Acts, Allocator, PAGE, Place};

/// Settings from environment variables, and constants of mimalloc. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MimallocSettings {
    /// The number of calls of a thread after which free slices are returned to the system; 0 means immediately. This is
    /// `MIMALLOC_DECOMMIT_DELAY` (2.1: `MIMALLOC_PURGE_DELAY`), 25 ms by default, converted to calls of 25 ns each.
    pub purge: u64,
    /// Bytes per slice, which is also the page size of small blocks. In mimalloc this is the constant 64 KiB.
    pub page: u64,
    /// Size classes per doubling. In mimalloc this is the constant 4.
    pub steps: u64,
    /// The number of bytes in the blocks that a page links in one batch. In mimalloc this is the constant 4096.
    pub extend: u64,
}

impl Default for MimallocSettings {
    fn default() -> Self {
        Self { purge: 1_000_000, page: 64 << 10, steps: 4, extend: 4096 }
    }
}

/// Slices per segment.
const SEGMENT: u64 = 512;
/// Slices per page of medium blocks.
const MEDIUM: u64 = 8;
/// The page size divided by the size of the largest block that the page can hold.
const BLOCKS: u64 = 4;
/// The minimum number of blocks that a page links in one batch.
const EXTEND: u64 = 4;
/// The number of searches for which an empty page is retained if it is the only page of its size. Pages of large blocks
/// are retained for a quarter as many searches.
const RETIRE: u32 = 8;
/// Bytes of address space per thread.
const THREAD: u64 = 1 << 38;

/// A page of blocks of one size.
#[derive(Debug)]
struct Page {
    run: u32,
    owner: usize,
    class: usize,
    address: u64,
    block: u64,
    /// Numbers of the free blocks.
    free: Vec<u32>,
    /// Numbers of the blocks that the owner has freed but that are not in `free` yet.
    local: Vec<u32>,
    /// Numbers of the blocks that other threads have freed and that have not been collected yet.
    remote: Vec<u32>,
    used: u64,
    capacity: u64,
    reserved: u64,
    full: bool,
    retire: u32,
}

#[derive(Debug)]
struct Heap {
    runs: Runs,
    /// Pages of each class that are not full, in search order.
    queues: Vec<VecDeque<u32>>,
    /// Classes with an empty page that is to be freed unless it is reused.
    retired: Vec<usize>,
    clock: u64,
}

/// Leijen's allocator.
///
/// # Examples
///
/// A segment reserves 32 MiB, but only the pages in use are held:
///
/// ```
/// use hatf_lab::allocator::{Acts, Allocator, Mimalloc, MimallocSettings};
///
/// let (mut mimalloc, mut acts) = (Mimalloc::new(MimallocSettings::default()), Acts::default());
/// mimalloc.switch_to(0);
/// let addresses = [1_000, 1_024].map(|size| mimalloc.allocate(size, &mut acts).map(|place| place.address));
/// assert_eq!(addresses, [Some(65_536), Some(65_536 + 1_024)]);
/// assert_eq!((mimalloc.heap(), mimalloc.held()), (32 << 20, 4_096));
/// ```
#[derive(Debug)]
pub struct Mimalloc {
    settings: MimallocSettings,
    classes: Classes,
    pages: Vec<Page>,
    spare: Vec<u32>,
    heaps: Vec<Heap>,
    mapped: Mapped,
    thread: usize,
    heap: u64,
    held: u64,
    touched: u32,
}

impl Mimalloc {
    /// Creates an empty heap.
    #[must_use]
    pub fn new(settings: MimallocSettings) -> Self {
        // The smallest classes are the multiples of a word. Above 8 bytes, only multiples of 16 remain, because larger
        // blocks are aligned to 16 bytes.
        let mut sizes = Classes::geometric(8, 2 * settings.steps, 16 * settings.steps);
        sizes.retain(|size| *size == 8 || size.is_multiple_of(16));
        let mut base = 16 * settings.steps;
        while base < settings.page * MEDIUM / BLOCKS {
            sizes.extend((1..=settings.steps).map(|n| base + n * (base / settings.steps)));
            base *= 2;
        }
        Self {
            settings,
            classes: Classes::new(sizes),
            pages: Vec::new(),
            spare: Vec::new(),
            heaps: Vec::new(),
            mapped: Mapped::new(),
            thread: 0,
            heap: 0,
            held: 0,
            touched: u32::MAX,
        }
    }

    /// Runs `work` on a thread's heap and updates the totals of held memory.
    fn recount<T>(&mut self, owner: usize, work: impl FnOnce(&mut Heap) -> Option<T>) -> Option<T> {
        let of = self.heaps.get_mut(owner)?;
        let (heap, held) = (of.runs.heap(), of.runs.pages.bytes());
        let result = work(of);
        self.heap = self.heap + of.runs.heap() - heap;
        self.held = self.held + of.runs.pages.bytes() - held;
        result
    }

    /// Creates a page for blocks of a size. A class past the last one denotes a block with its own page.
    #[cold]
    fn new_page(&mut self, class: usize, block: u64, acts: &mut Acts) -> Option<u32> {
        let slice = self.settings.page;
        let slices = match block {
            _ if class >= self.classes.len() => block.div_ceil(slice),
            _ if block <= slice / BLOCKS => 1,
            _ => MEDIUM,
        };
        let owner = self.thread;
        let run = self.recount(owner, |heap| heap.runs.take(slices * slice / PAGE, acts))?;
        let address = self.heaps.get(owner)?.runs.address(run) + owner as u64 * THREAD;
        let page = Page {
            run,
            owner,
            class,
            address,
            block,
            free: Vec::new(),
            local: Vec::new(),
            remote: Vec::new(),
            used: 0,
            capacity: 0,
            reserved: (slices * slice / block).max(1),
            full: false,
            retire: 0,
        };
        let id = match self.spare.pop() {
            Some(id) => {
                *self.pages.get_mut(id as usize)? = page;
                id
            }
            None => {
                self.pages.push(page);
                u32::try_from(self.pages.len() - 1).ok()?
            }
        };
        if let Some(queue) = self.heaps.get_mut(owner)?.queues.get_mut(class) {
            queue.push_front(id);
        }
        Some(id)
    }

    /// Links the next blocks of a page, which touches them.
    fn extend(&mut self, id: u32, acts: &mut Acts) {
        let most = self.settings.extend;
        let Some(page) = self.pages.get_mut(id as usize) else { return };
        let count = (most / page.block).max(EXTEND).min(page.reserved - page.capacity);
        let (from, owner) = (page.capacity, page.owner);
        page.capacity += count;
        page.free.extend((from..from + count).rev().filter_map(|n| u32::try_from(n).ok()));
        acts.add(Act::Cut, count);
        let (address, block) = (page.address % THREAD, page.block);
        self.recount(owner, |heap| {
            (from..from + count).for_each(|n| heap.runs.pages.touch(address + n * block, 8));
            Some(())
        });
    }

    /// Retires an empty page.
    fn free_page(&mut self, id: u32, acts: &mut Acts) {
        let Some(page) = self.pages.get_mut(id as usize) else { return };
        let (run, owner, class) = (page.run, page.owner, page.class);
        (page.free, page.local, page.remote) = (Vec::new(), Vec::new(), Vec::new());
        self.spare.push(id);
        self.recount(owner, |heap| {
            if let Some(queue) = heap.queues.get_mut(class)
                && let Some(at) = queue.iter().position(|other| *other == id)
            {
                queue.remove(at);
            }
            let clock = heap.clock;
            Some(heap.runs.put(run, clock, acts))
        });
    }

    /// Makes the freed blocks of a page available. Returns whether the page has a free block.
    fn collect(page: &mut Page) -> bool {
        if !page.remote.is_empty() {
            page.used -= page.remote.len() as u64;
            page.local.append(&mut page.remote);
        }
        if page.free.is_empty() {
            std::mem::swap(&mut page.free, &mut page.local);
        }
        !page.free.is_empty()
    }

    /// Finds a page with a free block and leaves it at the front of its queue.
    #[cold]
    fn find(&mut self, class: usize, acts: &mut Acts) -> Option<u32> {
        while let Some(&id) = self.heaps.get(self.thread)?.queues.get(class)?.front() {
            acts.note(Act::Examined);
            let page = self.pages.get_mut(id as usize)?;
            if Self::collect(page) {
                page.retire = 0;
                return Some(id);
            }
            if page.capacity < page.reserved {
                self.extend(id, acts);
                return Some(id);
            }
            // Full pages are not searched again until one of their blocks is freed.
            page.full = true;
            acts.note(Act::Unlinked);
            self.heaps.get_mut(self.thread)?.queues.get_mut(class)?.pop_front();
        }
        self.collect_retired(acts);
        let id = self.new_page(class, self.classes.size(class), acts)?;
        self.extend(id, acts);
        Some(id)
    }

    /// Frees empty pages whose retention has expired.
    fn collect_retired(&mut self, acts: &mut Acts) {
        let Some(heap) = self.heaps.get_mut(self.thread) else { return };
        let (mut gone, queues) = (Vec::new(), &heap.queues);
        let pages = &mut self.pages;
        heap.retired.retain(|class| {
            let first = queues.get(*class).and_then(|queue| queue.front().copied());
            let Some(page) = first.and_then(|id| pages.get_mut(id as usize)) else { return false };
            if page.retire == 0 || page.used > 0 {
                return false;
            }
            page.retire -= 1;
            if page.retire == 0 {
                gone.extend(first);
            }
            page.retire > 0
        });
        gone.into_iter().for_each(|id| self.free_page(id, acts));
    }

    /// Counts the pages that a block touches.
    #[inline]
    fn touch(&mut self, place: Place, size: u64) {
        self.touched = place.block;
        let Some(page) = self.pages.get(place.block as usize) else { return };
        let Some(heap) = self.heaps.get_mut(page.owner) else { return };
        let held = heap.runs.pages.bytes();
        heap.runs.pages.touch(place.address % THREAD, size);
        self.held = self.held + heap.runs.pages.bytes() - held;
    }

    /// Updates the page of a freed block. A full page becomes usable again; an empty page is freed or retained.
    fn after_free(&mut self, id: u32, acts: &mut Acts) {
        let large = self.settings.page / BLOCKS;
        let Some(page) = self.pages.get_mut(id as usize) else { return };
        let (class, owner, used, block) = (page.class, page.owner, page.used, page.block);
        let Some(heap) = self.heaps.get_mut(owner) else { return };
        let Some(queue) = heap.queues.get_mut(class) else {
            // The block has its own page.
            return self.free_page(id, acts);
        };
        if std::mem::take(&mut page.full) {
            queue.push_back(id);
            acts.note(Act::Inserted);
        }
        if used > 0 || page.retire > 0 {
            return;
        }
        if queue.len() == 1 {
            page.retire = if block <= large { RETIRE } else { RETIRE / 4 };
            if !heap.retired.contains(&class) {
                heap.retired.push(class);
            }
        } else {
            self.free_page(id, acts);
        }
    }
}

impl Allocator for Mimalloc {
    fn name(&self) -> String {
        let MimallocSettings { purge, page, steps, extend } = self.settings;
        format!("mimalloc:purge={purge}:page={page}:steps={steps}:extend={extend}")
    }

    fn switch_to(&mut self, thread: usize) {
        self.thread = thread % super::THREADS;
        let slice = self.settings.page / PAGE;
        let settings = RunSettings {
            fit: Fit::Best,
            unit: SEGMENT * slice,
            regions: false,
            header: slice,
            merged: 0,
            delay: self.settings.purge,
            decay: 0,
        };
        while self.heaps.len() <= self.thread {
            let queues = vec![VecDeque::new(); self.classes.len()];
            let runs = Runs::new(settings, THREAD);
            self.heaps.push(Heap { runs, queues, retired: Vec::new(), clock: 0 });
        }
    }

    fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
        let class = self.classes.of(size).unwrap_or(usize::MAX);
        let heap = self.heaps.get_mut(self.thread)?;
        heap.clock += 1;
        let first = heap.queues.get(class).and_then(|queue| queue.front().copied());
        let ready = |id: &u32| self.pages.get(*id as usize).is_some_and(|page| !page.free.is_empty());
        let id = match first.filter(ready) {
            Some(id) => id,
            None if class < self.classes.len() => self.find(class, acts)?,
            None if size > SEGMENT / 2 * self.settings.page => {
                acts.note(Act::Sbrk);
                return self.mapped.map(size);
            }
            None => {
                let id = self.new_page(usize::MAX, size, acts)?;
                self.extend(id, acts);
                id
            }
        };
        let page = self.pages.get_mut(id as usize)?;
        let address = page.address + u64::from(page.free.pop()?) * page.block;
        page.used += 1;
        page.retire = 0;
        acts.note(Act::Unlinked);
        let place = Place { address, block: id };
        self.touch(place, size);
        Some(place)
    }

    /// Resizes in place if the new size fits and is at least half of the block. Otherwise, moves the object and frees
    /// the old block after the copy.
    fn reallocate(&mut self, place: Place, old: u64, size: u64, acts: &mut Acts) -> Option<Place> {
        let block = match Mapped::has(place) {
            true => self.mapped.size(place),
            false => self.pages.get(place.block as usize).map_or(0, |page| page.block),
        };
        if size <= block && size >= block - block / 2 && size > 0 {
            if !Mapped::has(place) {
                self.touch(place, size);
            }
            return Some(place);
        }
        let new = self.allocate(size, acts);
        self.free(place, old, acts);
        new
    }

    fn free(&mut self, place: Place, _: u64, acts: &mut Acts) {
        if Mapped::has(place) {
            acts.note(Act::Returned);
            self.mapped.unmap(place);
            return;
        }
        acts.note(Act::Inserted);
        self.touched = place.block;
        if let Some(heap) = self.heaps.get_mut(self.thread) {
            heap.clock += 1;
        }
        let Some(page) = self.pages.get_mut(place.block as usize) else { return };
        let number = u32::try_from((place.address - page.address) / page.block).unwrap_or(0);
        if page.owner == self.thread {
            page.used -= 1;
            page.local.push(number);
            if page.used == 0 || page.full {
                self.after_free(place.block, acts);
            }
        } else {
            // The owner finds the block at its next search. If the page is full or reserved for a single block, it is
            // collected immediately instead.
            page.remote.push(number);
            if page.full || page.class >= self.classes.len() {
                Self::collect(page);
                self.after_free(place.block, acts);
            }
        }
    }

    fn heap(&self) -> u64 {
        self.heap + self.mapped.bytes()
    }

    fn reserves(&self) -> bool {
        true
    }

    fn held(&self) -> u64 {
        self.held + self.mapped.bytes()
    }

    fn end(&self) -> u64 {
        ADDRESS_SPACE
    }

    fn check_touched(&self) -> Result<(), String> {
        let Some(page) = self.pages.get(self.touched as usize) else { return Ok(()) };
        let free = page.free.len() + page.local.len();
        if free > 0 && free as u64 + page.used != page.capacity || page.capacity > page.reserved {
            let (capacity, used) = (page.capacity, page.used);
            return Err(format!("the page at {} has {free} free and {used} used of {capacity} blocks", page.address));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let (mut heap, mut held) = (0, 0);
        for of in &self.heaps {
            of.runs.check()?;
            heap += of.runs.heap();
            held += of.runs.pages.bytes();
            for (class, queue) in of.queues.iter().enumerate() {
                for id in queue {
                    let page = self.pages.get(*id as usize).ok_or("no such page")?;
                    let blocks = (page.free.len() + page.local.len()) as u64 + page.used;
                    if page.class != class || page.full || blocks != page.capacity {
                        return Err(format!("the page at {} is listed and has {blocks} blocks", page.address));
                    }
                }
            }
        }
        if (heap, held) != (self.heap, self.held) {
            return Err(format!(
                "the heaps have {heap} bytes and hold {held}, but {} and {} were counted",
                self.heap, self.held
            ));
        }
        self.mapped.check()
    }
}
