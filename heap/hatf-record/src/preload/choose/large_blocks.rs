//! A table of the live blocks of [`LEAST`] bytes or more, whose untouched pages are counted when they end.
//!
//! The address of a block selects a bucket, which has room for four blocks. A block for which there is no room is not
//! in the table. There are no locks: whoever frees a block has received its address from the thread that added it, so
//! the table contains the block by then.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The minimum size of a block in the table.
pub(crate) const LEAST: usize = 64 << 10;

/// The binary logarithm of the number of buckets.
const BUCKETS: u32 = 11;

/// A live block, or room for one if the address is 0. The size is 0 while the block is being added or removed.
struct Place {
    address: AtomicUsize,
    size: AtomicUsize,
}

/// The places of a bucket, in one cache line.
#[repr(align(64))]
struct Bucket([Place; 4]);

/// An upper bound of the number of blocks in each bucket. Nearly all blocks that end are small, and in an empty bucket.
static COUNTS: [AtomicU8; 1 << BUCKETS] = [const { AtomicU8::new(0) }; 1 << BUCKETS];

static TABLE: [Bucket; 1 << BUCKETS] =
    [const { Bucket([const { Place { address: AtomicUsize::new(0), size: AtomicUsize::new(0) } }; 4]) }; 1 << BUCKETS];

/// Returns the count and the bucket of a block.
#[inline]
fn find(address: usize) -> Option<(&'static AtomicU8, &'static Bucket)> {
    let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BUCKETS);
    let at = usize::try_from(hash).ok()?;
    Some((COUNTS.get(at)?, TABLE.get(at)?))
}

/// Adds a block if there is room. A block with the same address, whose end was not observed, is replaced.
pub(crate) fn keep(address: usize, size: usize) {
    take(address);
    let Some((count, Bucket(places))) = find(address) else { return };
    count.fetch_add(1, Ordering::Relaxed);
    let added = places.iter().any(|place| {
        let added = place.address.compare_exchange(0, address, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if added {
            place.size.store(size, Ordering::Release);
        }
        added
    });
    if !added {
        count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Removes a block that is about to end. Returns its size if it is in the table.
#[inline]
pub(crate) fn forget(address: usize) -> Option<usize> {
    let (count, _) = find(address)?;
    if count.load(Ordering::Relaxed) == 0 { None } else { take(address) }
}

#[cold]
fn take(address: usize) -> Option<usize> {
    let (count, Bucket(places)) = find(address)?;
    let place = places.iter().find(|place| place.address.load(Ordering::Acquire) == address)?;
    let size = place.size.swap(0, Ordering::Relaxed);
    place.address.store(0, Ordering::Release);
    count.fetch_sub(1, Ordering::Relaxed);
    Some(size)
}

/// Calls a function with the address and the size of each block in the table. Other threads may change the table.
pub(crate) fn each(mut visit: impl FnMut(usize, usize)) {
    for Place { address, size } in used().flat_map(|(_, Bucket(places))| places) {
        let block = (address.load(Ordering::Acquire), size.load(Ordering::Acquire));
        if block.0 != 0 && block.1 != 0 && address.load(Ordering::Relaxed) == block.0 {
            visit(block.0, block.1);
        }
    }
}

/// Removes all blocks, because they may have ended unobserved.
pub(crate) fn forget_all() {
    for (count, Bucket(places)) in used() {
        for place in places {
            place.size.store(0, Ordering::Relaxed);
            place.address.store(0, Ordering::Release);
        }
        count.store(0, Ordering::Relaxed);
    }
}

/// Returns the buckets that may contain blocks, and their counts.
fn used() -> impl Iterator<Item = (&'static AtomicU8, &'static Bucket)> {
    COUNTS.iter().zip(&TABLE).filter(|(count, _)| count.load(Ordering::Relaxed) != 0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Blocks for which there is room come back with their sizes, and only those.
    #[test]
    fn blocks_come_back() {
        let blocks: HashMap<usize, usize> = (1..3000).map(|n| (n * 0x11_0010, LEAST + n)).collect();
        for (address, size) in &blocks {
            assert_eq!(forget(*address), None);
            keep(*address, 1);
            // A block whose end was not observed is replaced.
            keep(*address, *size);
        }
        let mut kept = HashMap::new();
        each(|address, size| assert!(kept.insert(address, size).is_none()));
        assert!(kept.len() > 2900 && kept.iter().all(|(address, size)| blocks.get(address) == Some(size)));
        for (address, size) in &blocks {
            assert_eq!(forget(*address), kept.contains_key(address).then_some(*size));
            assert_eq!(forget(*address), None);
        }
        assert!(COUNTS.iter().all(|count| count.load(Ordering::Relaxed) == 0));

        keep(0x7000, LEAST);
        forget_all();
        each(|address, _| panic!("{address:x}"));
        assert_eq!(forget(0x7000), None);

        // More blocks in a bucket than there is room for.
        let bucket = |address: usize| find(address).map(|(count, _)| core::ptr::from_ref(count) as usize);
        let same: Vec<usize> = (1..100_000).map(|n| n << 16).filter(|n| bucket(*n) == bucket(1 << 16)).collect();
        assert!(same.len() > 8);
        same.iter().for_each(|address| keep(*address, LEAST));
        assert_eq!(same.iter().filter_map(|address| forget(*address)).count(), 4);
    }
}
