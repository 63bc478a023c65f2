//! Live blocks, and the calls that contradict them.

use std::hash::Hasher as _;

use crate::address::AddressHasher;
use crate::contradictions::Contradictions;
use crate::extents::{Extents, MOST_SLOTS};

/// The number of freed blocks to remember, in addition to twice the number of live blocks.
const FREED: usize = 1 << 16;

/// Number of addresses prefetched in one batch.
const AT_ONCE: usize = 16;

/// A block, or a vacant table entry.
#[derive(Clone, Copy, Debug)]
struct Block {
    address: u64,
    /// The block's slot, [`ENDED`] if the block was freed and its address has not been reused, or [`VACANT`] if the
    /// entry contains no block.
    slot: u32,
}

/// The slot of a freed block.
const ENDED: u32 = u32::MAX;
/// The slot of a vacant entry.
const VACANT: u32 = u32::MAX - 1;

impl Block {
    #[inline]
    fn slot(self) -> Option<u32> {
        (self.slot < VACANT).then_some(self.slot)
    }
}

/// A hash table of blocks by address, with linear probing. Freed blocks stay until the table is rebuilt, so no entry is
/// ever removed.
#[derive(Debug, Default)]
struct Table {
    /// The entries. Their number is 0 or a power of two, and at most three quarters of them are occupied.
    places: Vec<Block>,
    used: usize,
    live: usize,
}

