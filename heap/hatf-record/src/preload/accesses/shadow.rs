//! Access counters. Each 64 bytes of memory have two counters and the time of the last access. In addition, a bit per
//! 32 bytes marks the start of a block, and an entry per 4 KiB page refers to the block that covers the first byte of
//! the page.
//!
//! A region covers 64 MiB of addresses. Its counters are allocated when the first block is placed in it, so there is no
//! large reservation that an address space limit could reject. If there is no memory for a region, its blocks are not
//! counted.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::preload::platform::{large, memory};

/// A table entry: the memory of a region, or null.
pub(super) type Entry = AtomicPtr<u8>;

const REGION_BITS: u32 = 26;
const REGION: usize = 1 << REGION_BITS;
/// The number of regions below 2^47, where user space ends.
const REGIONS: usize = 1 << (47 - REGION_BITS);
/// Bytes per granule, which has its own counter.
const GRANULE: usize = 64;
const COUNTERS_BYTES: usize = REGION / GRANULE * size_of::<Counter>();
/// Blocks begin at multiples of this value.
pub(super) const UNIT: usize = 32;
const BITS_BYTES: usize = REGION / UNIT / 8;
const PAGES_BYTES: usize = REGION / PAGE * size_of::<usize>();
const REGION_BYTES: usize = COUNTERS_BYTES + BITS_BYTES + PAGES_BYTES;

static TABLE: AtomicPtr<Entry> = AtomicPtr::new(null_mut());

/// The numbers of the regions with memory. If the array is full, blocks in further regions are not found when the
/// program ends.
static MADE: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];
static MADE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// The counterpart of `struct counter` in `src/cc/access.c` of `hatf-host`.
#[repr(C)]
struct Counter {
    /// Loads and stores.
    counts: [AtomicU32; 2],
    /// The value of the interface's `now` at the last access.
    last: AtomicU64,
}

/// The counts of a block.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) loads: u64,
    pub(super) stores: u64,
    /// The number of accessed granules.
    pub(super) touched: u64,
    /// The time of the last access, or 0 if there was none.
    pub(super) last: u64,
}

/// Returns whether the table exists.
pub(crate) fn is_on() -> bool {
    !TABLE.load(Ordering::Acquire).is_null()
}

/// Returns the table, which is created if necessary. Returns `None` if there is no memory.
pub(super) fn begin() -> Option<*mut Entry> {
    let known = TABLE.load(Ordering::Acquire);
    if !known.is_null() {
        return Some(known);
    }
    let table = reserve(REGIONS * size_of::<Entry>())?.cast::<Entry>();
    // A plain store suffices, because modules are loaded one at a time.
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
    // SAFETY: the fresh mapping. A huge page would be wasted on a few counters.
    unsafe { memory::advise(memory, bytes, libc::MADV_NOHUGEPAGE) };
    Some(memory.cast())
}

fn entry(address: usize) -> Option<&'static Entry> {
    let table = TABLE.load(Ordering::Acquire);
    let place = address >> REGION_BITS;
    // SAFETY: the mapping created by `begin`, which is permanent, has this many entries; zeros are null pointers.
    (!table.is_null() && place < REGIONS).then(|| unsafe { &*table.add(place) })
}

/// Returns the memory of the region that contains an address, or `None` if the region has no memory.
fn region(address: usize) -> Option<*mut u8> {
    let memory = entry(address)?.load(Ordering::Acquire);
    (!memory.is_null()).then_some(memory)
}

/// Allocates memory for all regions that a range of bytes touches. Returns `false` if there is no memory.
pub(super) fn make(start: usize, bytes: usize) -> bool {
    let last = start.saturating_add(bytes.max(1) - 1);
    (start >> REGION_BITS..=last >> REGION_BITS).all(|number| {
        let Some(entry) = entry(number << REGION_BITS) else { return false };
        if !entry.load(Ordering::Acquire).is_null() {
            return true;
        }
        let Some(memory) = reserve(REGION_BYTES) else { return false };
        if entry.compare_exchange(null_mut(), memory, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: the mapping that was just created and that nobody else knows.
            unsafe { large::unmap(memory.cast::<c_void>(), REGION_BYTES) };
            return true;
        }
        if let Some(place) = MADE.get(MADE_COUNT.fetch_add(1, Ordering::Relaxed)) {
            place.store(number, Ordering::Release);
        }
        true
    })
}

