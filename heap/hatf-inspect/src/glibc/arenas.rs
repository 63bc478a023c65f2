//! The arenas and their memory.
//!
//! The main arena is a variable of the C library. It contains the 127 list heads of free blocks, and the head of an
//! empty list contains its own address minus 16 twice. The arenas form a circular list, so the candidate from which the
//! list leads back to itself is the main arena, and the place of the lists in it tells the version's layout.

use std::collections::HashSet;

use super::chunks::{Place, Region, walk};
use crate::memory::{Memory, PAGE, Pages, Window, word, words};
use crate::{Inconsistency, Mapping, Result};

/// The number of lists of free blocks.
const LISTS: usize = 127;
/// Offsets of `top` in an arena: since 2.27, before, and since 2.43, which has no fast bins.
const TOPS: [u64; 3] = [96, 88, 8];
/// The offset of the lists after `top`.
const LISTS_AFTER: u64 = 16;
/// The offset of the pointer to the next arena after `top`.
const NEXT_AFTER: u64 = LISTS_AFTER + 16 * LISTS as u64 + 16;
/// The offset of the number of bytes from the system, and of its maximum, after `top`.
const SYSTEM_AFTER: u64 = NEXT_AFTER + 24;
/// The size of an arena after `top`.
const SIZE_AFTER: u64 = SYSTEM_AFTER + 16;
/// The number of fast bins, which precede `top`.
const FAST_BINS: u64 = 10;
/// Maximum number of arenas.
const MOST_ARENAS: usize = 1 << 16;
/// Maximum size of the variables of the C library, or of a statically linked program.
const MOST_DATA: u64 = 64 << 20;
/// Maximum size of what precedes an arena in its first heap.
const MOST_HEADER: u64 = 128;
/// The usual alignment of the heaps of an arena, and others, which depend on the size of huge pages.
const ALIGNMENTS: [u64; 8] = [64 << 20, 8 << 20, 4 << 20, 128 << 20, 1 << 20, 2 << 20, 1 << 30, 4 << 30];

/// An arena.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    pub(super) start: u64,
    pub(super) top: u64,
    /// The first block of each fast bin.
    pub(super) fast: Vec<u64>,
    /// The number of bytes from the system.
    system: u64,
}

/// The arenas of a process.
#[derive(Clone, Debug)]
pub(super) struct Arenas {
    /// The arenas; the main arena is the first.
    pub(super) arenas: Vec<Arena>,
    /// The offset of `top` in an arena.
    top: u64,
    /// The variables around the main arena.
    data: Vec<u64>,
}

/// Finds the arenas. Returns `None` if malloc was never called.
pub(super) fn find(memory: &dyn Memory, mappings: &[Mapping]) -> Result<Option<Arenas>> {
    let is_library = |mapping: &&Mapping| {
        let name = mapping.name.rsplit('/').next().unwrap_or_default();
        name.starts_with("libc.so.6") || name.starts_with("libc-2.")
    };
    let has_library = mappings.iter().any(|mapping| is_library(&mapping));
    // A statically linked program contains the variables of the C library.
    let program = mappings.iter().find(|mapping| mapping.is_file()).map(|program| &program.name);
    let is_there = |mapping: &&Mapping| if has_library { is_library(mapping) } else { Some(&mapping.name) == program };
    let mut has_heads = None;
    for mapping in mappings.iter().filter(|mapping| mapping.is_writable && mapping.is_private).filter(is_there) {
        if mapping.end - mapping.start > MOST_DATA {
            continue;
        }
        let data = words(memory, mapping.start, (mapping.end - mapping.start) / 8)?;
        for heads in candidates(&data, mapping.start) {
            has_heads = has_heads.or(Some(mapping.start));
            for top in TOPS {
                let start = heads.checked_sub(LISTS_AFTER + top).filter(|start| *start >= mapping.start);
                let found = start.and_then(|start| ring(memory, mappings, start, top));
                if let Some(arenas) = found {
                    return Ok(Some(Arenas { arenas, top, data }));
                }
            }
        }
    }
    match has_heads {
        Some(start) => Err(Inconsistency::new(start, "no arena was found among the variables of the C library")),
        None => Ok(None),
    }
}

