//! The blocks that are alive.

use std::collections::HashMap;

use hatf_lab::Contradictions;
use hatf_lab::blocks::Blocks;

/// A live block. There may be many at once, so it is kept small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) size: u64,
    /// When it began.
    pub(super) time: u64,
    /// Bytes that had been allocated by then, its own included.
    pub(super) before: u64,
    /// See [`Heaps::number`].
    pub(super) heap: u32,
    /// The number of the stack that allocated it; 0: not known.
    pub(super) site: u32,
}

/// Numbers heaps as they are met.
#[derive(Debug, Default)]
pub(super) struct Heaps {
    numbers: HashMap<u64, u32>,
    /// The last heap asked for, and its number.
    current: Option<(u64, u32)>,
}

impl Heaps {
    /// Returns the number of a heap. Those after the first 2^32 share one.
    pub(super) fn number(&mut self, heap: u64) -> u32 {
        match self.current {
            Some((current, number)) if current == heap => number,
            _ => {
                let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
                let number = *self.numbers.entry(heap).or_insert(next);
                self.current = Some((heap, number));
                number
            }
        }
    }
}

/// Live blocks by address, and their sum.
#[derive(Debug, Default)]
pub(super) struct Live {
    blocks: Blocks<Block>,
    bytes: u64,
}

impl Live {
    /// Puts a block in; the one that was there, if there was one, is thrown out.
    pub(super) fn insert(&mut self, address: u64, block: Block) -> Option<Block> {
        let before = self.blocks.make_way(address, |block| block.size);
        self.blocks.insert(address, block.size, block);
        self.bytes = self.bytes.wrapping_add(block.size);
        if let Some(before) = before {
            self.bytes = self.bytes.wrapping_sub(before.size);
        }
        before
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<Block> {
        let block = self.blocks.take(address, |block| block.size)?;
        self.bytes = self.bytes.wrapping_sub(block.size);
        Some(block)
    }

    /// Returns whether a block was freed at an address, and no other began there.
    pub(super) fn was_freed(&self, address: u64) -> bool {
        self.blocks.was_freed(address)
    }

    /// Counts a free at an address where nothing is live.
    pub(super) fn missing(&mut self, address: u64) {
        self.blocks.missing(address);
    }

    pub(super) fn contradictions(&self) -> Contradictions {
        self.blocks.contradictions()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Takes all blocks out.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u64, Block)> {
        self.bytes = 0;
        self.blocks.drain()
    }

    /// Takes the blocks of one heap out.
    pub(super) fn drain_heap(&mut self, heap: u32) -> Vec<(u64, Block)> {
        let of: Vec<u64> =
            self.blocks.iter().filter(|(_, block)| block.heap == heap).map(|(address, _)| address).collect();
        of.into_iter().filter_map(|address| Some((address, self.remove(address)?))).collect()
    }
}