/// Returns the number of granules that a range of bytes touches.
pub(super) fn granules(start: usize, bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (start.saturating_add(bytes - 1)) / GRANULE - start / GRANULE + 1 }
}

/// Calls a function for each region that a range of bytes touches, with the first counter and the number of granules.
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

/// The minimum number of counter bytes that are reset by returning their memory to the system instead of zeroing it.
const LARGE: usize = 1 << 16;
const PAGE: usize = 4096;

/// Resets the counters for a new block.
pub(super) fn clear(start: usize, bytes: usize) {
    each_piece(start, bytes, &mut |counters, granules| {
        let (from, length) = (counters.cast::<u8>(), granules * size_of::<Counter>());
        // SAFETY: the counters of a block that nobody uses yet. Other threads' counters are in other words.
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

/// Counts a load or store of the first byte of a block at the time `now`, unless the block is empty.
pub(super) fn count(start: usize, bytes: usize, is_store: bool, now: u64) {
    each_piece(start, bytes.min(1), &mut |counters, _| {
        // SAFETY: the counter of a granule, whose words are atomic here.
        let Counter { counts: [loads, stores], last } = unsafe { &*counters };
        let counter = if is_store { stores } else { loads };
        counter.store(counter.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        last.store(now, Ordering::Relaxed);
    });
}

/// Sums the counts of a block.
pub(super) fn fold(start: usize, bytes: usize) -> Counts {
    let mut counts = Counts::default();
    each_piece(start, bytes, &mut |counters, granules| {
        for granule in 0..granules {
            // SAFETY: inside of the piece. The program counts using plain instructions, with which an atomic load may
            // overlap.
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
    // SAFETY: inside of the region's marks, which follow its counters.
    let word = unsafe { &*memory.add(COUNTERS_BYTES).cast::<AtomicU64>().add(unit / 64) };
    Some((word, 1 << (unit % 64)))
}

/// Marks the start of a block at a multiple of [`UNIT`], whose region has memory.
pub(super) fn mark(address: usize) {
    if let Some((word, bit)) = mark_of(address) {
        word.fetch_or(bit, Ordering::SeqCst);
    }
}

/// Removes the mark of a block. Returns whether the block was marked.
pub(super) fn unmark(address: usize) -> bool {
    mark_of(address).is_some_and(|(word, bit)| word.fetch_and(!bit, Ordering::SeqCst) & bit != 0)
}

/// Returns whether a block begins at an address.
#[inline]
pub(super) fn is_marked(address: usize) -> bool {
    address.is_multiple_of(UNIT) && mark_of(address).is_some_and(|(word, bit)| word.load(Ordering::SeqCst) & bit != 0)
}

/// Returns the entry for a 4 KiB page. The entry stores the start of the block that covers the page's first byte.
fn page_of(address: usize) -> Option<&'static AtomicUsize> {
    let memory = region(address)?;
    // SAFETY: inside of the region's page entries, which follow its marks.
    Some(unsafe { &*memory.add(COUNTERS_BYTES + BITS_BYTES).cast::<AtomicUsize>().add(address % REGION / PAGE) })
}

/// Records that a block covers the first byte of every page that it touches, except for its first page.
pub(super) fn cover(start: usize, bytes: usize) {
    for page in (start.next_multiple_of(PAGE)..start.saturating_add(bytes)).step_by(PAGE) {
        if let Some(place) = page_of(page) {
            place.store(start, Ordering::Relaxed);
        }
    }
}

/// Returns the start of the last block that begins at or before an address, if there is one nearby. The block may
/// already have ended, or may end before the address.
pub(super) fn begins_before(address: usize) -> Option<usize> {
    const WORD: usize = 64 * UNIT;
    let (word, bit) = mark_of(address / UNIT * UNIT)?;
    // Search the marks in the address's word up to the mark for the address, and then the preceding words of the page.
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

/// Calls a function with the start of each block.
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
