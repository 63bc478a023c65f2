//! All addresses that the model knows. They belong to live objects, and to freed objects, of which the oldest are
//! evicted if there are too many.

use super::super::NONE;
use super::places::AddressIndex;

/// A live or freed object, in half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct HeapBlock {
    pub(super) address: u64,
    /// The context that allocated or freed the object.
    pub(super) context: u32,
    /// The object's class in that context.
    pub(super) class: u32,
    /// For a live block, its position in the context's allocation order; otherwise [`FREED`] or [`FORGOTTEN`].
    pub(super) slot: u32,
    /// For a freed block, the next older and the next newer block in the list of its class. For the newest block,
    /// `newer` is not maintained, because the class stores which block is newest.
    pub(super) older: u32,
    pub(super) newer: u32,
    /// For a freed block, the number of frees in the heap before the block was freed, modulo 2^32.
    stamp: u32,
}

/// Slot of a freed block.
pub(super) const FREED: u32 = u32::MAX;
/// Slot of an entry available for reuse.
pub(super) const FORGOTTEN: u32 = u32::MAX - 1;

/// Number of freed blocks kept regardless of the heap's size.
const KEPT: usize = 4096;
/// Number of freed blocks kept for each live block at the peak.
const KEPT_PER_LIVE: usize = 4;
/// Divisor of the maximum number of freed blocks (`kept`). If the maximum is exceeded, only the blocks freed by the
/// last `kept / STAY` frees remain.
const STAY: usize = 2;

/// The blocks, by index and by address.
#[derive(Clone, Debug)]
pub(super) struct HeapBlocks {
    all: Vec<HeapBlock>,
    spare: Vec<u32>,
    places: AddressIndex,
    live: usize,
    /// Peak number of live blocks.
    most: usize,
    freed: usize,
    /// Maximum number of freed blocks kept, derived from `most`.
    kept: usize,
    /// Number of frees so far, modulo 2^32.
    frees: u32,
}

impl HeapBlock {
    /// Creates a block for a new object.
    #[inline]
    pub(super) fn new(address: u64, context: u32, class: u32, slot: u32) -> Self {
        Self { address, context, class, slot, older: NONE, newer: NONE, stamp: 0 }
    }
}

impl HeapBlocks {
    pub(super) fn new() -> Self {
        Self {
            all: Vec::new(),
            spare: Vec::new(),
            places: AddressIndex::new(),
            live: 0,
            most: 0,
            freed: 0,
            kept: KEPT,
            frees: 0,
        }
    }

    /// Removes all blocks but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.spare.clear();
        self.places.clear();
        (self.live, self.most, self.freed, self.kept, self.frees) = (0, 0, 0, KEPT, 0);
    }

    #[inline]
    pub(super) fn get(&self, block: u32) -> Option<&HeapBlock> {
        self.all.get(block as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, block: u32) -> Option<&mut HeapBlock> {
        self.all.get_mut(block as usize)
    }

    /// Returns the block at an address.
    #[inline(always)]
    pub(super) fn at(&self, address: u64) -> Option<u32> {
        self.places.get(address)
    }

    #[inline]
    pub(super) fn is_live(&self, block: u32) -> bool {
        self.get(block).is_some_and(|b| b.slot < FORGOTTEN)
    }

    /// Returns whether `block` is freed.
    #[inline]
    pub(super) fn is_freed(&self, block: u32) -> bool {
        self.get(block).is_some_and(|b| b.slot == FREED)
    }

    /// Returns whether `block` is freed and at this address.
    #[inline]
    pub(super) fn is_freed_at(&self, block: u32, address: u64) -> bool {
        self.get(block).is_some_and(|b| b.slot == FREED && b.address == address)
    }

    /// Returns the block at an address and whether it was known. If there is no block, `new` is stored at the address.
    /// Returns `None` if there are already 2^32 blocks.
    #[inline]
    pub(super) fn at_or_add(&mut self, new: HeapBlock) -> Option<(u32, bool)> {
        let entry = self.places.entry(new.address)?;
        if *entry != NONE {
            return Some((*entry, true));
        }
        let block = match self.spare.pop() {
            Some(block) => block,
            None => u32::try_from(self.all.len()).ok().filter(|&b| b < FORGOTTEN)?,
        };
        *entry = block;
        match self.all.get_mut(block as usize) {
            Some(spare) => *spare = new,
            None => self.all.push(new),
        }
        Some((block, false))
    }

    /// Counts a block that becomes live.
    #[inline]
    pub(super) fn count_live(&mut self) {
        self.live += 1;
        if self.live > self.most {
            self.most = self.live;
            self.kept += KEPT_PER_LIVE;
        }
    }

    /// Counts a block that is no longer live.
    #[inline]
    pub(super) fn count_dead(&mut self) {
        self.live -= 1;
    }

    /// Adds a freed block to a class as its newest block. `older` is the previous newest block.
    #[inline]
    pub(super) fn enter(&mut self, block: u32, class: u32, older: u32) {
        let stamp = self.frees;
        if let Some(b) = self.get_mut(block) {
            b.slot = FREED;
            b.class = class;
            b.older = older;
            b.stamp = stamp;
        }
        self.frees = stamp.wrapping_add(1);
        self.freed += 1;
    }

    /// Counts a freed block that is reused or evicted.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.freed -= 1;
    }

    /// Returns the number of known addresses.
    #[inline]
    pub(super) fn known(&self) -> usize {
        self.all.len() - self.spare.len()
    }

    /// Returns whether too many freed blocks are kept.
    #[inline]
    pub(super) fn has_surplus(&self) -> bool {
        self.freed > self.kept
    }

    /// Returns the blocks freed longest ago, which are to be evicted.
    pub(super) fn surplus(&self) -> Vec<u32> {
        let kept = self.kept;
        let old = |b: &HeapBlock| b.slot == FREED && self.frees.wrapping_sub(b.stamp) as usize > kept / STAY;
        (0..).zip(&self.all).filter(|(_, b)| old(b)).map(|(block, _)| block).collect()
    }

    /// Returns the number of frees since the block was freed, modulo 2^32.
    #[inline]
    pub(super) fn frees_since(&self, block: u32) -> Option<usize> {
        self.get(block).map(|b| self.frees.wrapping_sub(b.stamp).wrapping_sub(1) as usize)
    }

    /// Evicts a block, which must no longer be in any list.
    pub(super) fn forget(&mut self, block: u32) {
        let Some(b) = self.get_mut(block) else { return };
        b.slot = FORGOTTEN;
        let address = b.address;
        self.places.remove(address);
        self.spare.push(block);
    }
}
