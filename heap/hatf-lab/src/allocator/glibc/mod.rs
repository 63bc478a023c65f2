//! GLIBC: the allocator of the GNU C library 2.36, which is Wolfram Gloger's ptmalloc, derived from Doug Lea's malloc.
//!
//! Source: `malloc/malloc.c` and `malloc/arena.c` of glibc 2.36, whose comments state the policy, and "MallocInternals"
//! in the glibc wiki. Each thread has a cache of freed chunks by size (tcache) and its own arena until the arena limit
//! is reached. An arena contains fast bins (whose chunks are not merged), an unsorted list, bins for one size each,
//! sorted bins for size ranges, and the top chunk. The top chunk grows by `brk` and is trimmed from its end. Large
//! blocks are mapped; freeing such a block raises the mapping threshold. `arena.rs` contains the arenas. This file
//! contains the rest and exceeds 400 lines because the code for caches, arenas and mappings is mutually recursive.
//!
//! Not modelled: alignment, the 64 MiB limit of each heap in a secondary arena, thread exit (caches of finished threads
//! remain), the 10,000-step limit for searching the unsorted list, and hardening.

mod arena;

use super::blocks::{Block, NONE};
use super::mapped::Mapped;
use super::{ADDRESS_SPACE, Act, Acts, Allocator, PAGE, Place};
use arena::{Arena, LARGE, LEAST, UNIT};

/// Settings of `GLIBC_TUNABLES` and `mallopt`. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlibcSettings {
    /// Cached chunks per thread and size (`glibc.malloc.tcache_count`).
    pub tcache: u64,
    /// The largest cached block (`glibc.malloc.tcache_max`).
    pub tcache_max: u64,
    /// The largest chunk size in the fast bins, including the header (`glibc.malloc.mxfast`).
    pub fast: u64,
    /// The maximum number of arenas (`glibc.malloc.arena_max`). glibc's default is 8 per core; the default here is 64.
    pub arenas: u64,
    /// The minimum size of a block that is mapped (`glibc.malloc.mmap_threshold`).
    pub mmap: u64,
    /// The size of the top chunk above which memory is returned (`glibc.malloc.trim_threshold`).
    pub trim: u64,
    /// Extra bytes to request from the system, and to keep in the top chunk when trimming (`glibc.malloc.top_pad`).
    pub pad: u64,
    /// Whether the thresholds `mmap` and `trim` rise automatically (1) or stay fixed (0). In glibc, both thresholds
    /// stay fixed if the user sets either of them.
    pub rise: u64,
}

impl Default for GlibcSettings {
    fn default() -> Self {
        let (mmap, trim, pad) = (128 << 10, 128 << 10, 128 << 10);
        Self { tcache: 7, tcache_max: 1032, fast: 128, arenas: 64, mmap, trim, pad, rise: 1 }
    }
}

/// Bytes of address space per arena.
const ARENA: u64 = 1 << 39;
/// The minimum size of a freed chunk, after merging with its neighbours, at which the fast bins are merged, too.
const MERGE_FAST: u64 = 64 << 10;
/// The maximum to which the mapping threshold rises automatically.
const MMAP_MAX: u64 = 32 << 20;
/// The maximum number of mapped blocks.
const MMAPS: u64 = 65536;
/// The number of bytes that a thread's cache occupies in its arena.
const TCACHE: u64 = 0x290;

/// Chunks cached by a thread, by size. The arena counts them as used.
#[derive(Debug, Default)]
struct Cache {
    chunks: Vec<Vec<Place>>,
}

/// The allocator of the GNU C library.
///
/// # Examples
///
/// A large block is mapped, so freeing it returns its pages to the system:
///
/// ```
/// use hatf_lab::allocator::{Acts, Allocator, Glibc, GlibcSettings};
///
/// let (mut glibc, mut acts) = (Glibc::new(GlibcSettings::default()), Acts::default());
/// glibc.switch_to(0);
/// let held = glibc.held();
/// let place = glibc.allocate(200_000, &mut acts).ok_or("the address space is full")?;
/// assert_eq!(glibc.held() - held, 200_704);
/// glibc.free(place, 200_000, &mut acts);
/// assert_eq!(glibc.held(), held);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Glibc {
    settings: GlibcSettings,
    arenas: Vec<Arena>,
    caches: Vec<Cache>,
    mapped: Mapped,
    thread: usize,
    /// The current thresholds for mapping blocks and for trimming the top.
    mmap: u64,
    trim: u64,
    heap: u64,
    held: u64,
    touched: usize,
}

