//! The recorder's own large mappings: the spool, the stack table, and the access counters. A program that locks its
//! memory must not lock them, because they may be larger than the program: see `hooks/lock.rs`.

use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::memory;

const PAGE: usize = 4096;

/// Address ranges, each with its first address and the address after its last byte. Unused entries contain zeros. A
/// range without an entry is locked by `mlockall`.
static RANGES: [[AtomicUsize; 2]; 512] = [const { [const { AtomicUsize::new(0) }; 2] }; 512];

/// Maps memory for reading and writing that stays unlocked even if the program has requested that all of its memory be
/// locked. Pages are allocated on first access. On failure, a requested `address` may have been mapped nevertheless,
/// but cannot be accessed.
///
/// # Safety
/// The requirements are the same as for `mmap`. In addition, nobody may access memory that is replaced because of
/// `flags`, because it is inaccessible at first.
pub(crate) unsafe fn map(address: *mut c_void, bytes: usize, flags: c_int, file: c_int) -> *mut c_void {
    // Inaccessible pages are not allocated, even though they are locked at first.
    // SAFETY: by the caller's promise.
    unsafe {
        let mapped = memory::map(address, bytes, libc::PROT_NONE, flags, file, 0);
        if mapped == libc::MAP_FAILED {
            return mapped;
        }
        memory::unlock(mapped, bytes);
        if libc::mprotect(mapped, bytes, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return libc::MAP_FAILED;
        }
        note(mapped as usize..(mapped as usize + bytes).next_multiple_of(PAGE));
        mapped
    }
}

/// Maps the beginning of a file like [`map`], replacing memory to which other threads may be writing. The addresses
/// stay accessible at all times. Returns `false` if that is not possible.
///
/// # Safety
/// The recorder must own these addresses and access them only by atomics.
pub(crate) unsafe fn map_over(address: *mut c_void, bytes: usize, file: c_int) -> bool {
    // SAFETY: addresses chosen by the system, which replace the caller's in one step.
    unsafe {
        let elsewhere = map(null_mut(), bytes, libc::MAP_SHARED, file);
        if elsewhere == libc::MAP_FAILED {
            return false;
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        if libc::syscall(libc::SYS_mremap, elsewhere, bytes, bytes, flags, address) == -1 {
            unmap(elsewhere, bytes);
            return false;
        }
        forget(elsewhere as usize..(elsewhere as usize + bytes).next_multiple_of(PAGE));
        note(address as usize..(address as usize + bytes).next_multiple_of(PAGE));
        true
    }
}

/// Unmaps a large mapping or a part of one.
///
/// # Safety
/// The memory must be from [`map`], and nobody may use it any more.
pub(crate) unsafe fn unmap(address: *mut c_void, bytes: usize) {
    // This must come first: as soon as the memory is unmapped, the program may reuse it.
    forget(address as usize..(address as usize + bytes).next_multiple_of(PAGE));
    // SAFETY: by the caller's promise.
    unsafe { memory::unmap(address, bytes) };
}

/// Registers a range.
fn note(range: Range<usize>) {
    if RANGES.iter().any(|place| read(place).is_some_and(|known| known.start <= range.start && range.end <= known.end))
    {
        return;
    }
    let is_free = |place: &&[AtomicUsize; 2]| {
        place[0].compare_exchange(0, range.start, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    if let Some(place) = RANGES.iter().find(is_free) {
        place[1].store(range.end, Ordering::Release);
    }
}

/// Removes a range.
fn forget(range: Range<usize>) {
    for place in &RANGES {
        let Some(known) = read(place).filter(|known| known.start < range.end && range.start < known.end) else {
            continue;
        };
        place[1].store(0, Ordering::Release);
        place[0].store(0, Ordering::Release);
        for rest in [known.start..range.start, range.end..known.end] {
            if rest.start < rest.end {
                note(rest);
            }
        }
    }
}

fn read(place: &[AtomicUsize; 2]) -> Option<Range<usize>> {
    let (end, start) = (place[1].load(Ordering::Acquire), place[0].load(Ordering::Acquire));
    (start < end).then_some(start..end)
}

/// Calls a function with each range.
pub(crate) fn each(use_range: impl FnMut(Range<usize>)) {
    RANGES.iter().filter_map(read).for_each(use_range);
}

/// Calls a function with the parts of a range that do not belong to the large mappings.
pub(crate) fn others_in(range: Range<usize>, mut use_part: impl FnMut(Range<usize>)) {
    let mut from = range.start;
    while from < range.end {
        let (mut inside, mut next) = (None, range.end);
        each(|known| {
            if known.contains(&from) {
                inside = Some(known.end);
            } else if known.start > from {
                next = next.min(known.start);
            }
        });
        match inside {
            Some(end) => from = end,
            None => {
                use_part(from..next);
                from = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(range: Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        others_in(range, |part| parts.push(part));
        parts
    }

    #[test]
    fn parts_of_ranges() {
        const AT: usize = 1 << 62;
        let at = |range: Range<usize>| AT + range.start..AT + range.end;
        assert_eq!(others(at(0..100)), [at(0..100)]);
        note(at(10..50));
        note(at(50..60));
        note(at(20..30));
        assert_eq!(others(at(0..100)), [at(0..10), at(60..100)]);
        assert!(others(at(10..60)).is_empty());
        forget(at(20..55));
        assert_eq!(others(at(0..100)), [at(0..10), at(20..55), at(60..100)]);
        assert_eq!(others(at(15..56)), [at(20..55)]);
        forget(at(0..100));
        assert_eq!(others(at(0..100)), [at(0..100)]);
    }
}
