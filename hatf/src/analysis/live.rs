//! The blocks that are alive.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A live block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) size: u64,
    /// When it began.
    pub(super) time: u64,
    /// Bytes that had been allocated by then, its own included.
    pub(super) before: u64,
    pub(super) heap: u64,
}

/// Live blocks by address, and their sum.
#[derive(Debug, Default)]
pub(super) struct Live {
    blocks: HashMap<u64, Block, BuildHasherDefault<AddressHasher>>,
    bytes: u64,
}

impl Live {
    /// Puts a block in; the one that was there, if there was one, is thrown out.
    pub(super) fn insert(&mut self, address: u64, block: Block) -> Option<Block> {
        let before = self.blocks.insert(address, block);
        self.bytes = self.bytes.wrapping_add(block.size);
        if let Some(before) = before {
            self.bytes = self.bytes.wrapping_sub(before.size);
        }
        before
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<Block> {
        let block = self.blocks.remove(&address)?;
        self.bytes = self.bytes.wrapping_sub(block.size);
        Some(block)
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
        std::mem::take(&mut self.blocks).into_iter()
    }

    /// Takes the blocks of one heap out.
    pub(super) fn drain_heap(&mut self, heap: u64) -> Vec<(u64, Block)> {
        let taken: Vec<_> = self.blocks.extract_if(|_, block| block.heap == heap).collect();
        let bytes = taken.iter().fold(0, |sum: u64, (_, block)| sum.wrapping_add(block.size));
        self.bytes = self.bytes.wrapping_sub(bytes);
        taken
    }
}

/// Spreads addresses, whose low bits are zero. They come from a program under study, not from an
/// adversary; one who makes them collide slows down his own report.
#[derive(Debug, Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the fold is meant")]
    fn write_u64(&mut self, value: u64) {
        let mixed = u128::from(self.0 ^ value) * 0x9e37_79b9_7f4a_7c15;
        // Both halves of the product, folded.
        self.0 = (mixed ^ (mixed >> 64)) as u64;
    }
}