impl Glibc {
    /// Creates an empty heap.
    #[must_use]
    pub fn new(settings: GlibcSettings) -> Self {
        let GlibcSettings { mmap, trim, .. } = settings;
        let mapped = Mapped::new();
        let (arenas, caches) = (Vec::new(), Vec::new());
        Self { settings, arenas, caches, mapped, thread: 0, mmap, trim, heap: 0, held: 0, touched: 0 }
    }

    /// Returns the chunk size for a request, which includes an 8-byte header and is a multiple of 16.
    #[inline]
    fn chunk(size: u64) -> Option<u64> {
        (size < ADDRESS_SPACE).then(|| ((size + 8 + 15) & !15).max(LEAST))
    }

    /// Runs `work` on an arena and updates the totals of held memory.
    fn recount(&mut self, arena: usize, work: impl FnOnce(&mut Arena) -> Option<u32>) -> Option<u32> {
        let of = self.arenas.get_mut(arena)?;
        let (heap, high) = (of.blocks.heap(), of.high.next_multiple_of(PAGE));
        let result = work(of);
        self.heap = self.heap + of.blocks.heap() - heap;
        self.held = self.held + of.high.next_multiple_of(PAGE) - high;
        self.touched = arena;
        result
    }

    /// Returns the cache list for a chunk size, if the cache has one.
    #[inline]
    fn cached(&mut self, chunk: u64) -> Option<&mut Vec<Place>> {
        let GlibcSettings { tcache, tcache_max, .. } = self.settings;
        if tcache == 0 || chunk > tcache_max + 8 {
            return None;
        }
        let at = usize::try_from((chunk - LEAST) / UNIT).ok()?;
        self.caches.get_mut(self.thread)?.chunks.get_mut(at)
    }

    /// Returns the fast bin for a chunk size.
    fn fast(&self, chunk: u64) -> Option<usize> {
        (chunk <= self.settings.fast).then(|| usize::try_from((chunk - LEAST) / UNIT).unwrap_or(0))
    }

    /// Returns the number of chunks of a size for which the cache has room.
    fn room(&mut self, chunk: u64) -> usize {
        let most = usize::try_from(self.settings.tcache).unwrap_or(usize::MAX);
        self.cached(chunk).map_or(0, |list| most.saturating_sub(list.len()))
    }

    fn place(arena: usize, of: &Arena, id: u32) -> Place {
        Place { address: arena as u64 * ARENA + of.blocks.get(id).address + UNIT, block: id }
    }

    /// Puts chunks of an arena into the cache, in order.
    fn keep(&mut self, arena: usize, chunk: u64, chunks: &[u32], acts: &mut Acts) {
        let Some(of) = self.arenas.get(arena) else { return };
        let places: Vec<Place> = chunks.iter().map(|id| Self::place(arena, of, *id)).collect();
        acts.add(Act::Inserted, places.len() as u64);
        if let Some(list) = self.cached(chunk) {
            list.extend(places);
        }
    }

    /// Models `_int_malloc`.
    fn take(&mut self, arena: usize, need: u64, acts: &mut Acts) -> Option<Place> {
        let room = self.room(need);
        if let Some(n) = self.fast(need)
            && let Some(list) = self.arenas.get_mut(arena)?.fast.get_mut(n)
            && let Some(id) = list.pop()
        {
            acts.note(Act::Unlinked);
            // The remaining chunks of this size go to the cache.
            let others: Vec<u32> = list.drain(list.len() - list.len().min(room)..).rev().collect();
            self.keep(arena, need, &others, acts);
            return self.used(arena, id);
        }
        if need < LARGE {
            if let Some((id, others)) = self.arenas.get_mut(arena)?.small(need, room, acts) {
                self.keep(arena, need, &others, acts);
                return self.used(arena, id);
            }
        } else {
            self.recount(arena, |of| {
                of.merge_fast(acts);
                None
            });
        }
        loop {
            let (found, cached) = self.arenas.get_mut(arena)?.search(need, room, acts)?;
            self.keep(arena, need, &cached, acts);
            if let Some(id) = found {
                return self.used(arena, id);
            }
            // The search has put chunks of the right size into the cache: use one of these.
            if !cached.is_empty() {
                return self.cached(need)?.pop();
            }
            if let Some(id) = self.recount(arena, |of| of.cut_top(need, acts)) {
                return self.used(arena, id);
            }
            if !self.arenas.get(arena)?.has_fast {
                if need >= self.mmap && self.mapped.blocks() < MMAPS {
                    acts.note(Act::Sbrk);
                    return self.mapped.map(need + 8);
                }
                let id = self.grow(arena, need, acts)?;
                return self.used(arena, id);
            }
            self.recount(arena, |of| {
                of.merge_fast(acts);
                None
            });
        }
    }

