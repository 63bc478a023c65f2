//! The state of one context, a value of the leaf that distinguishes contexts (a thread, an arena): the order of its allocations,
//! its free lists, and where its fresh memory goes on.

use super::super::NONE;
use super::blocks::{FREED, HeapBlock, HeapBlocks};
use super::classes::Classes;
use super::freed::{AFTER, BEFORE, DISTANCE, NEWEST};
use super::order::LiveOrder;

/// Pointers into fresh memory that are kept.
pub(super) const BUMPS: usize = 8;
/// Frees that are remembered one by one.
pub(super) const RECENT: usize = 128;

#[derive(Clone, Debug)]
pub(super) struct HeapContext {
    /// The number that distinguishes it from others.
    pub(super) by: u64,
    pub(super) classes: Classes,
    pub(super) order: LiveOrder,
    /// Ends of the objects allocated last in fresh memory, the latest first.
    pub(super) bumps: [u64; BUMPS],
    /// The addresses freed last, 0 where there are none yet; `recent_at` is where the next goes.
    recent: [u64; RECENT],
    recent_at: usize,
    /// The address that was a miss last.
    pub(super) last_miss: u64,
}

impl HeapContext {
    pub(super) fn new(by: u64) -> Self {
        Self::with(by, Classes::new(), LiveOrder::default())
    }

    /// As [`new`](Self::new), in the memory of a context that is not wanted any more.
    pub(super) fn again(mut self, by: u64) -> Self {
        self.classes.clear();
        self.order.clear();
        Self::with(by, self.classes, self.order)
    }

    fn with(by: u64, classes: Classes, order: LiveOrder) -> Self {
        Self { by, classes, order, bumps: [0; BUMPS], recent: [0; RECENT], recent_at: 0, last_miss: 0 }
    }

    /// The address freed `k` frees ago.
    #[inline]
    pub(super) fn recent(&self, k: usize) -> u64 {
        let at = (self.recent_at + 2 * RECENT - 1 - k) % RECENT;
        self.recent.get(at).copied().unwrap_or(0)
    }

    /// How many frees ago this address was freed.
    pub(super) fn recency(&self, address: u64) -> Option<usize> {
        let (newer, older) = self.recent.split_at_checked(self.recent_at)?;
        // Newest first; a ring's search in two halves.
        match newer.iter().rposition(|&freed| freed == address) {
            Some(at) => Some(self.recent_at - 1 - at),
            None => older.iter().rposition(|&freed| freed == address).map(|at| RECENT - 1 - at),
        }
    }

    /// Notes a free.
    #[inline]
    pub(super) fn note_freed(&mut self, address: u64) {
        if let Some(entry) = self.recent.get_mut(self.recent_at) {
            *entry = address;
        }
        self.recent_at = (self.recent_at + 1) % RECENT;
    }

    /// A bump pointer of this index is used: it comes first, and goes on behind the new object.
    #[inline]
    pub(super) fn bump(&mut self, index: usize, end: u64) {
        if index > 0
            && let Some(moved) = self.bumps.get_mut(..=index)
        {
            moved.rotate_right(1);
        }
        self.bumps[0] = end;
    }

    /// The live object behind the code of a free that needs no element.
    #[inline(always)]
    pub(super) fn by_rank(&self, code: u64) -> Option<u32> {
        match code {
            0..AFTER => self.order.newest(code - NEWEST),
            AFTER..BEFORE => self.order.after_freed(code - AFTER),
            BEFORE..DISTANCE => self.order.before_freed(code - BEFORE),
            _ => None,
        }
    }

    /// Puts the block of an address, freed just now, on top of its class.
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

    /// Whether the newest freed object of a class is at this address, which is not 0.
    #[inline(always)]
    pub(super) fn is_newest(&self, blocks: &HeapBlocks, class: u32, address: u64) -> bool {
        let newest = self.classes.get(class).and_then(|class| blocks.get(class.newest));
        newest.is_some_and(|block| block.address == address)
    }

    /// Allocates the newest freed object of a class again, and gives its address. `None`: the class has none, or the order no capacity. The
    /// order may be [sparse](LiveOrder::is_sparse) afterwards.
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

    /// An object of this context is freed by it: its address.
    #[inline(always)]
    pub(super) fn free_own(&mut self, blocks: &mut HeapBlocks, block: u32) -> Option<u64> {
        let &HeapBlock { address, slot, class, .. } = blocks.get(block)?;
        self.order.bury(slot as usize, true);
        blocks.count_dead();
        self.push(blocks, block, (class, address));
        Some(address)
    }

    /// The neighbours of a freed block in its class, the older and the newer one.
    #[inline]
    pub(super) fn neighbours(&self, block: u32, b: &HeapBlock) -> (u32, u32) {
        // The newest one's link to a newer one is out of date.
        let newest = self.classes.get(b.class).is_some_and(|list| list.newest == block);
        (b.older, if newest { NONE } else { b.newer })
    }

    /// Takes a block out of its class. `taken`: to be used again, so its neighbours may be next.
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
