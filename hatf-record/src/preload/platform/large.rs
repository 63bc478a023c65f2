//! Large mappings of the recorder's own: the spool, the table of stacks, counters of accesses. A program that locks its memory is not to lock them, as they
//! are larger than all of it: see `hooks/lock.rs`.

use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::memory;

const PAGE: usize = 4096;

/// Address ranges, each with its first address and the address after its last byte; zeros are unused entries. A range without an entry is locked by `mlockall`.
static RANGES: [[AtomicUsize; 2]; 512] = [const { [const { AtomicUsize::new(0) }; 2] }; 512];

/// Maps memory to be read and written, which stays unlocked if the program has asked for all of its memory to be locked. Pages get their memory when
/// they are touched. If it fails, an `address` that was asked for may be mapped all the same, and cannot be touched.
///
/// # Safety
/// As for `mmap`. Nobody touches what `flags` have replaced, as it cannot be touched at first.
pub(crate) unsafe fn map(address: *mut c_void, bytes: usize, flags: c_int, file: c_int) -> *mut c_void {
    // Pages that cannot be touched get no memory, though they are locked at first.
    // SAFETY: the caller's promise.
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

/// Maps the beginning of a file as [`map`] does, in place of memory to which other threads may be writing: at any time they can. `false` if that is not
/// possible.
///
/// # Safety
/// The recorder owns these addresses and accesses them only by atomics.
pub(crate) unsafe fn map_over(address: *mut c_void, bytes: usize, file: c_int) -> bool {
    // SAFETY: addresses that the system chooses, which take the place of the caller's in one step.
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

/// Unmaps one of them, or a part.
///
/// # Safety
/// Memory of [`map`] that nobody uses.
pub(crate) unsafe fn unmap(address: *mut c_void, bytes: usize) {
    // First: as soon as it is unmapped it may be the program's.
    forget(address as usize..(address as usize + bytes).next_multiple_of(PAGE));
    // SAFETY: the caller's promise.
    unsafe { memory::unmap(address, bytes) };
}

/// Notes that a range is one of them.
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

/// Calls a function with each of them.
pub(crate) fn each(use_range: impl FnMut(Range<usize>)) {
    RANGES.iter().filter_map(read).for_each(use_range);
}

/// Calls a function with the parts of a range that are not theirs.
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
