//! Heaps of several versions in synthetic memory, and the same heaps with wrong words.

use std::collections::BTreeMap;
use std::io;

use super::{Block, Heap, Thread, read_heap};
use crate::memory::{Memory, Page};
use crate::{Account, Kind, Mapping, Result};

/// The layout of a version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// The number of bytes of a count in a thread's cache.
    count: u64,
    lists: u64,
    counts_room: bool,
    is_mangled: bool,
    has_fast_bins: bool,
    has_huge_pages: bool,
    heap_header: u64,
}

const V2_28: Version = Version {
    count: 1,
    lists: 64,
    counts_room: false,
    is_mangled: false,
    has_fast_bins: true,
    has_huge_pages: false,
    heap_header: 32,
};
const V2_31: Version = Version { count: 2, ..V2_28 };
pub(crate) const V2_36: Version = Version { is_mangled: true, has_huge_pages: true, heap_header: 48, ..V2_31 };
const V2_42: Version = Version { lists: 76, counts_room: true, ..V2_36 };
const V2_43: Version = Version { has_fast_bins: false, ..V2_42 };
const VERSIONS: [Version; 5] = [V2_28, V2_31, V2_36, V2_42, V2_43];

pub(crate) const DATA: u64 = 0x7f00_0000_0000;
const MAIN: u64 = DATA + 0x1c80;
pub(crate) const SEGMENT: u64 = 0x5555_0000_0000;
const ARENA: u64 = 0x7e00_0000_0000;
pub(crate) const OWN: u64 = 0x7d00_0000_0000;
pub(crate) const VARIABLES: u64 = 0x7f00_1000_0000;
const SIZE: u64 = 0x21000;

/// Memory that contains these words, and zeros elsewhere in its mappings.
#[derive(Clone, Default)]
pub(crate) struct Image {
    words: BTreeMap<u64, u64>,
    pub(crate) mappings: Vec<Mapping>,
}

impl Memory for Image {
    fn read(&self, address: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = address.checked_add(buffer.len() as u64).ok_or(io::ErrorKind::InvalidInput)?;
        if !self.mappings.iter().any(|mapping| mapping.start <= address && end <= mapping.end) {
            return Err(io::ErrorKind::NotFound.into());
        }
        buffer.fill(0);
        for (at, word) in self.words.range(address.saturating_sub(7)..end) {
            for (place, byte) in (*at..).zip(word.to_le_bytes()) {
                let place = place.checked_sub(address).and_then(|place| usize::try_from(place).ok());
                if let Some(to) = place.and_then(|place| buffer.get_mut(place)) {
                    *to = byte;
                }
            }
        }
        Ok(())
    }

    fn pages(&self, start: u64, end: u64) -> io::Result<Vec<Page>> {
        let count = end.checked_sub(start).filter(|length| *length <= 1 << 30).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(vec![Page::Resident; usize::try_from(count / 4096).unwrap()])
    }
}

impl Image {
    fn put(&mut self, address: u64, words: impl IntoIterator<Item = u64>) {
        self.words.extend((address..).step_by(8).zip(words));
    }

    /// Writes an arena whose lists of free blocks are empty.
    fn arena(&mut self, version: Version, at: u64, next: u64, top: u64, system: u64) {
        let to_top = if version.has_fast_bins { 96 } else { 8 };
        self.put(at + to_top, [top, 0]);
        for list in 0..127 {
            let head = at + to_top + 16 + 16 * list;
            self.put(head, [head - 16; 2]);
        }
        self.put(at + to_top + 2064, [next, 0, 1, system, system]);
    }

    /// Writes blocks with these sizes, the odd ones of which are free, and the rest as the top. Returns the headers.
    fn blocks(&mut self, from: u64, end: u64, sizes: &[u64]) -> Vec<u64> {
        let (mut at, mut headers, mut before) = (from, Vec::new(), 0);
        for size in sizes {
            let in_use = u64::from(before % 16 == 0);
            self.put(at, [before & !15 & in_use.wrapping_sub(1), size & !15 | in_use]);
            headers.push(at);
            at += size & !15;
            before = *size;
        }
        self.put(at, [before & !15, (end - at) | u64::from(before % 16 == 0)]);
        headers.push(at);
        headers
    }

    fn link(&mut self, version: Version, at: u64, to: u64) {
        self.put(at, [if version.is_mangled { at >> 12 ^ to } else { to }]);
    }

