//! The blocks that are live, and the calls that contradict them.

use std::hash::Hasher as _;

use crate::address::AddressHasher;
use crate::contradictions::Contradictions;
use crate::extents::Extents;

/// Freed blocks that are remembered, beside as many as there are live ones.
const FREED: usize = 1 << 16;

/// A block, or a place of the table that has none.
#[derive(Clone, Copy, Debug)]
struct Block {
    address: u64,
    /// [`ENDED`]: it was freed, and no other has begun there. [`VACANT`]: the place has no block.
    slot: u32,
    /// Its size; [`LARGE`]: at least that. With the size here, its extent is found while its slot is on its way to the cache.
    size: u32,
}

/// The slot of a block that was freed.
const ENDED: u32 = u32::MAX;
/// The slot of a vacant place.
const VACANT: u32 = u32::MAX - 1;
/// Sizes from here on are not in the table.
const LARGE: u32 = u32::MAX;

impl Block {
    #[inline]
    fn slot(self) -> Option<u32> {
        (self.slot < Blocks::MOST).then_some(self.slot)
    }
}

/// Blocks by address, each in the first vacant place from that of its hash on. Freed blocks stay until the table is made again, so nothing is
/// taken out; a look-up reads one line of the cache, where a general map reads two.
#[derive(Debug, Default)]
struct Table {
    /// A power of two, of which at most three quarters are not vacant; or none.
    places: Vec<Block>,
    used: usize,
}

impl Table {
    /// Returns the place of an address: that of its block, or a vacant one; `None`: there are no places.
    #[inline]
    fn place(&mut self, address: u64) -> Option<&mut Block> {
        let at = self.find(address)?;
        self.places.get_mut(at)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
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

    /// Puts a block in; returns the slot that was at its address.
    #[inline]
    fn insert(&mut self, block: Block) -> Option<u32> {
        if self.used >= self.places.len() / 4 * 3 {
            self.renew(|_| true);
        }
        let place = self.place(block.address)?;
        let before = std::mem::replace(place, block);
        self.used += usize::from(before.slot == VACANT);
        before.slot()
    }

    /// Makes the table again, of some of its blocks, with room for others.
    #[cold]
    fn renew(&mut self, stays: impl Fn(Block) -> bool) {
        let stay = |block: &&Block| block.slot != VACANT && stays(**block);
        let used = self.places.iter().filter(stay).count();
        let vacant = Block { address: 0, slot: VACANT, size: 0 };
        // It does not shrink: as many will be freed again.
        let length = (used * 2).next_power_of_two().max(self.places.len()).max(16);
        let places = vec![vacant; length];
        let old = std::mem::replace(self, Self { places, used });
        for block in old.places.iter().filter(stay) {
            if let Some(place) = self.place(block.address) {
                *place = *block;
            }
        }
    }
}

/// Slots of live blocks by address; what no correct program does is counted.
///
/// Memory is bounded by the most that were live at once.
#[derive(Debug, Default)]
pub struct Blocks {
    blocks: Table,
    live: usize,
    extents: Extents,
    contradictions: Contradictions,
}

impl Blocks {
    /// Slots are below this.
    pub const MOST: u32 = VACANT;

    /// Returns how often the calls so far contradict each other.
    #[must_use]
    pub fn contradictions(&self) -> Contradictions {
        self.contradictions
    }

    /// Returns how many are live.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live
    }

    /// Returns whether none is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Returns the addresses and slots of live blocks, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        self.blocks.places.iter().filter_map(|block| Some((block.address, block.slot()?)))
    }

    /// Returns the slot of the block that begins at an address.
    #[must_use]
    pub fn get(&self, address: u64) -> Option<u32> {
        self.block(address)?.slot()
    }

    /// Reads what is kept of an address, so that it is in the cache; returns the slot, and some of the rest.
    #[inline]
    pub(crate) fn look_at(&self, address: u64) -> (u32, u64) {
        (self.block(address).map_or(VACANT, |block| block.slot), self.extents.look_at(address))
    }

    /// Ends the block at an address that another is about to begin at, which is counted. `size` gives the size that it began with.
    #[inline]
    pub fn make_way(&mut self, address: u64, size: impl FnOnce(u32) -> u64) -> Option<u32> {
        let slot = self.take(address, size)?;
        self.contradictions.allocs_of_live_blocks += 1;
        Some(slot)
    }

    /// Begins a block, where none begins.
    #[inline]
    pub fn insert(&mut self, address: u64, size: u64, slot: u32) {
        let before = self.blocks.insert(Block { address, slot, size: u32::try_from(size).unwrap_or(LARGE) });
        self.live += usize::from(before.is_none());
        self.contradictions.overlapping_blocks += u64::from(!self.extents.insert(address, size));
    }

    /// Ends the block at an address, if there is one. `size` gives the size that it began with.
    #[inline]
    pub fn take(&mut self, address: u64, size: impl FnOnce(u32) -> u64) -> Option<u32> {
        let block = self.blocks.place(address)?;
        let slot = block.slot()?;
        let size = if block.size == LARGE { size(slot) } else { block.size.into() };
        block.slot = ENDED;
        self.live -= 1;
        self.extents.remove(address, size);
        if self.blocks.used > FREED + 2 * self.live {
            self.blocks.renew(|block| block.slot != ENDED);
        }
        Some(slot)
    }

    /// Returns whether a block was freed at an address, and no other began there. Old frees may be forgotten.
    #[must_use]
    pub fn was_freed(&self, address: u64) -> bool {
        self.block(address).is_some_and(|block| block.slot == ENDED)
    }

    /// Counts a free at an address where nothing is live.
    pub fn missing(&mut self, address: u64) {
        let was_freed = self.was_freed(address);
        let Contradictions { unmatched_frees, frees_of_freed_blocks, .. } = &mut self.contradictions;
        *if was_freed { frees_of_freed_blocks } else { unmatched_frees } += 1;
    }

    #[inline]
    fn block(&self, address: u64) -> Option<Block> {
        self.blocks.places.get(self.blocks.find(address)?).copied()
    }

    /// Forgets all blocks, live or freed.
    pub fn clear(&mut self) {
        *self = Self { contradictions: self.contradictions, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As a map from the standard library, and sizes that the table does not hold.
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

    /// Old frees are forgotten where there are many, and live blocks stay.
    #[test]
    fn frees_are_forgotten() {
        let mut blocks = Blocks::default();
        blocks.insert(8, 1, 7);
        for address in 1..=FREED as u64 + 8 {
            blocks.insert(address * 16, 16, 0);
            blocks.take(address * 16, |_| 0);
        }
        assert_eq!((blocks.get(8), blocks.len(), blocks.was_freed(16)), (Some(7), 1, false));
        assert!(blocks.was_freed((FREED as u64 + 8) * 16) && blocks.blocks.used < 10);
    }
}
