//! What belongs to one value of the leaf that tells models slow (a thread, an arena): the order of its allocations,
//! its free lists, and where its fresh memory goes on.

use super::super::NONE;
use super::blocks::{Block, Blocks, FREED};
use super::classes::Classes;
use super::freed::{AFTER, BEFORE, DISTANCE, NEWEST};
use super::order::Order;

/// Pointers into fresh memory that are kept.
pub(super) const BUMPS: usize = 8;
/// Frees that are remembered one by one.
pub(super) const RECENT: usize = 128;

#[derive(Clone, Debug)]
pub(super) struct Context {
    /// What tells it from others.
    pub(super) by: u64,
    pub(super) classes: Classes,
    pub(super) order: Order,
    /// The object freed last.
    pub(super) last_freed: u32,
    /// Ends of the objects allocated last in fresh memory, the latest first.
    pub(super) bumps: [u64; BUMPS],
    /// The objects freed last; `recent_at` is where the next goes.
    recent: [u32; RECENT],
    recent_at: usize,
    /// The address that was a miss last.
    pub(super) last_miss: u64,
}

impl Context {
    pub(super) fn new(by: u64) -> Self {
        Self::with(by, Classes::new(), Order::default())
    }

    /// As [`new`](Self::new), in the memory of a context that is not wanted any more.
    pub(super) fn again(mut self, by: u64) -> Self {
        self.classes.clear();
        self.order.clear();
        Self::with(by, self.classes, self.order)
    }

    fn with(by: u64, classes: Classes, order: Order) -> Self {
        Self {
            by,
            classes,
            order,
            last_freed: NONE,
            bumps: [0; BUMPS],
            recent: [NONE; RECENT],
            recent_at: 0,
            last_miss: 0,
        }
    }

    /// The object freed `k` frees ago.
    #[inline]
    pub(super) fn recent(&self, k: usize) -> u32 {
        let at = (self.recent_at + 2 * RECENT - 1 - k) % RECENT;
        self.recent.get(at).copied().unwrap_or(NONE)
    }

    /// How many frees ago this object was freed.
    pub(super) fn recency(&self, block: u32) -> Option<usize> {
        let (newer, older) = self.recent.split_at_checked(self.recent_at)?;
        // Newest first; a ring's search in two halves.
        match newer.iter().rposition(|&freed| freed == block) {
            Some(at) => Some(self.recent_at - 1 - at),
            None => older.iter().rposition(|&freed| freed == block).map(|at| RECENT - 1 - at),
        }
    }

    /// Notes a free.
    #[inline]
    pub(super) fn note_freed(&mut self, block: u32) {
        if let Some(entry) = self.recent.get_mut(self.recent_at) {
            *entry = block;
        }
        self.recent_at = (self.recent_at + 1) % RECENT;
        self.last_freed = block;
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

    /// Puts a block, freed just now, on top of its class.
    #[inline(always)]
    pub(super) fn push(&mut self, blocks: &mut Blocks, block: u32, class: u32) {
        let Some(list) = self.classes.get_mut(class) else { return };
        let top = list.newest;
        list.newest = block;
        match blocks.get_mut(top) {
            Some(b) => b.newer = block,
            None => list.oldest = block,
        }
        blocks.enter(block, class, top);
        self.note_freed(block);
    }

    /// The newest freed object of a class begins anew: its address. `None`: the class has none, or the order no room. The
    /// order may be [sparse](Order::is_sparse) afterwards.
    #[inline(always)]
    pub(super) fn take_newest(&mut self, blocks: &mut Blocks, class: u32) -> Option<u64> {
        let list = self.classes.get_mut(class)?;
        let block = list.newest;
        let b = blocks.get_mut(block)?;
        b.slot = self.order.put(block)?;
        let (address, older) = (b.address, b.older);
        (list.newest, list.older, list.newer) = (older, older, NONE);
        if older == NONE {
            list.oldest = NONE;
        }
        blocks.leave();
        blocks.count_live();
        if self.last_freed == block {
            self.last_freed = NONE;
        }
        Some(address)
    }

    /// An object of this context is freed by it: its address.
    #[inline(always)]
    pub(super) fn free_own(&mut self, blocks: &mut Blocks, block: u32) -> Option<u64> {
        let &Block { address, slot, class, .. } = blocks.get(block)?;
        self.order.bury(slot as usize, true);
        blocks.count_dead();
        self.push(blocks, block, class);
        Some(address)
    }

    /// The neighbours of a freed block in its class, the older and the newer one.
    #[inline]
    pub(super) fn neighbours(&self, block: u32, b: &Block) -> (u32, u32) {
        // What the newest one says of newer ones is out of date.
        let newest = self.classes.get(b.class).is_some_and(|list| list.newest == block);
        (b.older, if newest { NONE } else { b.newer })
    }

    /// Takes a block out of its class. `taken`: to be used again, so its neighbours may be next.
    #[inline]
    pub(super) fn unlink(&mut self, blocks: &mut Blocks, block: u32, taken: bool) {
        let Some(b) = blocks.get(block).filter(|b| b.slot == FREED) else { return };
        let (class, (older, newer)) = (b.class, self.neighbours(block, b));
        let Some(list) = self.classes.get_mut(class) else { return };
        if taken || list.older == block {
            list.older = older;
        }
        if taken || list.newer == block {
            list.newer = newer;
        }
        match blocks.get_mut(older) {
            Some(b) => b.newer = newer,
            None => list.oldest = newer,
        }
        match blocks.get_mut(newer) {
            Some(b) => b.older = older,
            None => list.newest = older,
        }
    }
}
