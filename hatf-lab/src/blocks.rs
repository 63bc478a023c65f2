//! The blocks that are live, and the calls that contradict them.

use crate::address::AddressMap;
use crate::contradictions::Contradictions;
use crate::extents::Extents;

/// Freed blocks that are remembered, beside as many as there are live ones.
const FREED: usize = 1 << 16;

/// What is kept by an address: 16 bytes with it.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// [`NONE`]: it was freed, and no other has begun there.
    slot: u32,
    /// Its size; [`LARGE`]: at least that. With the size here, its extent is found while its slot is on its way to the cache.
    size: u32,
}

/// The slot of no block.
const NONE: u32 = u32::MAX;
/// Sizes from here on are not in the map.
const LARGE: u32 = u32::MAX;

impl Block {
    #[inline]
    fn slot(self) -> Option<u32> {
        (self.slot != NONE).then_some(self.slot)
    }
}

/// Slots of live blocks by address; what no correct program does is counted.
///
/// Memory is bounded by the most that were live at once.
#[derive(Debug, Default)]
pub struct Blocks {
    blocks: AddressMap<Block>,
    live: usize,
    extents: Extents,
    contradictions: Contradictions,
}

impl Blocks {
    /// Slots are below this.
    pub const MOST: u32 = NONE;

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
        self.blocks.iter().filter_map(|(address, block)| Some((*address, block.slot()?)))
    }

    /// Returns the slot of the block that begins at an address.
    #[must_use]
    pub fn get(&self, address: u64) -> Option<u32> {
        self.blocks.get(&address)?.slot()
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
        let block = Block { slot, size: u32::try_from(size).unwrap_or(LARGE) };
        let before = self.blocks.insert(address, block);
        self.live += usize::from(before.and_then(Block::slot).is_none());
        self.contradictions.overlapping_blocks += u64::from(!self.extents.insert(address, size));
    }

    /// Ends the block at an address, if there is one. `size` gives the size that it began with.
    #[inline]
    pub fn take(&mut self, address: u64, size: impl FnOnce(u32) -> u64) -> Option<u32> {
        let block = self.blocks.get_mut(&address)?;
        let slot = block.slot()?;
        let size = if block.size == LARGE { size(slot) } else { block.size.into() };
        block.slot = NONE;
        self.live -= 1;
        self.extents.remove(address, size);
        if self.blocks.len() > FREED + 2 * self.live {
            self.blocks.retain(|_, block| block.slot != NONE);
        }
        Some(slot)
    }

    /// Returns whether a block was freed at an address, and no other began there. Old frees may be forgotten.
    #[must_use]
    pub fn was_freed(&self, address: u64) -> bool {
        self.blocks.get(&address).is_some_and(|block| block.slot == NONE)
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