    fn used(&mut self, arena: usize, id: u32) -> Option<Place> {
        self.touched = arena;
        let of = self.arenas.get_mut(arena)?;
        of.touched = id;
        Some(Self::place(arena, of, id))
    }

    /// Models `sysmalloc` for an arena.
    #[cold]
    fn grow(&mut self, arena: usize, need: u64, acts: &mut Acts) -> Option<u32> {
        let (pad, first) = (self.settings.pad, arena == 0);
        self.recount(arena, |of| {
            let top = of.blocks.get(of.blocks.top_id());
            let top = if top.free { top.size } else { 0 };
            // Only the first arena is padded each time it grows. Other arenas are padded only at the start.
            let pad = if first || of.blocks.heap() == 0 { pad } else { 0 };
            let bytes = need.checked_add(LEAST + pad)?.checked_sub(top)?.checked_next_multiple_of(PAGE)?;
            of.blocks.heap().checked_add(bytes).filter(|end| *end <= ARENA)?;
            of.blocks.grow(bytes)?;
            acts.note(Act::Sbrk);
            of.cut_top(need, acts)
        })
    }

    /// Frees a chunk in its arena.
    fn give(&mut self, arena: usize, id: u32, chunk: u64, acts: &mut Acts) {
        if let Some(n) = self.fast(chunk) {
            let Some(of) = self.arenas.get_mut(arena) else { return };
            if n >= of.fast.len() {
                of.fast.resize(n + 1, Vec::new());
            }
            if let Some(list) = of.fast.get_mut(n) {
                list.push(id);
            }
            of.has_fast = true;
            of.touched = id;
            self.touched = arena;
            acts.note(Act::Inserted);
            return;
        }
        let (trim, pad) = (self.trim, self.settings.pad);
        self.recount(arena, |of| {
            if of.merge(id, acts) >= MERGE_FAST {
                of.merge_fast(acts);
                let top = of.blocks.top();
                if top.free && top.size >= trim {
                    let bytes = (top.size - LEAST - 1).saturating_sub(pad) / PAGE * PAGE;
                    if bytes > 0 {
                        of.blocks.shrink(bytes);
                        of.high = of.high.min(of.blocks.heap());
                        acts.note(Act::Returned);
                    }
                }
            }
            None
        });
    }

    fn unmap(&mut self, place: Place, acts: &mut Acts) {
        acts.note(Act::Returned);
        let bytes = self.mapped.unmap(place);
        if self.settings.rise == 1 && bytes > self.mmap && bytes <= MMAP_MAX {
            (self.mmap, self.trim) = (bytes, 2 * bytes);
        }
    }

    /// Models `_int_free`, which puts the chunk into the cache or frees it in its arena.
    fn put(&mut self, place: Place, acts: &mut Acts) {
        let arena = usize::try_from(place.address / ARENA).unwrap_or(0);
        // The chunk may be larger than requested, because a remainder too small for a chunk is not split off.
        let Some(chunk) = self.arenas.get(arena).and_then(|of| of.blocks.peek(place.block)).map(|block| block.size)
        else {
            return;
        };
        if self.room(chunk) > 0
            && let Some(list) = self.cached(chunk)
        {
            list.push(place);
            acts.note(Act::Inserted);
            return;
        }
        self.give(arena, place.block, chunk, acts);
    }

    /// Grows a used chunk in place if the top or the free chunk above has room.
    fn extend(&mut self, arena: usize, id: u32, need: u64, acts: &mut Acts) -> Option<u32> {
        self.recount(arena, |of| {
            let Block { size, above, .. } = of.blocks.get(id);
            let next = of.blocks.get(above);
            if size >= need {
                return Some(id);
            }
            if above == of.blocks.top_id() {
                of.cut_top(need - size, acts)?;
            } else if next.free && size + next.size >= need {
                of.unlink(above, acts);
            } else {
                return None;
            }
            acts.note(Act::Merged);
            of.blocks.absorb_above(id);
            of.touched = id;
            Some(id)
        })
    }

    fn arena(&self) -> usize {
        let arenas = usize::try_from(self.settings.arenas).unwrap_or(1).max(1);
        self.thread % arenas
    }
}

