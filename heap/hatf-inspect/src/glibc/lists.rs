//! Freed blocks that look allocated: those in fast bins and in the caches of threads.
//!
//! Since glibc 2.32, a link is stored in mangled form: combined with its own address shifted by 12 bits. A list ends with
//! 0, so its last link tells which form the version uses.

use std::cell::Cell;

use super::Thread;
use super::arenas::Arenas;
use super::chunks::{LEAST, State};
use super::{Chunk, Heap};
use crate::memory::{Memory, PAGE, Page, word, words};
use crate::{Inconsistency, Mapping, Result};

/// The distance of a block's content from its header.
const HEADER: u64 = 16;
/// Number of lists in a cache whose blocks all have the same size.
const SMALL: usize = 64;
/// Maximum number of blocks in a list of a cache.
const MOST_CACHED: usize = 1 << 16;
/// Maximum number of bytes searched for a thread's variables below its control block.
const VARIABLES: u64 = 64 << 10;
/// Maximum distance in words between a thread's pointers to its arena and to its cache.
const NEAR: usize = 16;
/// Maximum number of blocks that are examined because they may be caches of threads that have ended in a fork.
const MOST_EXAMINED: usize = 4096;

/// The layout of the cache of a thread.
#[derive(Clone, Copy)]
struct Layout {
    /// The number of bytes of a count.
    count: usize,
    lists: usize,
    /// Whether the counts are of the blocks that the list can still take.
    counts_room: bool,
}

/// Layouts of glibc 2.26 to 2.29, 2.30 to 2.41, and since 2.42.
const LAYOUTS: [Layout; 3] = [
    Layout { count: 1, lists: 64, counts_room: false },
    Layout { count: 2, lists: 64, counts_room: false },
    Layout { count: 2, lists: 76, counts_room: true },
];

impl Layout {
    fn bytes(self) -> u64 {
        (self.lists * (self.count + 8)) as u64
    }

    /// Returns whether a block of this size can contain the cache.
    fn fits(self, size: u64) -> bool {
        let least = (self.bytes() + 8).next_multiple_of(16);
        size == least || size == least + 16
    }
}

/// Marks the blocks in fast bins and caches as free.
pub(super) fn take_out(
    memory: &dyn Memory,
    mappings: &[Mapping],
    threads: &[Thread],
    found: &Arenas,
    heap: &mut Heap,
) -> Result<()> {
    let links = Links { memory, is_mangled: Cell::new(None) };
    for arena in &found.arenas {
        for (bin, first) in (0..).zip(&arena.fast) {
            let mut at = *first;
            while at != 0 {
                // Each block is marked once, so a cycle ends with an error.
                take(heap, at, LEAST + 16 * bin, State::Fast)?;
                at = links.follow(at + HEADER, 0, |to| find(heap, to).is_some())?;
            }
        }
    }
    for thread in threads {
        let cache = variables(memory, mappings, *thread)?;
        if let Some((cache, lists)) = cache_of(&links, heap, found, &cache) {
            take_cache(heap, cache, &lists)?;
        }
    }
    // A forked process has the caches of threads that only its parent has.
    let examined: Vec<u64> = heap
        .regions
        .iter()
        .flat_map(|region| &region.chunks)
        .filter(|chunk| chunk.state() == State::Live && LAYOUTS.iter().any(|layout| layout.fits(chunk.size())))
        .map(|chunk| chunk.address)
        .take(MOST_EXAMINED)
        .collect();
    for address in examined {
        if let Some(lists) = cache(&links, heap, address).filter(|lists| !lists.is_empty()) {
            take_cache(heap, address, &lists)?;
        }
    }
    Ok(())
}

/// Returns the number of the region and the number in it of the block with its header at an address.
fn find(heap: &Heap, address: u64) -> Option<(usize, usize)> {
    let region = heap.regions.partition_point(|region| region.start <= address).checked_sub(1)?;
    let chunks = &heap.regions.get(region)?.chunks;
    let chunk = chunks.binary_search_by_key(&address, |chunk| chunk.address).ok()?;
    Some((region, chunk))
}

/// Returns the live block with its header at an address.
fn live(heap: &Heap, address: u64) -> Option<Chunk> {
    let (region, chunk) = find(heap, address)?;
    heap.regions.get(region)?.chunks.get(chunk).copied().filter(|chunk| chunk.state() == State::Live)
}

/// Changes the state of a live block with this size, or with any size if it is 0.
fn take(heap: &mut Heap, address: u64, size: u64, state: State) -> Result<()> {
    let found = live(heap, address).filter(|chunk| size == 0 || chunk.size() == size);
    let chunk = found
        .and_then(|_| find(heap, address))
        .and_then(|(region, chunk)| heap.regions.get_mut(region)?.chunks.get_mut(chunk));
    let wrong =
        || Inconsistency::new(address, "a list of freed blocks contains something else, or the same block twice");
    chunk.ok_or_else(wrong)?.set_state(state);
    Ok(())
}