/// Returns the addresses at which the 127 list heads can begin, so that at least one list is empty and all lists are
/// aligned.
fn candidates(data: &[u64], start: u64) -> Vec<u64> {
    let address = |index: usize| start + 8 * index as u64;
    let is_empty = |index: usize, pair: &[u64]| pair.iter().all(|word| *word == address(index).wrapping_sub(16));
    let pairs = || data.windows(2).enumerate();
    let Some((first, _)) = pairs().find(|(index, pair)| is_empty(*index, pair)) else { return Vec::new() };
    let from = (0..LISTS).filter_map(|before| first.checked_sub(2 * before));
    let is_list = |index: usize, pair: &[u64]| is_empty(index, pair) || pair.iter().all(|w| *w > PAGE && w % 16 == 0);
    let is_there = |from: &usize| {
        let heads = data.get(*from..from + 2 * LISTS).unwrap_or_default();
        !heads.is_empty() && heads.chunks_exact(2).enumerate().all(|(list, pair)| is_list(from + 2 * list, pair))
    };
    from.filter(is_there).map(address).collect()
}

/// Follows the list of arenas until it leads back to its start. Returns `None` if it does not.
fn ring(memory: &dyn Memory, mappings: &[Mapping], start: u64, top: u64) -> Option<Vec<Arena>> {
    let (mut arenas, mut seen) = (Vec::new(), HashSet::new());
    let mut at = start;
    loop {
        let is_data = |mapping: &Mapping| mapping.is_writable && mapping.contains(at);
        if !seen.insert(at) || seen.len() > MOST_ARENAS || !at.is_multiple_of(16) || !mappings.iter().any(is_data) {
            return None;
        }
        let read = words(memory, at, (top + SIZE_AFTER) / 8).ok()?;
        let word = |offset: u64| read.get(usize::try_from(offset / 8).ok()?).copied();
        let (system, most) = (word(top + SYSTEM_AFTER)?, word(top + SYSTEM_AFTER + 8)?);
        // The lowest half of the first word is the lock.
        if system > most || word(0)? & 0xffff_ffff > 2 || word(top)? == 0 {
            return None;
        }
        let fast = top
            .checked_sub(8 * FAST_BINS)
            .map(|first| (0..FAST_BINS).filter_map(|bin| word(first + 8 * bin)).collect());
        arenas.push(Arena { start: at, top: word(top)?, fast: fast.unwrap_or_default(), system });
        at = word(top + NEXT_AFTER)?;
        if at == start {
            return Some(arenas);
        }
    }
}

/// Reads the blocks of all arenas.
pub(super) fn regions(memory: &dyn Memory, mappings: &[Mapping], found: &Arenas) -> Result<Vec<Region>> {
    let mut regions = Vec::new();
    let mut alignment = None;
    for (number, arena) in found.arenas.iter().enumerate() {
        if number == 0 {
            regions.extend(main(memory, mappings, found, arena)?);
        } else {
            regions.extend(heaps(memory, found.top, arena, &mut alignment)?);
        }
    }
    Ok(regions)
}

/// Reads the blocks of the main arena.
fn main(memory: &dyn Memory, mappings: &[Mapping], found: &Arenas, arena: &Arena) -> Result<Option<Region>> {
    if arena.top == arena.start + found.top {
        // The arena has no memory yet.
        return Ok(None);
    }
    let segment = segment(mappings).filter(|(start, end)| (*start..*end).contains(&arena.top));
    let Some((start, end)) = segment else {
        return Err(Inconsistency::new(arena.top, "the main arena ends outside of the heap segment"));
    };
    let base = found.counts(mappings).map_or(start, |counts| counts.base.max(start)).next_multiple_of(16);
    let size = word(memory, arena.top.saturating_add(8))? & !super::chunks::FLAGS;
    let end = arena.top.checked_add(size).filter(|top_end| *top_end <= end);
    let end = end.ok_or_else(|| Inconsistency::new(arena.top, "the free memory of the main arena is too large"))?;
    if end.saturating_sub(base).abs_diff(arena.system) > PAGE {
        let what = format!("the main arena has {} bytes from the system, but another size", arena.system);
        return Err(Inconsistency::new(arena.start, what));
    }
    read(memory, base, base, end, Some(arena.top), Place::Main).map(Some)
}

/// Returns the bounds of the heap segment, which may consist of several mappings.
pub(super) fn segment(mappings: &[Mapping]) -> Option<(u64, u64)> {
    let mut parts = mappings.iter().filter(|mapping| mapping.name == "[heap]");
    let first = parts.next()?;
    Some((first.start, parts.fold(first.end, |end, part| if part.start == end { part.end } else { end })))
}

