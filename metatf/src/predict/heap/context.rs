//! What belongs to one value of the leaf that tells models apart (a thread, an arena): the order of its allocations,
//! its free lists, and where its fresh memory goes on.

use super::super::NONE;
use super::blocks::{Block, Blocks};
use super::classes::Classes;
use super::freed::{AFTER, BEFORE, DISTANCE, NEWEST};

/// Pointers into fresh memory that are kept.
pub(super) const BUMPS: usize = 8;
/// Frees that are remembered one by one.
pub(super) const RECENT: usize = 128;
/// Places in the order of allocation that are looked at.
const WINDOW: usize = 64;
/// An order of allocation shorter than this is never closed up.
const SHORT: usize = 1024;

#[derive(Clone, Debug)]
pub(super) struct Context {
    /// What tells it from others.
    pub(super) by: u64,
    pub(super) classes: Classes,
    /// Live objects in the order of their allocation; [`NONE`] where one has died.
    order: Vec<u32>,
    live: usize,
    /// Where the object freed last stood in `order`.
    freed_slot: usize,
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
        Self {
            by,
            classes: Classes::default(),
            order: Vec::new(),
            live: 0,
            freed_slot: 0,
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
        (0..RECENT).find(|&k| self.recent(k) == block)
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
        if let Some(moved) = self.bumps.get_mut(..=index) {
            moved.rotate_right(1);
        }
        self.bumps[0] = end;
    }

    /// The live object in a slot.
    #[inline]
    pub(super) fn slot(&self, slot: usize) -> Option<u32> {
        self.order.get(slot).copied().filter(|&block| block != NONE)
    }

    /// Slots in use, dead ones counted.
    #[inline]
    pub(super) fn slots(&self) -> usize {
        self.order.len()
    }

    /// The slot that `distance` leads to from the object freed last.
    #[inline]
    pub(super) fn slot_from_freed(&self, distance: u64) -> Option<usize> {
        usize::try_from((self.freed_slot as u64).wrapping_add(distance)).ok()
    }

    /// How far a slot is from the object freed last.
    #[inline]
    pub(super) fn distance_from_freed(&self, slot: usize) -> u64 {
        (slot as u64).wrapping_sub(self.freed_slot as u64)
    }

    /// Live objects between a slot and the newest; `None` beyond the window.
    #[inline]
    pub(super) fn rank_from_newest(&self, slot: usize) -> Option<usize> {
        self.rank(slot + 1, self.order.len())
    }

    /// The live object with `rank` newer ones.
    #[inline]
    pub(super) fn newest(&self, rank: usize) -> Option<u32> {
        let from = self.order.len().saturating_sub(WINDOW);
        self.order.get(from..)?.iter().rev().copied().filter(|&b| b != NONE).nth(rank)
    }

    /// Live objects between the one freed last and a slot after it.
    #[inline]
    pub(super) fn rank_after_freed(&self, slot: usize) -> Option<usize> {
        if slot > self.freed_slot { self.rank(self.freed_slot + 1, slot) } else { None }
    }

    /// The live object after the one freed last, `rank` between them.
    #[inline]
    pub(super) fn after_freed(&self, rank: usize) -> Option<u32> {
        let to = self.order.len().min(self.freed_slot + 1 + WINDOW);
        self.order.get(self.freed_slot + 1..to)?.iter().copied().filter(|&b| b != NONE).nth(rank)
    }

    /// Live objects between the one freed last and a slot before it.
    #[inline]
    pub(super) fn rank_before_freed(&self, slot: usize) -> Option<usize> {
        let end = self.freed_slot.min(self.order.len());
        if slot < end { self.rank(slot + 1, end) } else { None }
    }

    /// The live object before the one freed last, `rank` between them.
    #[inline]
    pub(super) fn before_freed(&self, rank: usize) -> Option<u32> {
        let end = self.freed_slot.min(self.order.len());
        self.order.get(end.saturating_sub(WINDOW)..end)?.iter().rev().copied().filter(|&b| b != NONE).nth(rank)
    }

    /// The live object behind the code of a free that needs no element.
    #[inline]
    pub(super) fn by_rank(&self, code: u64) -> Option<u32> {
        let rank = |from: u64| usize::try_from(code - from).unwrap_or(usize::MAX);
        match code {
            0..AFTER => self.newest(rank(NEWEST)),
            AFTER..BEFORE => self.after_freed(rank(AFTER)),
            BEFORE..DISTANCE => self.before_freed(rank(BEFORE)),
            _ => None,
        }
    }

