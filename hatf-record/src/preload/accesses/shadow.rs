//! Counters of accesses, two for each 64 bytes of memory, and when they were last accessed; a bit for each 32 bytes, whether a block begins there; and for each page of 4 KiB which block
//! goes on there.
//!
//! A region is 64 MiB of addresses. It has counters once a block lies in it, so there is no large reservation that a limit of the address space
//! could refuse; where a region's memory cannot be had, its blocks are not counted.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::preload::platform::{large, memory};

/// A place in the table: a region's memory, or null.
pub(super) type Entry = AtomicPtr<u8>;

const REGION_BITS: u32 = 26;
const REGION: usize = 1 << REGION_BITS;
/// Regions below 2^47, where user space ends.
const REGIONS: usize = 1 << (47 - REGION_BITS);
/// Bytes of a granule, which has a counter.
const GRANULE: usize = 64;
const COUNTERS_BYTES: usize = REGION / GRANULE * size_of::<Counter>();
/// Blocks begin at multiples of this.
pub(super) const UNIT: usize = 32;
const BITS_BYTES: usize = REGION / UNIT / 8;
const PAGES_BYTES: usize = REGION / PAGE * size_of::<usize>();
const REGION_BYTES: usize = COUNTERS_BYTES + BITS_BYTES + PAGES_BYTES;

static TABLE: AtomicPtr<Entry> = AtomicPtr::new(null_mut());

/// Regions that have memory: their numbers. Blocks of those that do not fit are not found at the end of the program.
static MADE: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];
static MADE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// `struct counter` of `src/cc/access.c` of `hatf`.
#[repr(C)]
struct Counter {
    /// Loads and stores.
    counts: [AtomicU32; 2],
    /// The `now` of the interface at the last of them.
    last: AtomicU64,
}

/// What was counted of a block.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) loads: u64,
    pub(super) stores: u64,
    /// Granules with an access.
    pub(super) touched: u64,
    /// When the last access was; 0: there was none.
    pub(super) last: u64,
}

/// Returns whether there is a table.
pub(crate) fn is_on() -> bool {
    !TABLE.load(Ordering::Acquire).is_null()
}

/// Makes the table, if there is none yet; `None` if there is no memory.
pub(super) fn begin() -> Option<*mut Entry> {
    let known = TABLE.load(Ordering::Acquire);
    if !known.is_null() {
        return Some(known);
    }
    let table = reserve(REGIONS * size_of::<Entry>())?.cast::<Entry>();
    // Modules are loaded one after the other.
    TABLE.store(table, Ordering::Release);
    Some(table)
}

fn reserve(bytes: usize) -> Option<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a system call with valid arguments.
    let memory = unsafe { large::map(null_mut(), bytes, flags, -1) };
    if memory == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the fresh mapping. A huge page for a few counters would be a waste.
    unsafe { memory::advise(memory, bytes, libc::MADV_NOHUGEPAGE) };
    Some(memory.cast())
}

fn entry(address: usize) -> Option<&'static Entry> {
    let table = TABLE.load(Ordering::Acquire);
    let place = address >> REGION_BITS;
    // SAFETY: the mapping of `begin`, which stays, has this many entries; zeros are null pointers.
    (!table.is_null() && place < REGIONS).then(|| unsafe { &*table.add(place) })
}

/// Returns the memory of the region that an address is in, if it has any.
fn region(address: usize) -> Option<*mut u8> {
    let memory = entry(address)?.load(Ordering::Acquire);
    (!memory.is_null()).then_some(memory)
}

/// Gives memory to all regions that bytes lie in; `false` if there is none.
pub(super) fn make(start: usize, bytes: usize) -> bool {
    let last = start.saturating_add(bytes.max(1) - 1);
    (start >> REGION_BITS..=last >> REGION_BITS).all(|number| {
        let Some(entry) = entry(number << REGION_BITS) else { return false };
        if !entry.load(Ordering::Acquire).is_null() {
            return true;
        }
        let Some(memory) = reserve(REGION_BYTES) else { return false };
        if entry.compare_exchange(null_mut(), memory, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: the mapping that was just made, and that nobody else knows.
            unsafe { large::unmap(memory.cast::<c_void>(), REGION_BYTES) };
            return true;
        }
        if let Some(place) = MADE.get(MADE_COUNT.fetch_add(1, Ordering::Relaxed)) {
            place.store(number, Ordering::Release);
        }
        true
    })
}

/// Returns the number of granules that bytes lie in.
pub(super) fn granules(start: usize, bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (start.saturating_add(bytes - 1)) / GRANULE - start / GRANULE + 1 }
}

/// Calls a function with the counters of bytes, region by region: where they begin, and how many granules they are of.
fn each_piece(start: usize, bytes: usize, use_piece: &mut dyn FnMut(*mut Counter, usize)) {
    let mut granule = start / GRANULE;
    let mut left = granules(start, bytes);
    while left > 0 {
        let within = granule % (REGION / GRANULE);
        let piece = left.min(REGION / GRANULE - within);
        if let Some(memory) = region(granule * GRANULE) {
            // SAFETY: inside of the region's counters.
            use_piece(unsafe { memory.add(within * size_of::<Counter>()) }.cast(), piece);
        }
        (granule, left) = (granule + piece, left - piece);
    }
}

/// From this many bytes of counters on, memory is given back instead of being zeroed.
const LARGE: usize = 1 << 16;
const PAGE: usize = 4096;

