//! The blocks that are recorded, where not all are: a bit for each address that a block may have, in pages that are made when they are needed.
//!
//! Of an address the high part chooses a table, the middle part a leaf in it, and the low part a bit of the leaf. Nothing locks, and there is
//! room for every block, as long as there is memory: a page of bits for each 256 KiB that have a block.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::preload::platform::memory;

/// Bits of an address that do not count: every block begins at a multiple of 8.
const ALIGNED: u32 = 3;
/// Bits of an address that choose a bit of a leaf.
const IN_LEAF: u32 = 21;
/// Bits of an address that choose a leaf, and a table.
const IN_TABLE: u32 = 12;
/// Addresses of programs, which are shorter where pointers are.
const BITS: u32 = ALIGNED + IN_LEAF + 2 * IN_TABLE;

struct Table([AtomicPtr<Leaf>; 1 << IN_TABLE]);
struct Leaf([AtomicU64; 1 << (IN_LEAF - 6)]);

static TABLES: [AtomicPtr<Table>; 1 << IN_TABLE] = [const { AtomicPtr::new(null_mut()) }; 1 << IN_TABLE];

/// Returns what a place points to, if it is there.
fn there<T>(place: &AtomicPtr<T>) -> Option<&'static T> {
    // SAFETY: null, or pages that `make` has put there, which stay; all zeros are a value, and it is made of atomics.
    unsafe { place.load(Ordering::Acquire).as_ref() }
}

/// Returns what a place points to, which is made if it is not there; `None` if there is no memory. Keeps `errno`.
fn make<T>(place: &AtomicPtr<T>) -> Option<&'static T> {
    if let Some(there) = there(place) {
        return Some(there);
    }
    let made = memory::pages(size_of::<T>())?.cast::<T>();
    if place.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire).is_err() {
        // Another thread was first.
        // SAFETY: the pages that were made just now, which nobody else has.
        unsafe { memory::unmap(made.cast(), size_of::<T>()) };
    }
    there(place)
}

/// The places of an address: of its table, of its leaf there, and of its word and bit there.
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

/// Keeps a block; `false` where there is no memory for that, and the block is not to be recorded.
pub(crate) fn keep(address: usize) -> bool {
    if address as u64 >> BITS != 0 {
        return false;
    }
    let Places { table, leaf, word, bit } = Places::of(address);
    let place = || make(make(TABLES.get(table)?)?.0.get(leaf)?)?.0.get(word);
    place().map(|word| word.fetch_or(bit, Ordering::AcqRel)).is_some()
}

/// Forgets a block that is about to end; returns whether it was kept.
#[inline]
pub(crate) fn forget(address: usize) -> bool {
    let Places { table, leaf, word, bit } = Places::of(address);
    let place = || there(there(TABLES.get(table)?)?.0.get(leaf)?)?.0.get(word);
    place().is_some_and(|word| {
        // Most blocks are not kept, and their word stays in the caches of all cores.
        word.load(Ordering::Acquire) & bit != 0 && word.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    })
}

/// Forgets all blocks: they may have ended while nobody looked.
pub(crate) fn forget_all() {
    let leaves = TABLES.iter().filter_map(there).flat_map(|table| table.0.iter().filter_map(there));
    for leaf in leaves {
        // SAFETY: the pages of a leaf, of private memory: all zeros after this.
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
