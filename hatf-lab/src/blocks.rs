//! The blocks that are live, and the calls that contradict them.

use crate::address::AddressMap;
use crate::contradictions::Contradictions;
use crate::extents::Extents;

/// Freed blocks that are remembered, beside as many as there are live ones.
const FREED: usize = 1 << 16;

/// Live blocks by address; what no correct program does is counted.
///
/// Memory is bounded by the most that were live at once.
#[derive(Debug)]
pub struct Blocks<T> {
    /// `None`: it was freed, and no other has begun there.
    blocks: AddressMap<Option<T>>,
    live: usize,
    extents: Extents,
    contradictions: Contradictions,
}

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        let (blocks, extents) = (AddressMap::default(), Extents::default());
        Self { blocks, live: 0, extents, contradictions: Contradictions::default() }
    }
}

impl<T> Blocks<T> {
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

    /// Returns the live blocks and their addresses, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.blocks.iter().filter_map(|(address, block)| block.as_ref().map(|block| (*address, block)))
    }

    /// Returns the block that begins at an address.
    #[must_use]
    pub fn get(&self, address: u64) -> Option<&T> {
        self.blocks.get(&address)?.as_ref()
    }

    /// Ends the block at an address that another is about to begin at, which is counted. `size` gives the size that it began with.
    #[inline]
    pub fn make_way(&mut self, address: u64, size: impl FnOnce(&T) -> u64) -> Option<T> {
        let block = self.take(address, size)?;
        self.contradictions.allocs_of_live_blocks += 1;
        Some(block)
    }

    /// Begins a block, where none begins.
    #[inline]
    pub fn insert(&mut self, address: u64, size: u64, block: T) {
        let before = self.blocks.insert(address, Some(block));
        self.live += usize::from(before.flatten().is_none());
        self.contradictions.overlapping_blocks += u64::from(!self.extents.insert(address, size));
    }

    /// Ends the block at an address, if there is one. `size` gives the size that it began with.
    #[inline]
    pub fn take(&mut self, address: u64, size: impl FnOnce(&T) -> u64) -> Option<T> {
        let block = self.blocks.get_mut(&address)?.take()?;
        self.live -= 1;
        self.extents.remove(address, size(&block));
        if self.blocks.len() > FREED + 2 * self.live {
            self.blocks.retain(|_, block| block.is_some());
        }
        Some(block)
    }

    /// Returns whether a block was freed at an address, and no other began there. Old frees may be forgotten.
    #[must_use]
    pub fn was_freed(&self, address: u64) -> bool {
        self.blocks.get(&address).is_some_and(Option::is_none)
    }

    /// Counts a free at an address where nothing is live.
    pub fn missing(&mut self, address: u64) {
        let was_freed = self.was_freed(address);
        let Contradictions { unmatched_frees, frees_of_freed_blocks, .. } = &mut self.contradictions;
        *if was_freed { frees_of_freed_blocks } else { unmatched_frees } += 1;
    }

    /// Forgets all blocks, live or freed, and returns those that are live.
    pub fn drain(&mut self) -> impl Iterator<Item = (u64, T)> + use<T> {
        self.live = 0;
        self.extents = Extents::default();
        let blocks = std::mem::take(&mut self.blocks);
        blocks.into_iter().filter_map(|(address, block)| block.map(|block| (address, block)))
    }
}