/// Begins to count for a new block.
pub(super) fn clear(start: usize, bytes: usize) {
    each_piece(start, bytes, &mut |counters, granules| {
        let (from, length) = (counters.cast::<u8>(), granules * size_of::<Counter>());
        // SAFETY: the counters of a block that nobody has yet. Other threads' counters lie in other words.
        unsafe {
            if length < LARGE {
                core::ptr::write_bytes(from, 0, length);
                return;
            }
            let head = from.align_offset(PAGE);
            let pages = (length - head) / PAGE * PAGE;
            core::ptr::write_bytes(from, 0, head);
            memory::advise(from.add(head).cast(), pages, libc::MADV_DONTNEED);
            core::ptr::write_bytes(from.add(head + pages), 0, length - head - pages);
        }
    });
}

/// Counts a load or a store of the first byte of a block that is not empty, at this time.
pub(super) fn count(start: usize, bytes: usize, is_store: bool, now: u64) {
    each_piece(start, bytes.min(1), &mut |counters, _| {
        // SAFETY: the counter of a granule, whose words are atomic here.
        let Counter { counts: [loads, stores], last } = unsafe { &*counters };
        let counter = if is_store { stores } else { loads };
        counter.store(counter.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        last.store(now, Ordering::Relaxed);
    });
}

/// Adds up what was counted of a block.
pub(super) fn fold(start: usize, bytes: usize) -> Counts {
    let mut counts = Counts::default();
    each_piece(start, bytes, &mut |counters, granules| {
        for granule in 0..granules {
            // SAFETY: inside of the piece. The program counts by plain instructions, which an atomic load may meet.
            let Counter { counts: [loads, stores], last } = unsafe { &*counters.add(granule) };
            let (loads, stores) = (loads.load(Ordering::Relaxed), stores.load(Ordering::Relaxed));
            counts.loads += u64::from(loads);
            counts.stores += u64::from(stores);
            counts.touched += u64::from(loads | stores != 0);
            counts.last = counts.last.max(last.load(Ordering::Relaxed));
        }
    });
    counts
}

/// Returns the word and the bit of an address in the marks of its region.
fn mark_of(address: usize) -> Option<(&'static AtomicU64, u64)> {
    let memory = region(address)?;
    let unit = address % REGION / UNIT;
    // SAFETY: inside of the region's marks, which lie behind its counters.
    let word = unsafe { &*memory.add(COUNTERS_BYTES).cast::<AtomicU64>().add(unit / 64) };
    Some((word, 1 << (unit % 64)))
}

/// Notes that a block begins at a multiple of [`UNIT`], whose region has memory.
pub(super) fn mark(address: usize) {
    if let Some((word, bit)) = mark_of(address) {
        word.fetch_or(bit, Ordering::SeqCst);
    }
}

/// Notes that it ends; returns whether one was noted.
pub(super) fn unmark(address: usize) -> bool {
    mark_of(address).is_some_and(|(word, bit)| word.fetch_and(!bit, Ordering::SeqCst) & bit != 0)
}

/// Returns whether a block begins here.
#[inline]
pub(super) fn is_marked(address: usize) -> bool {
    address.is_multiple_of(UNIT) && mark_of(address).is_some_and(|(word, bit)| word.load(Ordering::SeqCst) & bit != 0)
}

/// Returns the place of a page of 4 KiB that says which block its first byte is in.
fn page_of(address: usize) -> Option<&'static AtomicUsize> {
    let memory = region(address)?;
    // SAFETY: inside of the region's pages, which lie behind its marks.
    Some(unsafe { &*memory.add(COUNTERS_BYTES + BITS_BYTES).cast::<AtomicUsize>().add(address % REGION / PAGE) })
}

/// Notes that a block has the first bytes of these pages.
pub(super) fn cover(start: usize, bytes: usize) {
    for page in (start.next_multiple_of(PAGE)..start.saturating_add(bytes)).step_by(PAGE) {
        if let Some(place) = page_of(page) {
            place.store(start, Ordering::Relaxed);
        }
    }
}

/// Returns where the block begins that an address is in or behind, if there is any so near: it may have ended, or end before that address.
pub(super) fn begins_before(address: usize) -> Option<usize> {
    const WORD: usize = 64 * UNIT;
    let (word, bit) = mark_of(address / UNIT * UNIT)?;
    // The marks up to this one, and those of the rest of the page.
    let mut bits = word.load(Ordering::SeqCst) & (bit | (bit - 1));
    let mut base = address / WORD * WORD;
    loop {
        if bits != 0 {
            return Some(base + (63 - bits.leading_zeros() as usize) * UNIT);
        }
        if base.is_multiple_of(PAGE) {
            return Some(page_of(base)?.load(Ordering::Relaxed));
        }
        base -= WORD;
        bits = mark_of(base)?.0.load(Ordering::SeqCst);
    }
}

/// Calls a function with the beginning of each block.
pub(super) fn each_marked(with: &mut dyn FnMut(usize)) {
    for number in &MADE {
        let base = number.load(Ordering::Acquire) << REGION_BITS;
        if base == 0 || region(base).is_none() {
            continue;
        }
        for at in (base..base + REGION).step_by(64 * UNIT) {
            let Some((word, _)) = mark_of(at) else { continue };
            let mut bits = word.load(Ordering::SeqCst);
            while bits != 0 {
                with(at + bits.trailing_zeros() as usize * UNIT);
                bits &= bits - 1;
            }
        }
    }
}
