//! A bitmap of recorded blocks, used if only some blocks are recorded. It contains one bit per possible block address,
//! in pages allocated on demand.
//!
//! The high part of an address selects a table, the middle part a leaf in the table, and the low part a bit in the
//! leaf. There are no locks. As long as memory is available, there is room for every block: each 256 KiB that contain a
//! block need a page of bits.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::preload::platform::memory;

/// The number of ignored low address bits: every block begins at a multiple of 8.
const ALIGNED: u32 = 3;
/// The number of address bits that select a bit in a leaf.
const IN_LEAF: u32 = 21;
/// The number of address bits that select a leaf, and the number that select a table.
const IN_TABLE: u32 = 12;
/// The number of bits in user-space addresses, or in pointers if these are smaller.
const BITS: u32 = ALIGNED + IN_LEAF + 2 * IN_TABLE;

struct Table([AtomicPtr<Leaf>; 1 << IN_TABLE]);
struct Leaf([AtomicU64; 1 << (IN_LEAF - 6)]);

static TABLES: [AtomicPtr<Table>; 1 << IN_TABLE] = [const { AtomicPtr::new(null_mut()) }; 1 << IN_TABLE];

/// Returns the target of a pointer, if it exists.
fn there<T>(place: &AtomicPtr<T>) -> Option<&'static T> {
    // SAFETY: null, or pages stored by `make`, which stay; all zeros are a valid value, and it consists of atomics.
    unsafe { place.load(Ordering::Acquire).as_ref() }
}

/// Returns the target of a pointer, creating it if necessary. Returns `None` if there is no memory. Preserves `errno`.
fn make<T>(place: &AtomicPtr<T>) -> Option<&'static T> {
    if let Some(there) = there(place) {
        return Some(there);
    }
    let made = memory::pages(size_of::<T>())?.cast::<T>();
    if place.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire).is_err() {
        // Another thread was faster.
        // SAFETY: the pages that were created just now, to which nobody else has a pointer.
        unsafe { memory::unmap(made.cast(), size_of::<T>()) };
    }
    there(place)
}

/// The indices of an address: its table, its leaf in the table, and its word and bit in the leaf.
struct Places {
    table: usize,
    leaf: usize,
    word: usize,
    bit: u64,
}

impl Places {
    #[inline]
    fn of(address: usize) -> Self {
        let part =
            |from: u32, bits: u32| usize::try_from(address as u64 >> from & ((1 << bits) - 1)).unwrap_or_default();
        Self {
            table: part(ALIGNED + IN_LEAF + IN_TABLE, IN_TABLE),
            leaf: part(ALIGNED + IN_LEAF, IN_TABLE),
            word: part(ALIGNED + 6, IN_LEAF - 6),
            bit: 1 << part(ALIGNED, 6),
        }
    }
}

/// Adds a block. Returns `false` if there is no memory, in which case the block must not be recorded.
pub(crate) fn keep(address: usize) -> bool {
    if address as u64 >> BITS != 0 {
        return false;
    }
    let Places { table, leaf, word, bit } = Places::of(address);
    let place = || make(make(TABLES.get(table)?)?.0.get(leaf)?)?.0.get(word);
    place().map(|word| word.fetch_or(bit, Ordering::AcqRel)).is_some()
}

/// Removes a block that is about to end. Returns whether it was in the set.
#[inline]
pub(crate) fn forget(address: usize) -> bool {
    let Places { table, leaf, word, bit } = Places::of(address);
    let place = || there(there(TABLES.get(table)?)?.0.get(leaf)?)?.0.get(word);
    place().is_some_and(|word| {
        // Most blocks are not in the set, and their words stay in the caches of all cores.
        word.load(Ordering::Acquire) & bit != 0 && word.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    })
}

/// Removes all blocks, because they may have ended unobserved.
pub(crate) fn forget_all() {
    let leaves = TABLES.iter().filter_map(there).flat_map(|table| table.0.iter().filter_map(there));
    for leaf in leaves {
        // SAFETY: the pages of a leaf, in private memory: all zeros after this.
        unsafe { memory::advise(core::ptr::from_ref(leaf).cast_mut().cast(), size_of::<Leaf>(), libc::MADV_DONTNEED) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_all_places() {
        let blocks = || (0..200_u64).map(|n| (n * n * 3_600_000_011 * 8 % (1 << BITS)) as usize).filter(|n| *n != 0);
        for block in blocks() {
            assert!(!forget(block));
            assert!(keep(block));
            assert!(!forget(block + 8) && !forget(block ^ 1 << 40));
        }
        assert!(blocks().all(forget) && !blocks().any(forget));
        assert!(blocks().all(keep));
        forget_all();
        assert!(!blocks().any(forget));
        assert!(!keep(1 << BITS) && !forget(1 << BITS));
    }
}
