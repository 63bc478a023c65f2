//! The live objects of a context in the order of their allocation.
//!
//! An object keeps its slot until the order is closed up, so the slot of a dead object is a gap until then. One bit per
//! slot marks the live objects, so the counts in codes can be computed from the bits of a single word.

use super::blocks::{FORGOTTEN, HeapBlocks};
use std::cmp::Ordering;

/// Number of slots that a rank can cover, which is the number of bits in a word.
const WINDOW: usize = 64;
/// An order shorter than this is never closed up.
const SHORT: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(super) struct LiveOrder {
    /// The block of each slot, including the former blocks of dead objects. Spare capacity follows the last slot in
    /// use.
    blocks: Vec<u32>,
    /// Number of slots in use.
    slots: usize,
    /// The live slots, as a bit set with one word for every [`WINDOW`] slots, including spare ones. All bits after the
    /// last slot are 0.
    alive: Vec<u64>,
    live: usize,
    /// The slot of the most recently freed object.
    freed_slot: usize,
}

#[inline]
fn word_and_bit(slot: usize) -> (usize, u32) {
    #[allow(clippy::cast_possible_truncation, reason = "less than 64")]
    let bit = (slot % WINDOW) as u32;
    (slot / WINDOW, bit)
}

impl LiveOrder {
    /// Returns the number of slots in use, including dead ones. The last one is live.
    #[inline]
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        self.alive.get(index).copied().unwrap_or(0)
    }

    /// Returns a bit mask of the live slots among the 64 slots from `start` on. The lowest bit is slot `start`.
    #[inline]
    fn from(&self, start: usize) -> u64 {
        let (index, bit) = word_and_bit(start);
        // Uses two shifts, because a single shift by 64 would have no effect.
        self.word(index) >> bit | self.word(index + 1) << (63 - bit) << 1
    }

    /// Returns a bit mask of the live slots among the 64 slots before `end`. The highest bit is slot `end - 1`.
    #[inline]
    fn until(&self, end: usize) -> u64 {
        let (index, bit) = word_and_bit(end);
        let before = if index == 0 { 0 } else { self.word(index - 1) };
        self.word(index) << (63 - bit) << 1 | before >> bit
    }

    #[inline]
    fn block(&self, slot: usize) -> Option<u32> {
        self.blocks.get(slot).copied()
    }

    /// Returns the live object in a slot.
    #[inline]
    pub(super) fn slot(&self, slot: usize) -> Option<u32> {
        let (index, bit) = word_and_bit(slot);
        if self.word(index) >> bit & 1 == 1 { self.block(slot) } else { None }
    }

    /// Returns the slot at `distance` from the most recently freed object.
    #[inline]
    pub(super) fn slot_from_freed(&self, distance: u64) -> Option<usize> {
        usize::try_from((self.freed_slot as u64).wrapping_add(distance)).ok()
    }

    /// Returns the distance of a slot from the most recently freed object.
    #[inline]
    pub(super) fn distance_from_freed(&self, slot: usize) -> u64 {
        (slot as u64).wrapping_sub(self.freed_slot as u64)
    }

    /// Returns the most recently allocated live object.
    #[inline(always)]
    pub(super) fn last(&self) -> Option<u32> {
        self.block(self.slots.checked_sub(1)?)
    }

    /// Returns the live object that has `rank` newer live objects, or `None` if it is outside the window.
    #[inline(always)]
    pub(super) fn newest(&self, rank: u64) -> Option<u32> {
        if rank == 0 { self.last() } else { self.before(self.slots(), rank) }
    }

    /// Returns the live object before the most recently freed one, with `rank` live objects between them.
    #[inline(always)]
    pub(super) fn before_freed(&self, rank: u64) -> Option<u32> {
        self.before(self.freed_slot.min(self.slots()), rank)
    }

    #[inline]
    fn before(&self, end: usize, rank: u64) -> Option<u32> {
        let mut alive = self.until(end);
        for _ in 0..rank {
            if alive == 0 {
                return None;
            }
            alive ^= 1 << (63 - alive.leading_zeros());
        }
        if alive == 0 { None } else { self.block(end - 1 - alive.leading_zeros() as usize) }
    }

    /// Returns the live object after the most recently freed one, with `rank` live objects between them.
    #[inline(always)]
    pub(super) fn after_freed(&self, rank: u64) -> Option<u32> {
        let start = self.freed_slot + 1;
        let mut alive = self.from(start);
        for _ in 0..rank {
            alive &= alive.wrapping_sub(1);
        }
        if alive == 0 { None } else { self.block(start + alive.trailing_zeros() as usize) }
    }

    /// Returns the number of live objects that are newer than the object in a slot, or `None` if the slot is outside
    /// the window.
    #[inline]
    pub(super) fn rank_from_newest(&self, slot: usize) -> Option<u64> {
        self.rank(slot + 1, self.slots())
    }

    /// Returns the number of live objects between the most recently freed one and a slot after it.
    #[inline]
    pub(super) fn rank_after_freed(&self, slot: usize) -> Option<u64> {
        if slot > self.freed_slot { self.rank(self.freed_slot + 1, slot) } else { None }
    }

    /// Returns the number of live objects between the most recently freed one and a slot before it.
    #[inline]
    pub(super) fn rank_before_freed(&self, slot: usize) -> Option<u64> {
        let end = self.freed_slot.min(self.slots());
        if slot < end { self.rank(slot + 1, end) } else { None }
    }

    /// Returns the number of live objects in a range of slots, if the range is shorter than the window.
    #[inline]
    fn rank(&self, from: usize, to: usize) -> Option<u64> {
        let slots = to.checked_sub(from).filter(|&slots| slots < WINDOW)?;
        Some((self.from(from) & ((1 << slots) - 1)).count_ones().into())
    }

    /// Removes everything but keeps the memory.
    pub(super) fn clear(&mut self) {
        let words = self.slots.div_ceil(WINDOW);
        if let Some(alive) = self.alive.get_mut(..words) {
            alive.fill(0);
        }
        (self.slots, self.live, self.freed_slot) = (0, 0, 0);
    }

    /// Appends a new object and returns its slot. Returns `None` if there are already 2^32 slots.
    #[inline(always)]
    pub(super) fn push(&mut self, block: u32) -> Option<u32> {
        if !self.has_room() {
            self.grow();
        }
        self.put(block)
    }

    /// Returns whether there is capacity for another object.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.slots < self.blocks.len()
    }

    /// Appends an object like [`push`](Self::push) if there is capacity. Returns `None` otherwise.
    #[inline(always)]
    pub(super) fn put(&mut self, block: u32) -> Option<u32> {
        let number = u32::try_from(self.slots).ok().filter(|&slot| slot < FORGOTTEN)?;
        let (index, bit) = word_and_bit(self.slots);
        let (slot, word) = (self.blocks.get_mut(self.slots)?, self.alive.get_mut(index)?);
        *slot = block;
        *word |= 1 << bit;
        self.slots += 1;
        self.live += 1;
        Some(number)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let length = (self.blocks.len() * 2).max(WINDOW);
        self.blocks.resize(length, 0);
        self.alive.resize(length / WINDOW, 0);
    }

    /// Marks the object in a slot as dead, because it was freed or because another object begins at its address.
    /// `freed_here` indicates whether this context freed the object.
    #[inline(always)]
    pub(super) fn bury(&mut self, slot: usize, freed_here: bool) {
        if freed_here {
            self.freed_slot = slot;
        }
        let (index, bit) = word_and_bit(slot);
        let Some(word) = self.alive.get_mut(index) else { return };
        *word &= !(1 << bit);
        self.live -= 1;
        if slot + 1 == self.slots {
            self.trim(index);
        }
    }

    /// After the object in the last slot has died, shrinks the slots in use so that they end with the last live slot.
    /// `from` is the index of the word that contains the old last slot.
    #[inline(always)]
    fn trim(&mut self, from: usize) {
        let mut index = from;
        self.slots = loop {
            let word = self.word(index);
            if word != 0 {
                break (index + 1) * WINDOW - word.leading_zeros() as usize;
            }
            if index == 0 {
                break 0;
            }
            index -= 1;
        };
    }

    /// Returns whether most objects in the order are dead.
    #[inline(always)]
    pub(super) fn is_sparse(&self) -> bool {
        self.slots > SHORT && self.slots > 2 * self.live
    }

    /// Closes up the order if most of its objects are dead.
    #[inline]
    pub(super) fn close_up(&mut self, blocks: &mut HeapBlocks) {
        if self.is_sparse() {
            self.close_up_now(blocks);
        }
    }

    #[cold]
    pub(super) fn close_up_now(&mut self, blocks: &mut HeapBlocks) {
        let (mut to, mut before) = (0, 0);
        let in_use = self.slots.div_ceil(WINDOW);
        for from in 0..self.slots {
            let Some(block) = self.slot(from) else { continue };
            if let (Some(b), Ok(slot)) = (blocks.get_mut(block), u32::try_from(to)) {
                b.slot = slot;
            }
            if let Some(slot) = self.blocks.get_mut(to) {
                *slot = block;
            }
            before += usize::from(from < self.freed_slot);
            to += 1;
        }
        self.freed_slot = before;
        self.slots = to;
        let (words, bits) = word_and_bit(to);
        for (index, word) in self.alive.iter_mut().take(in_use).enumerate() {
            *word = match index.cmp(&words) {
                Ordering::Less => u64::MAX,
                Ordering::Equal => (1 << bits) - 1,
                Ordering::Greater => 0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{pick, random};
    use super::*;

    /// A reference implementation that examines every slot individually.
    #[derive(Default)]
    struct Plain {
        slots: Vec<Option<u32>>,
        freed: usize,
    }

    impl Plain {
        fn live(&self, slots: std::ops::Range<usize>) -> Vec<u32> {
            self.slots.get(slots).unwrap_or_default().iter().flatten().copied().collect()
        }

        fn bury(&mut self, slot: usize) {
            self.slots[slot] = None;
            self.freed = slot;
            while self.slots.last() == Some(&None) {
                self.slots.pop();
            }
        }
    }

    #[test]
    fn like_a_plain_one() {
        let (mut order, mut plain, mut blocks) = (LiveOrder::default(), Plain::default(), HeapBlocks::new());
        let mut random = random(1);
        let mut random = |n: usize| pick(random(n as u64));
        for block in 0..40_000 {
            order.push(block);
            plain.slots.push(Some(block));
            for _ in 0..random(if block % 4000 < 3000 { 3 } else { 20 }) {
                let near = plain.slots.len().saturating_sub([3, 100, 100_000][random(3)]);
                let slot = near + random((plain.slots.len() - near).max(1));
                if order.slot(slot).is_some() {
                    order.bury(slot, true);
                    plain.bury(slot);
                }
            }
            let (end, freed) = (plain.slots.len(), plain.freed.min(plain.slots.len()));
            assert_eq!((order.slots(), order.live), (end, plain.slots.iter().flatten().count()));
            let newest = plain.live(end.saturating_sub(WINDOW)..end);
            let before = plain.live(freed.saturating_sub(WINDOW)..freed);
            let after = plain.live(plain.freed + 1..end.min(plain.freed + 1 + WINDOW).max(plain.freed + 1));
            for rank in [0, 1, 2, random(WINDOW)] {
                let number = rank as u64;
                assert_eq!(order.newest(number), newest.iter().rev().nth(rank).copied());
                assert_eq!(order.before_freed(number), before.iter().rev().nth(rank).copied());
                assert_eq!(order.after_freed(number), after.get(rank).copied());
            }
            let slot = end.saturating_sub(random(WINDOW + 5));
            if let Some(rank) = order.rank_from_newest(slot) {
                assert_eq!(rank, plain.live(slot + 1..end).len() as u64);
            }
            if block % 1000 == 0 {
                order.close_up_now(&mut blocks);
                plain.freed = plain.live(0..plain.freed.min(end)).len();
                plain.slots.retain(Option::is_some);
            }
        }
    }
}