impl Allocator for Glibc {
    fn name(&self) -> String {
        let GlibcSettings { tcache, tcache_max, fast, arenas, mmap, trim, pad, rise } = self.settings;
        format!(
            "glibc:tcache={tcache}:tcache_max={tcache_max}:fast={fast}:arenas={arenas}:mmap={mmap}:trim={trim}:pad={pad}:rise={rise}"
        )
    }

    fn switch_to(&mut self, thread: usize) {
        // Threads above the limit share caches, so a trace cannot create an unlimited number of caches.
        self.thread = thread % super::THREADS;
        let arena = self.arena();
        while self.arenas.len() <= arena {
            self.arenas.push(Arena::new());
        }
        if self.thread >= self.caches.len() {
            self.caches.resize_with(self.thread + 1, Cache::default);
        }
        let lists = usize::try_from((self.settings.tcache_max + 8 - LEAST) / UNIT).unwrap_or(0) + 1;
        let lists = if self.settings.tcache > 0 { lists } else { 0 };
        if let Some(cache) = self.caches.get_mut(self.thread)
            && cache.chunks.len() < lists
        {
            cache.chunks = vec![Vec::new(); lists];
            // The cache itself occupies memory in the arena.
            let _ = self.take(arena, TCACHE, &mut Acts::default());
        }
    }

    fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
        let need = Self::chunk(size)?;
        if let Some(place) = self.cached(need).and_then(Vec::pop) {
            acts.note(Act::Unlinked);
            return Some(place);
        }
        self.take(self.arena(), need, acts)
    }

    fn free(&mut self, place: Place, _: u64, acts: &mut Acts) {
        if Mapped::has(place) { self.unmap(place, acts) } else { self.put(place, acts) }
    }

    /// Models `_int_realloc`, which resizes in place if there is room and frees surplus memory.
    fn reallocate(&mut self, place: Place, _: u64, size: u64, acts: &mut Acts) -> Option<Place> {
        let need = Self::chunk(size);
        if Mapped::has(place) {
            return match need {
                Some(need) => self.mapped.remap(place, need + 8),
                None => {
                    self.unmap(place, acts);
                    None
                }
            };
        }
        let arena = usize::try_from(place.address / ARENA).unwrap_or(0);
        let Some(id) = need.and_then(|need| self.extend(arena, place.block, need, acts)) else {
            let new = need.and_then(|need| self.take(arena, need, acts));
            self.put(place, acts);
            return new;
        };
        let need = need?;
        let of = self.arenas.get_mut(arena)?;
        let size = of.blocks.get(id).size;
        if size - need < LEAST {
            return Some(Place { block: id, ..place });
        }
        acts.note(Act::Split);
        let block = of.blocks.cut(id, need)?;
        let rest = Self::place(arena, of, id);
        self.put(rest, acts);
        Some(Place { block, ..place })
    }

    fn heap(&self) -> u64 {
        self.heap + self.mapped.bytes()
    }

    fn held(&self) -> u64 {
        self.held + self.mapped.bytes()
    }

    fn end(&self) -> u64 {
        ADDRESS_SPACE
    }

    fn check_touched(&self) -> Result<(), String> {
        let Some(of) = self.arenas.get(self.touched) else { return Ok(()) };
        let Block { below, above, .. } = of.blocks.get(of.touched);
        let known = [below, of.touched, above].into_iter().filter(|id| *id != NONE && of.blocks.get(*id).size > 0);
        known.into_iter().try_for_each(|id| of.blocks.check_one(id))
    }

    fn check(&self) -> Result<(), String> {
        let (mut heap, mut held) = (0, 0);
        for of in &self.arenas {
            let free = of.blocks.check_all()?;
            // The top chunk is in no list.
            let listed = free.len() - usize::from(of.blocks.top().free);
            of.bins.check(&of.blocks, listed)?;
            if of.fast.iter().flatten().any(|id| of.blocks.get(*id).free) {
                return Err("a chunk of a fast bin is merged".to_owned());
            }
            heap += of.blocks.heap();
            held += of.high.next_multiple_of(PAGE);
        }
        if (heap, held) != (self.heap, self.held) {
            return Err(format!(
                "the arenas have {heap} bytes and hold {held}, but {} and {} were counted",
                self.heap, self.held
            ));
        }
        for place in self.caches.iter().flat_map(|cache| cache.chunks.iter().flatten()) {
            let of = usize::try_from(place.address / ARENA).ok().and_then(|arena| self.arenas.get(arena));
            if of.is_none_or(|of| of.blocks.get(place.block).free) {
                return Err(format!("the cached chunk at {} is free in its arena", place.address));
            }
        }
        self.mapped.check()
    }
}
