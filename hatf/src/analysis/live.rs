//! The blocks that are alive.

use hatf_lab::address::AddressMap;

/// A live block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) size: u64,
    /// When it began.
    pub(super) time: u64,
    /// Bytes that had been allocated by then, its own included.
    pub(super) before: u64,
    pub(super) heap: u64,
    /// The number of the stack that allocated it; 0: not known.
    pub(super) site: u64,
}

/// Live blocks by address, and their sum.
#[derive(Debug, Default)]
pub(super) struct Live {
    blocks: AddressMap<Block>,
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