/// Marks a cache and the blocks in its lists.
fn take_cache(heap: &mut Heap, cache: u64, lists: &[u64]) -> Result<()> {
    take(heap, cache, 0, State::Internal)?;
    lists.iter().try_for_each(|block| take(heap, *block, 0, State::Cached))?;
    heap.caches += 1;
    Ok(())
}

/// Links between freed blocks.
struct Links<'m> {
    memory: &'m dyn Memory,
    /// Whether links are mangled, as soon as that is known.
    is_mangled: Cell<Option<bool>>,
}

impl Links<'_> {
    /// Returns the link at an address. It leads to 0 or to a block whose header is `header` bytes before it.
    fn follow(&self, at: u64, header: u64, is_block: impl Fn(u64) -> bool) -> Result<u64> {
        let stored = word(self.memory, at)?;
        let forms = [(true, stored ^ at >> 12), (false, stored)];
        let fits = |to: u64| to == 0 || to.checked_sub(header).is_some_and(&is_block);
        let known = |mangled| self.is_mangled.get().is_none_or(|known| known == mangled);
        let form = forms.into_iter().find(|(mangled, to)| known(*mangled) && fits(*to));
        let (mangled, to) = form.ok_or_else(|| Inconsistency::new(at, "a list of freed blocks leads elsewhere"))?;
        self.is_mangled.set(Some(mangled));
        Ok(to)
    }
}

/// Reads the memory below the control block of a thread, which contains the variables of the C library.
fn variables(memory: &dyn Memory, mappings: &[Mapping], thread: Thread) -> Result<Vec<u64>> {
    let end = thread.thread_pointer & !7;
    let mapping = mappings.iter().find(|mapping| end > mapping.start && end <= mapping.end && mapping.is_writable);
    let Some(mapping) = mapping.filter(|_| end != 0) else { return Ok(Vec::new()) };
    let (first, last) = (mapping.start, (end - 1) & !(PAGE - 1));
    let first = first.max(last.saturating_sub(VARIABLES));
    let states = memory.pages(first, last + PAGE);
    let states = states.map_err(|_| Inconsistency::new(first, "the page states cannot be read"))?;
    let resident = states.iter().rev().take_while(|state| **state != Page::Absent).count() as u64;
    let start = (last + PAGE).saturating_sub(PAGE * resident).min(end);
    words(memory, start, (end - start) / 8)
}

/// Finds the cache of a thread by its pointer, which is next to the thread's pointer to its arena.
fn cache_of(links: &Links<'_>, heap: &Heap, found: &Arenas, variables: &[u64]) -> Option<(u64, Vec<u64>)> {
    let is_arena = |word: &u64| found.arenas.iter().any(|arena| arena.start == *word);
    let places = variables.iter().enumerate().filter(|(_, word)| is_arena(word)).map(|(place, _)| place);
    places
        .flat_map(|place| (1..=NEAR).flat_map(move |by| [place.checked_sub(by), Some(place + by)]))
        .flatten()
        .find_map(|place| {
            let address = variables.get(place)?.checked_sub(HEADER)?;
            Some((address, cache(links, heap, address)?))
        })
}

/// Returns the blocks in the lists of a cache, or `None` if the block with its header at this address is no cache.
fn cache(links: &Links<'_>, heap: &Heap, address: u64) -> Option<Vec<u64>> {
    let size = live(heap, address)?.size();
    let known = links.is_mangled.get();
    LAYOUTS.into_iter().filter(|layout| layout.fits(size)).find_map(|layout| {
        let found = cache_with(layout, links, heap, address);
        if found.is_none() {
            links.is_mangled.set(known);
        }
        found
    })
}

/// Returns the blocks in the lists of a cache with this layout.
fn cache_with(layout: Layout, links: &Links<'_>, heap: &Heap, address: u64) -> Option<Vec<u64>> {
    let content = words(links.memory, address + HEADER, layout.bytes() / 8).ok()?;
    let mut bytes = content.iter().flat_map(|word| word.to_ne_bytes());
    let counts: Vec<usize> = (0..layout.lists)
        .map(|_| (0..layout.count).map(|place| usize::from(bytes.next().unwrap_or_default()) << (8 * place)).sum())
        .collect();
    let heads = content.get(layout.lists * layout.count / 8..)?;
    let mut blocks = Vec::new();
    let mut room = None;
    for (list, (count, head)) in counts.iter().zip(heads).enumerate() {
        let is_block = |header: u64| {
            let size = live(heap, header).map(Chunk::size);
            size.is_some_and(|size| list >= SMALL || size == LEAST + 16 * list as u64)
        };
        let (mut at, mut length) = (*head, 0);
        while at != 0 {
            let header = at.checked_sub(HEADER).filter(|header| is_block(*header))?;
            blocks.push(header);
            length += 1;
            if length > MOST_CACHED {
                return None;
            }
            at = links.follow(at, HEADER, is_block).ok()?;
        }
        // The sum of the length and the remaining room is the same for all lists.
        let is_right =
            if layout.counts_room { *room.get_or_insert(count + length) == count + length } else { *count == length };
        if !is_right {
            return None;
        }
    }
    let all = blocks.len();
    blocks.sort_unstable();
    blocks.dedup();
    (blocks.len() == all).then_some(blocks)
}
