//! Doubly linked lists of free blocks, with a bitmap of the non-empty lists.

use super::blocks::{Block, Blocks, NONE};

/// A set of numbered lists.
#[derive(Debug)]
pub(super) struct Lists {
    ends: Vec<(u32, u32)>,
    /// One bit per list, set if the list is not empty.
    filled: Vec<u64>,
}

impl Lists {
    pub(super) fn new(count: usize) -> Self {
        Self { ends: vec![(NONE, NONE); count], filled: vec![0; count.div_ceil(64)] }
    }

    /// Returns the first block of a list, or `NONE`.
    #[inline]
    pub(super) fn first(&self, list: usize) -> u32 {
        self.ends.get(list).map_or(NONE, |(first, _)| *first)
    }

    /// Returns the last block of a list, or `NONE`.
    #[inline]
    pub(super) fn last(&self, list: usize) -> u32 {
        self.ends.get(list).map_or(NONE, |(_, last)| *last)
    }

    /// Returns the first non-empty list in `from..end`.
    #[inline]
    pub(super) fn next_filled(&self, from: usize, end: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.filled.get(word)? & u64::MAX << (from % 64);
        while bits == 0 {
            word += 1;
            bits = *self.filled.get(word)?;
        }
        let list = word * 64 + bits.trailing_zeros() as usize;
        (list < end).then_some(list)
    }

    /// Inserts a block into a list before block `next`, or at the end if `next` is `NONE`.
    pub(super) fn insert_before(&mut self, blocks: &mut Blocks, list: usize, id: u32, next: u32) {
        let previous = if next == NONE { self.last(list) } else { blocks.get(next).previous };
        blocks.edit(id, |block| {
            (block.next, block.previous) = (next, previous);
            block.list = u16::try_from(list).unwrap_or(0);
        });
        blocks.edit(next, |block| block.previous = id);
        blocks.edit(previous, |block| block.next = id);
        let Some((first, last)) = self.ends.get_mut(list) else { return };
        if previous == NONE {
            *first = id;
        }
        if next == NONE {
            *last = id;
        }
        if let Some(word) = self.filled.get_mut(list / 64) {
            *word |= 1 << (list % 64);
        }
    }

    /// Puts a block at the front of a list.
    #[inline]
    pub(super) fn push(&mut self, blocks: &mut Blocks, list: usize, id: u32) {
        self.insert_before(blocks, list, id, self.first(list));
    }

    /// Removes a block from its list.
    pub(super) fn remove(&mut self, blocks: &mut Blocks, id: u32) {
        let Block { next, previous, list, .. } = blocks.get(id);
        let list = usize::from(list);
        blocks.edit(next, |block| block.previous = previous);
        blocks.edit(previous, |block| block.next = next);
        let Some((first, last)) = self.ends.get_mut(list) else { return };
        if previous == NONE {
            *first = next;
        }
        if next == NONE {
            *last = previous;
        }
        if *first == NONE
            && let Some(word) = self.filled.get_mut(list / 64)
        {
            *word &= !(1 << (list % 64));
        }
    }

    /// Checks that the lists contain exactly the free blocks.
    pub(super) fn check(&self, blocks: &Blocks, free: usize) -> Result<(), String> {
        let mut count = 0;
        for (list, (first, last)) in self.ends.iter().enumerate() {
            let (mut at, mut before) = (*first, NONE);
            while at != NONE {
                let block = blocks.get(at);
                if !block.free || block.previous != before || usize::from(block.list) != list || count > free {
                    return Err(format!("the block at {} is inconsistent with list {list}", block.address));
                }
                (before, at, count) = (at, block.next, count + 1);
            }
            let filled = self.filled.get(list / 64).is_some_and(|word| word >> (list % 64) & 1 == 1);
            if before != *last || filled != (*first != NONE) {
                return Err(format!("list {list} has an inconsistent end or bit"));
            }
        }
        if count == free { Ok(()) } else { Err(format!("the lists contain {count} blocks, but {free} are free")) }
    }
}
