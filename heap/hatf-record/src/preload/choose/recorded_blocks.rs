//! A bitmap of recorded blocks, used if only some blocks are recorded. It contains one bit per possible block address,
//! in pages allocated on demand.
//!
//! The high part of an address selects a table, the middle part a leaf in the table, and the low part a bit in the
//! leaf. There are no locks. As long as memory is available, there is room for every block: each 256 KiB that contain a
//! block need a page of bits.
//!
//! Most calls end a block that is not in the set. A smaller table counts the blocks in each [`NEAR`] bytes, and all
//! addresses that are a multiple of 4 GiB apart share a count. A block whose count is 0 is not in the set.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

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

/// The binary logarithm of [`NEAR`].
pub(crate) const NEAR_BITS: u32 = 14;
/// Bytes whose blocks share a count.
const NEAR: usize = 1 << NEAR_BITS;
/// The number of counts. The low 32 bits of an address select a count.
const COUNTS: usize = 1 << (32 - NEAR_BITS);
/// The number of blocks that share a count. A count of [`u8::MAX`] remains, because it may be too small.
pub(crate) static NEARBY: [AtomicU8; COUNTS] = [const { AtomicU8::new(0) }; COUNTS];

/// Changes the count of a block, unless the count is already at a limit.
fn change_count(address: usize, change: impl Fn(u8) -> Option<u8>) {
    if let Some(count) = NEARBY.get(address / NEAR % COUNTS) {
        let next = |now| if now == u8::MAX { None } else { change(now) };
        let _ = count.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next);
    }
}

/// Returns whether blocks near an address are in the set.
#[inline]
fn is_near(address: usize) -> bool {
    NEARBY.get(address / NEAR % COUNTS).is_some_and(|count| count.load(Ordering::Acquire) != 0)
}

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
    let Some(word) = place() else { return false };
    // A block whose end was not observed has been counted.
    if word.fetch_or(bit, Ordering::AcqRel) & bit == 0 {
        change_count(address, |now| now.checked_add(1));
    }
    true
}

/// Returns whether a block is in the set.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) fn has(address: usize) -> bool {
    is_near(address) && word_and_bit(address).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
}

/// Returns the word and the bit of an address, if its leaf exists.
fn word_and_bit(address: usize) -> Option<(&'static AtomicU64, u64)> {
    let Places { table, leaf, word, bit } = Places::of(address);
    Some((there(there(TABLES.get(table)?)?.0.get(leaf)?)?.0.get(word)?, bit))
}

/// Removes a block that is about to end. Returns whether it was in the set.
#[inline]
pub(crate) fn forget(address: usize) -> bool {
    if !is_near(address) {
        return false;
    }
    let is_removed = word_and_bit(address).is_some_and(|(word, bit)| {
        // Most blocks are not in the set, and their words stay in the caches of all cores.
        word.load(Ordering::Acquire) & bit != 0 && word.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    });
    if is_removed {
        change_count(address, |now| now.checked_sub(1));
    }
    is_removed
}

/// Removes all blocks, because they may have ended unobserved.
pub(crate) fn forget_all() {
    // The counts come first: a block that another thread adds in the meantime may be counted too often, but is never
    // in the set without being counted.
    NEARBY.iter().filter(|count| count.load(Ordering::Relaxed) != 0).for_each(|count| count.store(0, Ordering::SeqCst));
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