/// Reads the blocks of all heaps of an arena other than the main arena.
fn heaps(memory: &dyn Memory, top: u64, arena: &Arena, alignment: &mut Option<u64>) -> Result<Vec<Region>> {
    let head = |start: u64| -> Option<[u64; 4]> { words(memory, start, 4).ok()?.try_into().ok() };
    let is_heap = |start: u64, alignment: u64| {
        head(start).filter(|[of, _, size, writable]| {
            *of == arena.start && (PAGE..=alignment).contains(size) && size % PAGE == 0 && size <= writable
        })
    };
    let known = alignment.map_or(ALIGNMENTS.to_vec(), |alignment| vec![alignment]);
    let aligned = known.into_iter().find(|alignment| {
        let start = arena.top & !(alignment - 1);
        is_heap(start, *alignment).is_some_and(|[_, _, size, _]| arena.top - start < size)
            && arena.start % alignment <= MOST_HEADER
    });
    let Some(aligned) = aligned else {
        return Err(Inconsistency::new(arena.start, "an arena is not in the heap to which it points"));
    };
    *alignment = Some(aligned);
    let mut regions = Vec::new();
    let (mut start, mut sum) = (arena.top & !(aligned - 1), 0_u64);
    while start != 0 {
        let Some([_, before, size, _]) = is_heap(start, aligned).filter(|_| start % aligned == 0) else {
            return Err(Inconsistency::new(start, "a heap does not belong to its arena"));
        };
        sum = sum.saturating_add(size);
        if sum > arena.system {
            break;
        }
        let is_first = (start..start + size).contains(&arena.start);
        let first = if is_first { arena.start + top + SIZE_AFTER } else { start + arena.start % aligned };
        let end = regions.is_empty().then_some(arena.top);
        regions.push(read(memory, start, first.next_multiple_of(16), start + size, end, Place::Arena)?);
        start = before;
    }
    if sum != arena.system {
        let what = format!("an arena has {} bytes from the system, but its heaps have {sum}", arena.system);
        return Err(Inconsistency::new(arena.start, what));
    }
    Ok(regions)
}

/// Reads the blocks between two addresses.
fn read(memory: &dyn Memory, start: u64, first: u64, end: u64, top: Option<u64>, place: Place) -> Result<Region> {
    let mut window = Window::new(memory, Pages::read(memory, start, end)?);
    let chunks = walk(&mut window, first, end, top)?;
    Ok(Region { start, end, place, chunks, pages: window.into_pages() })
}

/// The allocator's own counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// The number of mapped blocks.
    pub(super) mapped: u64,
    /// The sizes of their mappings.
    pub(super) mapped_bytes: u64,
    /// The first address of the heap segment that the allocator uses, or 0.
    base: u64,
}

/// The default maximum number of mapped blocks.
const MOST_MAPPED: u64 = 65_536;

impl Arenas {
    /// Finds the allocator's counts by their shape: the number of mapped blocks, its limit, its maximum so far and a
    /// flag, followed by the size of these blocks, its maximum and the start of the heap segment.
    pub(super) fn counts(&self, mappings: &[Mapping]) -> Option<Counts> {
        let half = |index: usize| self.data.get(index / 2).map(|word| word >> (32 * (index % 2)) & 0xffff_ffff);
        let segment = segment(mappings).map_or(0..0, |(start, end)| start..end);
        (0..2 * self.data.len()).find_map(|index| {
            let [mapped, limit, most, fixed] = [0, 1, 2, 3].map(|next| half(index + next));
            let bytes = (index + 5) / 2;
            let [mapped_bytes, most_bytes, base] = [0, 1, 2].map(|next| self.data.get(bytes + next).copied());
            let (mapped, most, mapped_bytes, base) = (mapped?, most?, mapped_bytes?, base?);
            let is_count = mapped <= most && (mapped == 0 || mapped_bytes >= mapped * PAGE);
            let is_base = segment.contains(&base) || (base == 0 && limit? == MOST_MAPPED);
            let fits = mapped_bytes <= most_bytes? && mapped <= limit? && fixed? <= 1 && limit? >= 16;
            (is_count && is_base && fits && most <= limit?).then_some(Counts { mapped, mapped_bytes, base })
        })
    }
}