    fn read(&self) -> Result<Option<Heap>> {
        read_heap(self, &self.mappings, &[thread()])
    }
}

/// Returns the registers of the only thread.
pub(crate) fn thread() -> Thread {
    Thread { stack_pointer: 0, thread_pointer: VARIABLES + 0x800 }
}

/// Returns the memory of a process with two arenas, a mapped block, and freed blocks in each place.
pub(crate) fn image(version: Version) -> Image {
    let mut image = Image::default();
    let mapping = |start: u64, size: u64, name: &str| {
        let line = format!("{start:x}-{:x} rw-p 0 0:0 0 {name}\nRss: {} kB\n", start + size, size / 1024);
        Mapping::parse(line.as_bytes()).remove(0)
    };
    image.mappings = vec![
        mapping(SEGMENT, SIZE, "[heap]"),
        mapping(OWN, SIZE, ""),
        mapping(ARENA, SIZE, ""),
        mapping(DATA, 0x4000, "/lib/libc.so.6"),
        mapping(VARIABLES, 0x1000, ""),
    ];
    // The cache, a live block, a free block, two in the cache, two in a fast bin, and a live block.
    let cache = (version.lists * (version.count + 8) + 8).next_multiple_of(16);
    let headers = image.blocks(SEGMENT, SEGMENT + SIZE, &[cache, 0x100, 0x401, 0x50, 0x50, 0x60, 0x60, 0x3000]);
    let [of_cache, _, _, cached, cached_2, fast, fast_2, _, top] = headers[..] else { unreachable!() };
    let list = (0x50 - 32) / 16;
    let mut counts = vec![0_u8; usize::try_from(version.lists * version.count).unwrap()];
    for at in 0..version.lists {
        let cached = if at == list { 2 } else { 0 };
        counts[usize::try_from(at * version.count).unwrap()] = if version.counts_room { 7 - cached } else { cached };
    }
    let words: Vec<u64> = counts.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    image.put(of_cache + 16, words);
    image.put(of_cache + 16 + version.lists * version.count + 8 * list, [cached_2 + 16]);
    image.link(version, cached_2 + 16, cached + 16);
    image.link(version, cached + 16, 0);
    image.arena(version, MAIN, ARENA + version.heap_header, top, SIZE);
    if version.has_fast_bins {
        image.put(MAIN + 16 + 8 * (0x60 - 32) / 16, [fast_2]);
        image.link(version, fast_2 + 16, fast);
        image.link(version, fast + 16, 0);
    }
    let arena = ARENA + version.heap_header;
    let to_top = if version.has_fast_bins { 96 } else { 8 };
    let first = (arena + to_top + 2104).next_multiple_of(16);
    let headers = image.blocks(first, ARENA + SIZE, &[0x1000, 0x2001, 0x30]);
    image.put(ARENA, [arena, 0, SIZE, SIZE]);
    image.arena(version, arena, MAIN, headers[3], SIZE);
    image.put(OWN, [0, if version.has_fast_bins { 0x20000 } else { 0x1fff0 } | 2]);
    image.put(OWN + 0x20000, [0, 0]);
    let counts = [1, 65_536, 1, 0_u64];
    if version.has_huge_pages {
        let [mapped, limit, most, fixed] = counts;
        image.put(DATA + 0x1000, [mapped << 32, most << 32 | limit, fixed]);
        image.put(DATA + 0x1018, [0x20000, 0x20000, SEGMENT]);
    } else {
        let [mapped, limit, most, fixed] = counts;
        image.put(DATA + 0x1000, [limit << 32 | mapped, fixed << 32 | most, 0x20000, 0x20000, SEGMENT]);
    }
    image.put(VARIABLES + 0x7c0, [MAIN, of_cache + 16]);
    image
}

/// Returns the live blocks of [`image`].
pub(crate) fn expected(version: Version) -> Vec<Block> {
    let cache = (version.lists * (version.count + 8) + 8).next_multiple_of(16);
    let to_top = if version.has_fast_bins { 96 } else { 8 };
    let first = (ARENA + version.heap_header + to_top + 2104).next_multiple_of(16);
    let fast = SEGMENT + cache + 0x100 + 0x400 + 0xa0;
    let mut blocks = vec![
        (SEGMENT + cache, 0xf8),
        (fast + 0xc0, 0x2ff8),
        (OWN, if version.has_fast_bins { 0x1fff0 } else { 0x1ffe8 }),
        (first, 0xff8),
        (first + 0x3000, 0x28),
    ];
    if !version.has_fast_bins {
        blocks.extend([(fast, 0x58), (fast + 0x60, 0x58)]);
        blocks.sort_unstable();
    }
    blocks.into_iter().map(|(header, usable)| Block { address: header + 16, usable }).collect()
}

