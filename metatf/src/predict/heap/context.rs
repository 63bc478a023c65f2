//! The state of one context (such as a thread or an arena), which is identified by a value of the leaf that
//! distinguishes contexts. The state consists of the allocation order, the free lists, and the ends of fresh memory.

use super::super::NONE;
use super::blocks::{FREED, HeapBlock, HeapBlocks};
use super::classes::Classes;
use super::freed::{AFTER, BEFORE, DISTANCE, NEWEST};
use super::order::LiveOrder;

/// Number of bump pointers, which point to the ends of objects in fresh memory.
pub(super) const BUMPS: usize = 8;
/// Number of recent frees stored individually.
pub(super) const RECENT: usize = 128;

#[derive(Clone, Debug)]
pub(super) struct HeapContext {
    /// The number that identifies the context.
    pub(super) by: u64,
    pub(super) classes: Classes,
    pub(super) order: LiveOrder,
    /// Ends of the objects most recently allocated in fresh memory, most recent first.
    pub(super) bumps: [u64; BUMPS],
    /// A ring buffer of the most recently freed addresses, in which unused entries are 0. `recent_at` is the position
    /// of the next entry to be written.
    recent: [u64; RECENT],
    recent_at: usize,
    /// The address that was most recently coded as a miss.
    pub(super) last_miss: u64,
}

impl HeapContext {
    pub(super) fn new(by: u64) -> Self {
        Self::with(by, Classes::new(), LiveOrder::default())
    }

    /// Creates a context like [`new`](Self::new), reusing the memory of a discarded context.
    pub(super) fn again(mut self, by: u64) -> Self {
        self.classes.clear();
        self.order.clear();
        Self::with(by, self.classes, self.order)
    }

    fn with(by: u64, classes: Classes, order: LiveOrder) -> Self {
        Self { by, classes, order, bumps: [0; BUMPS], recent: [0; RECENT], recent_at: 0, last_miss: 0 }
    }

    /// Returns the address freed `k` frees ago.
    #[inline]
    pub(super) fn recent(&self, k: usize) -> u64 {
        let at = (self.recent_at + 2 * RECENT - 1 - k) % RECENT;
        self.recent.get(at).copied().unwrap_or(0)
    }

    /// Returns how many frees ago this address was freed.
    pub(super) fn recency(&self, address: u64) -> Option<usize> {
        let (newer, older) = self.recent.split_at_checked(self.recent_at)?;
        // Search the two halves of the ring, newest first.
        match newer.iter().rposition(|&freed| freed == address) {
            Some(at) => Some(self.recent_at - 1 - at),
            None => older.iter().rposition(|&freed| freed == address).map(|at| RECENT - 1 - at),
        }
    }

    /// Records a free.
    #[inline]
    pub(super) fn note_freed(&mut self, address: u64) {
        if let Some(entry) = self.recent.get_mut(self.recent_at) {
            *entry = address;
        }
        self.recent_at = (self.recent_at + 1) % RECENT;
    }

    /// Uses the bump pointer with this index, which moves it to the front and advances it past the new object.
    #[inline]
    pub(super) fn bump(&mut self, index: usize, end: u64) {
        if index > 0
            && let Some(moved) = self.bumps.get_mut(..=index)
        {
            moved.rotate_right(1);
        }
        self.bumps[0] = end;
    }

    /// Returns the live object that a free's code denotes, if the code needs no stream section element.
    #[inline(always)]
    pub(super) fn by_rank(&self, code: u64) -> Option<u32> {
        match code {
            0..AFTER => self.order.newest(code - NEWEST),
            AFTER..BEFORE => self.order.after_freed(code - AFTER),
            BEFORE..DISTANCE => self.order.before_freed(code - BEFORE),
            _ => None,
        }
    }

    /// Adds the block at an address that was just freed to the top of its class.
    #[inline(always)]
    pub(super) fn push(&mut self, blocks: &mut HeapBlocks, block: u32, (class, address): (u32, u64)) {
        let Some(list) = self.classes.get_mut(class) else { return };
        let top = list.newest;
        list.newest = block;
        if let Some(b) = blocks.get_mut(top) {
            b.newer = block;
        }
        blocks.enter(block, class, top);
        self.note_freed(address);
    }

    /// Returns whether the newest freed object of a class is at this address, which must not be 0.
    #[inline(always)]
    pub(super) fn is_newest(&self, blocks: &HeapBlocks, class: u32, address: u64) -> bool {
        let newest = self.classes.get(class).and_then(|class| blocks.get(class.newest));
        newest.is_some_and(|block| block.address == address)
    }

    /// Reallocates the newest freed object of a class and returns its address. Returns `None` if the class has no freed
    /// object or the order has no capacity. The order may be [sparse](LiveOrder::is_sparse) afterwards.
    #[inline(always)]
    pub(super) fn take_newest(&mut self, blocks: &mut HeapBlocks, class: u32) -> Option<u64> {
        let list = self.classes.get_mut(class)?;
        let block = list.newest;
        let b = blocks.get_mut(block)?;
        b.slot = self.order.put(block)?;
        let (address, older) = (b.address, b.older);
        (list.newest, list.older, list.newer) = (older, older, NONE);
        blocks.leave();
        blocks.count_live();
        Some(address)
    }

    /// Frees an object of this context and returns its address.
    #[inline(always)]
    pub(super) fn free_own(&mut self, blocks: &mut HeapBlocks, block: u32) -> Option<u64> {
        let &HeapBlock { address, slot, class, .. } = blocks.get(block)?;
        self.order.bury(slot as usize, true);
        blocks.count_dead();
        self.push(blocks, block, (class, address));
        Some(address)
    }

    /// Returns the neighbors of a freed block in its class, the older one and the newer one.
    #[inline]
    pub(super) fn neighbours(&self, block: u32, b: &HeapBlock) -> (u32, u32) {
        // The `newer` link of the newest block is not maintained.
        let newest = self.classes.get(b.class).is_some_and(|list| list.newest == block);
        (b.older, if newest { NONE } else { b.newer })
    }

    /// Removes a block from its class. If `taken` is set, the block is about to be reused, so its neighbors become
    /// candidates for the next allocation.
    #[inline(always)]
    pub(super) fn unlink(&mut self, blocks: &mut HeapBlocks, block: u32, taken: bool) {
        let Some(b) = blocks.get(block).filter(|b| b.slot == FREED) else { return };
        let (class, (older, newer)) = (b.class, self.neighbours(block, b));
        let Some(list) = self.classes.get_mut(class) else { return };
        if taken || list.older == block {
            list.older = older;
        }
        if taken || list.newer == block {
            list.newer = newer;
        }
        if let Some(b) = blocks.get_mut(older) {
            b.newer = newer;
        }
        match blocks.get_mut(newer) {
            Some(b) => b.older = older,
            None => list.newest = older,
        }
    }
}