    /// Live objects in some slots, where they are fewer than the window.
    #[inline]
    fn rank(&self, from: usize, to: usize) -> Option<usize> {
        let between = self.order.get(from..to).filter(|slots| slots.len() < WINDOW)?;
        Some(between.iter().filter(|&&b| b != NONE).count())
    }

    /// A new object at the end of the order; its slot. `None` where there are 2^32 of them.
    #[inline]
    pub(super) fn allocate(&mut self, block: u32) -> Option<u32> {
        let slot = u32::try_from(self.order.len()).ok().filter(|&slot| slot < super::blocks::FORGOTTEN)?;
        self.order.push(block);
        self.live += 1;
        Some(slot)
    }

    /// The object in a slot dies by a free (of this context, or of another), or because another begins at its address.
    #[inline]
    pub(super) fn bury(&mut self, slot: usize, freed_here: bool) {
        if let Some(entry) = self.order.get_mut(slot) {
            *entry = NONE;
            self.live -= 1;
        }
        if freed_here {
            self.freed_slot = slot;
        }
        while self.order.last() == Some(&NONE) {
            self.order.pop();
        }
    }

    /// Closes up the order where most of it is dead.
    #[inline]
    pub(super) fn close_up(&mut self, blocks: &mut Blocks) {
        if self.order.len() > SHORT && self.order.len() > 2 * self.live {
            self.close_up_now(blocks);
        }
    }

    #[cold]
    fn close_up_now(&mut self, blocks: &mut Blocks) {
        let before = self.order.iter().take(self.freed_slot).filter(|&&b| b != NONE).count();
        self.order.retain(|&block| block != NONE);
        for (slot, &block) in self.order.iter().enumerate() {
            if let (Some(b), Ok(slot)) = (blocks.get_mut(block), u32::try_from(slot)) {
                b.slot = slot;
            }
        }
        self.freed_slot = before;
    }

    /// Puts a freed block on top of its class.
    #[inline]
    pub(super) fn push(&mut self, blocks: &mut Blocks, block: u32, class: u32) {
        let Some(list) = self.classes.get_mut(class) else { return };
        let top = list.newest;
        list.newest = block;
        match blocks.get_mut(top) {
            Some(b) => b.newer = block,
            None => list.oldest = block,
        }
        if let Some(b) = blocks.get_mut(block) {
            b.class = class;
            b.older = top;
            b.newer = NONE;
        }
    }

    /// The newest freed object of a class begins anew: its address. `None`: the class has none.
    #[inline]
    pub(super) fn take_newest(&mut self, blocks: &mut Blocks, class: u32) -> Option<u64> {
        let list = self.classes.get_mut(class)?;
        let block = list.newest;
        let slot = u32::try_from(self.order.len()).ok().filter(|&slot| slot < super::blocks::FORGOTTEN)?;
        let b = blocks.get_mut(block)?;
        b.slot = slot;
        let (address, older) = (b.address, b.older);
        (list.newest, list.older, list.newer) = (older, older, NONE);
        match blocks.get_mut(older) {
            Some(b) => b.newer = NONE,
            None => list.oldest = NONE,
        }
        blocks.leave();
        blocks.count_live();
        if self.last_freed == block {
            self.last_freed = NONE;
        }
        self.order.push(block);
        self.live += 1;
        self.close_up(blocks);
        Some(address)
    }

    /// An object of this context is freed by it: its address.
    #[inline]
    pub(super) fn free_own(&mut self, blocks: &mut Blocks, block: u32) -> Option<u64> {
        let &Block { address, slot, class, .. } = blocks.get(block)?;
        self.bury(slot as usize, true);
        blocks.count_dead();
        self.push(blocks, block, class);
        self.note_freed(block);
        blocks.enter(block);
        Some(address)
    }

    /// Takes a block out of its class. `taken`: to be used again, so its neighbours may be next.
    #[inline]
    pub(super) fn unlink(&mut self, blocks: &mut Blocks, block: u32, taken: bool) {
        let Some(&Block { class, older, newer, .. }) = blocks.get(block) else { return };
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