impl Table {
    /// Returns the entry of the block at an address, or a vacant entry if the table does not contain the block. Returns
    /// `None` if the table is empty.
    #[inline]
    fn place(&mut self, address: u64) -> Option<&mut Block> {
        let at = self.find(address)?;
        self.places.get_mut(at)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "only the low bits are needed")]
    fn find(&self, address: u64) -> Option<usize> {
        let mut hasher = AddressHasher::default();
        hasher.write_u64(address);
        let mask = self.places.len().wrapping_sub(1);
        let mut at = hasher.finish() as usize & mask;
        loop {
            let block = self.places.get(at)?;
            if block.address == address || block.slot == VACANT {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    /// Inserts a block at an address where no live block begins.
    fn insert(&mut self, block: Block) {
        if self.used >= self.places.len() / 4 * 3 {
            self.renew(|_| true);
        }
        let Some(place) = self.place(block.address) else { return };
        let before = std::mem::replace(place, block);
        self.used += usize::from(before.slot == VACANT);
        self.live += 1;
    }

    /// Ends a block and returns its slot, if the table contains the block.
    fn take(&mut self, address: u64) -> Option<u32> {
        let place = self.place(address)?;
        let slot = place.slot()?;
        place.slot = ENDED;
        self.live -= 1;
        if self.used > FREED + 2 * self.live {
            self.renew(|block| block.slot != ENDED);
        }
        Some(slot)
    }

    fn get(&self, address: u64) -> Option<Block> {
        self.places.get(self.find(address)?).copied()
    }

    /// Rebuilds the table from the blocks that `stays` selects, with room for more blocks.
    #[cold]
    fn renew(&mut self, stays: impl Fn(Block) -> bool) {
        let stay = |block: &&Block| block.slot != VACANT && stays(**block);
        let used = self.places.iter().filter(stay).count();
        let vacant = Block { address: 0, slot: VACANT };
        // The table does not shrink, because a similar number of blocks will be freed again.
        let length = (used * 2).next_power_of_two().max(self.places.len()).max(16);
        let places = vec![vacant; length];
        let old = std::mem::replace(self, Self { places, used, live: self.live });
        for block in old.places.iter().filter(stay) {
            if let Some(place) = self.place(block.address) {
                *place = *block;
            }
        }
    }
}

/// Slots of live blocks by address, and counts of calls that a correct program never makes.
///
/// Memory is bounded by the maximum number of simultaneously live blocks.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The slots of nearly all blocks.
    extents: Extents,
    /// Blocks that overlap others or begin at addresses without a slot in the extents.
    others: Table,
    live: usize,
    contradictions: Contradictions,
}

impl Blocks {
    /// The upper bound of slots, exclusive.
    pub(crate) const MOST: u32 = MOST_SLOTS;

    /// Returns the number of contradictions among the calls so far.
    #[must_use]
    pub(crate) fn contradictions(&self) -> Contradictions {
        self.contradictions
    }

    /// Returns the number of live blocks.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// Returns the addresses and slots of live blocks, in arbitrary order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        let others = self.others.places.iter().filter_map(|block| Some((block.address, block.slot()?)));
        self.extents.iter().chain(others)
    }

    /// Returns the slot of the block that begins at an address.
    #[must_use]
    pub(crate) fn get(&self, address: u64) -> Option<u32> {
        self.extents.slot(address).or_else(|| self.others.get(address)?.slot())
    }

    /// Prefetches the data of several addresses and then passes their slots to `read`. All loads are issued before any
    /// result is used, so cache misses overlap.
    #[inline]
    pub(crate) fn look_at(&mut self, addresses: &[u64], mut read: impl FnMut(u32)) {
        for addresses in addresses.chunks(AT_ONCE) {
            let (mut places, mut marks) = ([0; AT_ONCE], 0);
            for (place, address) in places.iter_mut().zip(addresses) {
                let (index, mark) = self.extents.touch(*address).unwrap_or((u32::MAX, 0));
                (*place, marks) = (index, marks ^ mark);
            }
            std::hint::black_box(marks);
            for (place, address) in places.iter().zip(addresses) {
                read(self.extents.slot_in(*place, *address));
            }
        }
    }

    /// Ends the live block at an address where another block is about to begin, and counts the contradiction. `size`
    /// returns the size with which the block was inserted.
    #[inline]
    pub(crate) fn make_way(&mut self, address: u64, size: impl Fn(u32) -> u64) -> Option<u32> {
        let slot = self.take(address, size)?;
        self.contradictions.allocs_of_live_blocks += 1;
        Some(slot)
    }

    /// Begins a block at an address where no live block begins.
    #[inline]
    pub(crate) fn insert(&mut self, address: u64, size: u64, slot: u32) {
        self.live += 1;
        let is_free = self.extents.insert(address, size, slot);
        self.contradictions.overlapping_blocks += u64::from(!is_free);
        if !is_free || !Extents::has_slot(address) {
            self.others.insert(Block { address, slot });
        }
    }

    /// Ends the block that begins at an address, if there is one. `size` returns the size with which the block was
    /// inserted.
    #[inline]
    pub(crate) fn take(&mut self, address: u64, size: impl Fn(u32) -> u64) -> Option<u32> {
        let slot = match self.extents.take(address, &size) {
            Some(slot) => slot,
            None if self.others.live == 0 => return None,
            None => {
                let slot = self.others.take(address)?;
                self.extents.remove(address, size(slot));
                slot
            }
        };
        self.live -= 1;
        Some(slot)
    }

    /// Returns whether a block was freed at an address that has not been reused since. Old frees may have been evicted.
    #[must_use]
    pub(crate) fn was_freed(&self, address: u64) -> bool {
        self.extents.was_freed(address) || self.others.get(address).is_some_and(|block| block.slot == ENDED)
    }

    /// Counts a free of an address without a live block.
    pub(crate) fn missing(&mut self, address: u64) {
        let was_freed = self.was_freed(address);
        let Contradictions { unmatched_frees, frees_of_freed_blocks, .. } = &mut self.contradictions;
        *if was_freed { frees_of_freed_blocks } else { unmatched_frees } += 1;
    }

    /// Discards all blocks, live or freed.
    pub(crate) fn clear(&mut self) {
        *self = Self { contradictions: self.contradictions, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares the blocks with a standard map. The sizes come from this map, because the table does not store
        /// them.
        #[test]
        fn as_a_map(calls in prop::collection::vec((any::<bool>(), 0..200_u64, any::<u64>()), 0..600)) {
            let (mut blocks, mut map) = (Blocks::default(), HashMap::<u64, (u32, u64)>::new());
            for (slot, (begins, address, size)) in (0..).zip(calls) {
                let size = size >> (size % 64);
                let expected = map.remove(&address);
                let ended = blocks.take(address, |slot| map.values().chain(&expected).find(|block| block.0 == slot).unwrap().1);
                prop_assert_eq!(ended, expected.map(|(slot, _)| slot));
                if begins {
                    blocks.insert(address, size, slot);
                    map.insert(address, (slot, size));
                }
                prop_assert_eq!((blocks.len(), blocks.get(address)), (map.len(), begins.then_some(slot)));
            }
            let live: HashMap<u64, u32> = blocks.iter().collect();
            prop_assert_eq!(live, map.into_iter().map(|(address, (slot, _))| (address, slot)).collect::<HashMap<_, _>>());
        }
    }

    /// Old frees are evicted if there are many; live blocks stay.
    #[test]
    fn frees_are_forgotten() {
        let mut blocks = Blocks::default();
        blocks.insert(8, 1, 7);
        for address in 1..=FREED as u64 + 8 {
            blocks.insert(address * 16 + 4, 9, 0);
            blocks.take(address * 16 + 4, |_| 9);
        }
        assert_eq!((blocks.get(8), blocks.len(), blocks.was_freed(20)), (Some(7), 1, false));
        assert!(blocks.was_freed((FREED as u64 + 8) * 16 + 4) && blocks.others.used < 10);
    }
}