#[test]
fn each_version_is_read() {
    for version in VERSIONS {
        let image = image(version);
        let heap = image.read().unwrap().unwrap();
        assert_eq!(heap.live().collect::<Vec<_>>(), expected(version), "{version:?}");
        assert_eq!((heap.arenas(), heap.caches), (2, 1));
        let account = Account::new(Some(&heap), &image.mappings, &[]);
        assert_eq!(account.sum(), 3 * SIZE + 0x5000);
        assert_eq!(account.get(Kind::Caches), 0xa0);
        // All of the rest of the main arena but a page, and one whole page of the free block in the other arena.
        assert_eq!(account.get(Kind::Trimmable), 0x1d000 + 0x1000, "{version:?}");
        let live: u64 = heap.live().map(|block| block.usable).sum();
        assert_eq!(account.get(Kind::Live), live);
    }
}

#[test]
fn an_empty_cache_is_found_by_its_thread() {
    let mut image = image(V2_36);
    let of_cache = SEGMENT + 16;
    image.put(of_cache, [0; 80]);
    let heap = image.read().unwrap().unwrap();
    assert_eq!(heap.caches, 1);
    assert!(heap.live().all(|block| block.address != of_cache));
}

/// Each contradiction is reported with its address.
#[test]
fn contradictions_have_an_address() {
    let first = SEGMENT + 0x290;
    let fast = first + 0x100 + 0x400 + 0xa0;
    let cases = [
        (first + 8, 0x111, "copy of its size"),
        (first + 8, 0xffff_ffff_ffff_fff1, "valid size"),
        (first + 8, 0x41_0001, "valid size"),
        (first + 8, 0x102 | 1, "valid size"),
        (first + 0x100 + 8, 0x411, "copy of its size"),
        (fast + 16, (fast + 16) >> 12 ^ (fast + 0x60), "twice"),
        (fast + 16, (fast + 16) >> 12 ^ (fast + 0x20), "leads elsewhere"),
        (MAIN + 96 + 2088, 0, "from the system"),
        (MAIN + 96 + 2064, ARENA + 0x40, "no arena"),
        (ARENA + 16, SIZE + 0x1000, "arena"),
        (ARENA + 8, ARENA, "heap"),
        (OWN + 8, 0x21002, "mapped blocks"),
        (DATA + 0x1000, 2 << 32, "counts"),
    ];
    for (address, word, what) in cases {
        let mut image = image(V2_36);
        image.put(address, [word]);
        let problem = image.read().map(|heap| heap.map(|heap| heap.live().count()));
        let problem = problem.expect_err(&format!("{address:#x}: {word:#x}"));
        assert!(problem.what.contains(what), "{address:#x}: {problem}");
    }
}

/// Any wrong word leads to a heap or to an error, in bounded time.
#[test]
fn any_word_may_be_wrong() {
    for version in [V2_28, V2_36, V2_42] {
        let original = image(version);
        let words: Vec<_> = original.words.iter().map(|(at, word)| (*at, *word)).collect();
        for (number, (at, word)) in words.iter().enumerate() {
            // The heads of the lists are alike.
            if (40..800).contains(&number) && number % 16 != 0 {
                continue;
            }
            for wrong in [0, !0, word ^ 16, word.wrapping_add(1 << 40), *at, SEGMENT] {
                let mut image = original.clone();
                image.put(*at, [wrong]);
                if let Ok(Some(heap)) = image.read() {
                    assert_eq!(Account::new(Some(&heap), &image.mappings, &[]).sum(), 3 * SIZE + 0x5000);
                }
            }
        }
    }
}

#[test]
fn a_process_without_blocks_has_no_heap() {
    let mut image = image(V2_36);
    image.words.retain(|at, _| !(DATA..DATA + 0x4000).contains(at));
    assert!(image.read().unwrap().is_none());
    image.mappings.clear();
    assert!(image.read().unwrap().is_none());
}
