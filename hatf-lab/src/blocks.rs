//! The blocks that are live, and the calls that contradict them.

use std::hash::Hasher as _;

use crate::address::AddressHasher;
use crate::contradictions::Contradictions;
use crate::extents::{Extents, MOST_SLOTS};

/// Freed blocks that are remembered, beside as many as there are live ones.
const FREED: usize = 1 << 16;

/// Addresses that are looked at at once.
const AT_ONCE: usize = 16;

/// A block, or a place of the table that has none.
#[derive(Clone, Copy, Debug)]
struct Block {
    address: u64,
    /// [`ENDED`]: it was freed, and no other has begun there. [`VACANT`]: the place has no block.
    slot: u32,
}

/// The slot of a block that was freed.
const ENDED: u32 = u32::MAX;
/// The slot of a vacant place.
const VACANT: u32 = u32::MAX - 1;

impl Block {
    #[inline]
    fn slot(self) -> Option<u32> {
        (self.slot < VACANT).then_some(self.slot)
    }
}

/// Blocks by address, each in the first vacant place from that of its hash on. Freed blocks stay until the table is made again, so nothing is
/// taken out.
#[derive(Debug, Default)]
struct Table {
    /// A power of two, of which at most three quarters are not vacant; or none.
    places: Vec<Block>,
    used: usize,
    live: usize,
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

    /// Puts a block in, where none is.
    fn insert(&mut self, block: Block) {
        if self.used >= self.places.len() / 4 * 3 {
            self.renew(|_| true);
        }
        let Some(place) = self.place(block.address) else { return };
        let before = std::mem::replace(place, block);
        self.used += usize::from(before.slot == VACANT);
        self.live += 1;
    }

    /// Ends a block; returns its slot, if it is there.
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

    /// Makes the table again, of some of its blocks, with room for others.
    #[cold]
    fn renew(&mut self, stays: impl Fn(Block) -> bool) {
        let stay = |block: &&Block| block.slot != VACANT && stays(**block);
        let used = self.places.iter().filter(stay).count();
        let vacant = Block { address: 0, slot: VACANT };
        // It does not shrink: as many will be freed again.
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

/// Slots of live blocks by address; what no correct program does is counted.
///
/// Memory is bounded by the most that were live at once.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Nearly all blocks have their slots here.
    extents: Extents,
    /// Those that overlap others, or begin where extents have no slots.
    others: Table,
    live: usize,
    contradictions: Contradictions,
}

impl Blocks {
    /// Slots are below this.
    pub const MOST: u32 = MOST_SLOTS;

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
        let others = self.others.places.iter().filter_map(|block| Some((block.address, block.slot()?)));
        self.extents.iter().chain(others)
    }

    /// Returns the slot of the block that begins at an address.
    #[must_use]
    pub fn get(&self, address: u64) -> Option<u32> {
        self.extents.slot(address).or_else(|| self.others.get(address)?.slot())
    }

    /// Reads what is kept of addresses, so that it is in the cache, and gives `read` their slots once all are on their way: nothing is
    /// waited for before the next is asked for.
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

    /// Ends the block at an address that another is about to begin at, which is counted. `size` gives the size that it began with.
    #[inline]
    pub fn make_way(&mut self, address: u64, size: impl Fn(u32) -> u64) -> Option<u32> {
        let slot = self.take(address, size)?;
        self.contradictions.allocs_of_live_blocks += 1;
        Some(slot)
    }

    /// Begins a block, where none begins.
    #[inline]
    pub fn insert(&mut self, address: u64, size: u64, slot: u32) {
        self.live += 1;
        let is_free = self.extents.insert(address, size, slot);
        self.contradictions.overlapping_blocks += u64::from(!is_free);
        if !is_free || !Extents::has_slot(address) {
            self.others.insert(Block { address, slot });
        }
    }

    /// Ends the block at an address, if there is one. `size` gives the size that it began with.
    #[inline]
    pub fn take(&mut self, address: u64, size: impl Fn(u32) -> u64) -> Option<u32> {
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

    /// Returns whether a block was freed at an address, and no other began there. Old frees may be forgotten.
    #[must_use]
    pub fn was_freed(&self, address: u64) -> bool {
        self.extents.was_freed(address) || self.others.get(address).is_some_and(|block| block.slot == ENDED)
    }

    /// Counts a free at an address where nothing is live.
    pub fn missing(&mut self, address: u64) {
        let was_freed = self.was_freed(address);
        let Contradictions { unmatched_frees, frees_of_freed_blocks, .. } = &mut self.contradictions;
        *if was_freed { frees_of_freed_blocks } else { unmatched_frees } += 1;
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
            blocks.insert(address * 16 + 4, 9, 0);
            blocks.take(address * 16 + 4, |_| 9);
        }
        assert_eq!((blocks.get(8), blocks.len(), blocks.was_freed(20)), (Some(7), 1, false));
        assert!(blocks.was_freed((FREED as u64 + 8) * 16 + 4) && blocks.others.used < 10);
    }
}
