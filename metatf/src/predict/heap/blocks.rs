//! Every address the model knows: live objects, and freed ones until too many of them were not used again.

use super::super::NONE;
use super::places::AddressIndex;

/// An object, or where one was. Half a line of cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct HeapBlock {
    pub(super) address: u64,
    /// Whose it is: the context that allocated it, or that freed it.
    pub(super) context: u32,
    /// Its class in that context.
    pub(super) class: u32,
    /// Live: its place in the context's order of allocation. [`FREED`] or [`FORGOTTEN`] otherwise.
    pub(super) slot: u32,
    /// Freed: neighbours in its class. That there is none newer the class knows; then this is out of date.
    pub(super) older: u32,
    pub(super) newer: u32,
    /// Freed: how many frees there had been, modulo 2^32.
    stamp: u32,
}

/// Slot of a block that was freed.
pub(super) const FREED: u32 = u32::MAX;
/// Slot of an entry that is used again.
pub(super) const FORGOTTEN: u32 = u32::MAX - 1;

/// Freed blocks that are kept whatever the heap's size.
const KEPT: usize = 4096;
/// Freed blocks that are kept for each block of the largest number that were live at a time.
const KEPT_PER_LIVE: usize = 4;
/// The latest of this many of them stay when there are more.
const STAY: usize = 2;

/// The blocks, by index and by address.
#[derive(Clone, Debug)]
pub(super) struct HeapBlocks {
    all: Vec<HeapBlock>,
    spare: Vec<u32>,
    places: AddressIndex,
    live: usize,
    /// The largest number that were live at a time.
    most: usize,
    freed: usize,
    /// Freed blocks that are kept at most, by `most`.
    kept: usize,
    /// Frees so far, modulo 2^32.
    frees: u32,
}

impl HeapBlock {
    /// A new object.
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

    /// Forgets all, but keeps memory.
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

    /// The block at an address.
    #[inline(always)]
    pub(super) fn at(&self, address: u64) -> Option<u32> {
        self.places.get(address)
    }

    #[inline]
    pub(super) fn is_live(&self, block: u32) -> bool {
        self.get(block).is_some_and(|b| b.slot < FORGOTTEN)
    }

    /// Whether `block` is a freed one.
    #[inline]
    pub(super) fn is_freed(&self, block: u32) -> bool {
        self.get(block).is_some_and(|b| b.slot == FREED)
    }

    /// Whether `block` is a freed one at this address.
    #[inline]
    pub(super) fn is_freed_at(&self, block: u32, address: u64) -> bool {
        self.get(block).is_some_and(|b| b.slot == FREED && b.address == address)
    }

    /// The block at an address, and whether it was known; where none is, `new` is put there. `None` where there are 2^32 of
    /// them.
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

    /// A block is live from now on.
    #[inline]
    pub(super) fn count_live(&mut self) {
        self.live += 1;
        if self.live > self.most {
            self.most = self.live;
            self.kept += KEPT_PER_LIVE;
        }
    }

    /// A block is not live any more.
    #[inline]
    pub(super) fn count_dead(&mut self) {
        self.live -= 1;
    }

    /// Notes that a block was freed: of a class, the newest one, before which there is `older`.
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

    /// A freed block is used again, or forgotten.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.freed -= 1;
    }

    /// How many addresses are known.
    #[inline]
    pub(super) fn known(&self) -> usize {
        self.all.len() - self.spare.len()
    }

    /// Whether more freed blocks are kept than should be.
    #[inline]
    pub(super) fn has_surplus(&self) -> bool {
        self.freed > self.kept
    }

    /// The blocks freed longest ago, all but as many as stay when there are too many.
    pub(super) fn surplus(&self) -> Vec<u32> {
        let kept = self.kept;
        let old = |b: &HeapBlock| b.slot == FREED && self.frees.wrapping_sub(b.stamp) as usize > kept / STAY;
        (0..).zip(&self.all).filter(|(_, b)| old(b)).map(|(block, _)| block).collect()
    }

    /// How many frees there have been since a freed block's, modulo 2^32.
    #[inline]
    pub(super) fn frees_since(&self, block: u32) -> Option<usize> {
        self.get(block).map(|b| self.frees.wrapping_sub(b.stamp).wrapping_sub(1) as usize)
    }

    /// Forgets a block that is in no list any more.
    pub(super) fn forget(&mut self, block: u32) {
        let Some(b) = self.get_mut(block) else { return };
        b.slot = FORGOTTEN;
        let address = b.address;
        self.places.remove(address);
        self.spare.push(block);
    }
}
