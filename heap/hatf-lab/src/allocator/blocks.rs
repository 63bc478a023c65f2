//! Blocks with boundary tags. Each block records whether it is free and which blocks are its neighbours in memory.

/// The null block number.
pub(super) const NONE: u32 = u32::MAX;

/// A block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) address: u64,
    /// The size in bytes, including tags.
    pub(super) size: u64,
    /// The neighbours in memory.
    pub(super) below: u32,
    pub(super) above: u32,
    /// The neighbours in the free list, if the allocator has a free list.
    pub(super) next: u32,
    pub(super) previous: u32,
    pub(super) free: bool,
    /// The number of the list that contains the block, if the allocator has several lists.
    pub(super) list: u16,
}

const EMPTY: Block =
    Block { address: 0, size: 0, below: NONE, above: NONE, next: NONE, previous: NONE, free: false, list: 0 };

/// All blocks of a heap, which they cover without gaps.
#[derive(Debug)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    spare: Vec<u32>,
    /// The last block of the heap.
    top: u32,
    heap: u64,
}

impl Blocks {
    pub(super) fn new() -> Self {
        Self { blocks: Vec::new(), spare: Vec::new(), top: NONE, heap: 0 }
    }

    pub(super) fn heap(&self) -> u64 {
        self.heap
    }

    /// Returns a block. For [`NONE`], returns an empty block marked as used.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Block {
        self.blocks.get(id as usize).copied().unwrap_or(EMPTY)
    }

    #[inline]
    pub(super) fn edit(&mut self, id: u32, edit: impl FnOnce(&mut Block)) {
        if let Some(block) = self.blocks.get_mut(id as usize) {
            edit(block);
        }
    }

    /// Returns the last block of the heap.
    pub(super) fn top(&self) -> Block {
        self.get(self.top)
    }

    /// Returns the number of the last block of the heap.
    pub(super) fn top_id(&self) -> u32 {
        self.top
    }

    /// Returns `bytes` from the end of the heap to the system. The last block must be free and larger than `bytes`.
    pub(super) fn shrink(&mut self, bytes: u64) {
        let top = self.top;
        self.edit(top, |block| block.size -= bytes);
        self.heap -= bytes;
    }

    /// Returns a reference to a block.
    #[inline]
    pub(super) fn peek(&self, id: u32) -> Option<&Block> {
        self.blocks.get(id as usize)
    }

    fn add(&mut self, block: Block) -> Option<u32> {
        if let Some(id) = self.spare.pop() {
            self.edit(id, |place| *place = block);
            return Some(id);
        }
        let id = u32::try_from(self.blocks.len()).ok().filter(|id| *id != NONE)?;
        self.blocks.push(block);
        Some(id)
    }

    /// Adds bytes at the end of the heap by growing a free top block or by appending a free block. Returns the block
    /// and whether it is new.
    pub(super) fn grow(&mut self, bytes: u64) -> Option<(u32, bool)> {
        let top = self.top;
        if self.get(top).free {
            self.edit(top, |block| block.size += bytes);
            self.heap += bytes;
            return Some((top, false));
        }
        let id = self.add(Block { address: self.heap, size: bytes, below: top, free: true, ..EMPTY })?;
        self.edit(top, |block| block.above = id);
        (self.top, self.heap) = (id, self.heap + bytes);
        Some((id, true))
    }

    /// Splits a used block of `size` bytes off the low end of a free block.
    pub(super) fn cut(&mut self, id: u32, size: u64) -> Option<u32> {
        let Block { address, below, .. } = self.get(id);
        let used = self.add(Block { address, size, below, above: id, ..EMPTY })?;
        self.edit(below, |block| block.above = used);
        self.edit(id, |block| {
            block.address += size;
            block.size -= size;
            block.below = used;
        });
        Some(used)
    }

    /// Merges the block above `id` into block `id`.
    pub(super) fn absorb_above(&mut self, id: u32) {
        let gone = self.get(id).above;
        let Block { size, above, .. } = self.get(gone);
        self.edit(id, |block| {
            block.size += size;
            block.above = above;
        });
        self.edit(above, |block| block.below = id);
        if self.top == gone {
            self.top = id;
        }
        self.spare.push(gone);
    }

    /// Merges the block below `id` into block `id`.
    pub(super) fn absorb_below(&mut self, id: u32) {
        let gone = self.get(id).below;
        let Block { address, size, below, .. } = self.get(gone);
        self.edit(id, |block| {
            block.address = address;
            block.size += size;
            block.below = below;
        });
        self.edit(below, |block| block.above = id);
        self.spare.push(gone);
    }

    /// Checks a block against its neighbours in memory.
    pub(super) fn check_one(&self, id: u32) -> Result<(), String> {
        let block = self.get(id);
        let (below, above) = (self.get(block.below), self.get(block.above));
        let end = block.address + block.size;
        let wrong = if block.below != NONE && below.address + below.size != block.address {
            "does not start at the end of the block below"
        } else if block.below != NONE && below.above != id || block.above != NONE && above.below != id {
            "is not linked from its neighbours"
        } else if block.above != NONE && above.address != end || block.above == NONE && end != self.heap {
            "does not end at the start of the next block"
        } else if block.free && (below.free || above.free) {
            "is free next to a free block"
        } else {
            return Ok(());
        };
        Err(format!("the block at {} {wrong}", block.address))
    }

    /// Checks that the blocks cover the heap without gaps. Returns the free blocks from the top down.
    pub(super) fn check_all(&self) -> Result<Vec<u32>, String> {
        let mut free = Vec::new();
        let (mut at, mut end, mut count) = (self.top, self.heap, 0);
        while at != NONE {
            self.check_one(at)?;
            let block = self.get(at);
            if block.address + block.size != end {
                return Err(format!("a gap below {end}"));
            }
            if block.free {
                free.push(at);
            }
            (at, end, count) = (block.below, block.address, count + 1);
        }
        if end != 0 || count + self.spare.len() != self.blocks.len() {
            let (spare, all) = (self.spare.len(), self.blocks.len());
            return Err(format!("{count} of {all} blocks are linked, {spare} are spare, and the list ends at {end}"));
        }
        Ok(free)
    }
}
