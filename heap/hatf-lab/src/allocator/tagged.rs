//! The allocators with boundary tags, FIRST and BEST, which differ only in the free list.
//!
//! Details that the paper leaves open follow Moraes' published malloc (in the CSRI library). These are tag sizes, the
//! smallest block, the sbrk unit, which of two merged neighbours keeps its position in the list, and the position of
//! the rover after a free.

use super::blocks::{Block, Blocks};
use super::{ADDRESS_SPACE, Act, Acts, Place};

/// Parameters that the paper leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagSettings {
    /// Bytes per word, a power of two. Each of the two tags occupies a word, and block sizes are multiples of a word.
    pub word: u64,
    /// Bytes of the smallest block, a multiple of the word size.
    pub least: u64,
    /// Memory is requested from the system in multiples of this many bytes.
    pub grow: u64,
}

impl Default for TagSettings {
    fn default() -> Self {
        Self { word: 8, least: 32, grow: 8192 }
    }
}

impl TagSettings {
    /// Returns the settings in the syntax that follows the allocator's name.
    pub(super) fn text(&self) -> String {
        format!("word={}:least={}:grow={}", self.word, self.least, self.grow)
    }
}

/// A list of free blocks.
pub(super) trait FreeList: Send {
    /// Finds a block of at least `need` bytes, and counts the blocks examined.
    fn find(&mut self, blocks: &Blocks, need: u64, acts: &mut Acts) -> Option<u32>;

    /// Inserts a block.
    fn insert(&mut self, blocks: &mut Blocks, id: u32);

    /// Removes a block. The block must still have the bounds that it had when it was inserted or last changed.
    fn remove(&mut self, blocks: &mut Blocks, id: u32);

    /// Updates a listed block whose bounds differ from the bounds of `before`. The block keeps its position.
    fn changed(&mut self, blocks: &Blocks, id: u32, before: &Block);

    /// Checks that the list contains exactly these blocks.
    fn check(&self, blocks: &Blocks, free: &[u32]) -> Result<(), String>;

    /// Checks one block's links.
    fn check_one(&self, blocks: &Blocks, id: u32) -> Result<(), String>;
}

/// A heap of blocks with tags.
#[derive(Debug)]
pub(super) struct Tagged<L> {
    pub(super) settings: TagSettings,
    blocks: Blocks,
    list: L,
    touched: u32,
    /// The end of the highest block ever used.
    high: u64,
}

impl<L: FreeList> Tagged<L> {
    pub(super) fn new(settings: TagSettings, list: L) -> Self {
        Self { settings, blocks: Blocks::new(), list, touched: super::blocks::NONE, high: 0 }
    }

    #[cfg(test)]
    pub(super) fn list(&self) -> &L {
        &self.list
    }

    pub(super) fn heap(&self) -> u64 {
        self.blocks.heap()
    }

    /// Returns the bytes of all pages below the end of the highest block ever used.
    pub(super) fn held(&self) -> u64 {
        self.high.next_multiple_of(super::PAGE)
    }

    /// Returns the number of usable bytes in a block, or 0 for a free block.
    pub(super) fn usable(&self, place: Place) -> u64 {
        let block = self.blocks.get(place.block);
        if block.free { 0 } else { block.size.saturating_sub(2 * self.settings.word) }
    }

    pub(super) fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
        let TagSettings { word, least, .. } = self.settings;
        let need = size.checked_next_multiple_of(word)?.checked_add(2 * word)?.max(least);
        let id = match self.list.find(&self.blocks, need, acts) {
            Some(id) => id,
            None => self.grow(need, acts)?,
        };
        let block = self.blocks.get(id);
        let used = if block.size - need >= least {
            acts.note(Act::Split);
            let used = self.blocks.cut(id, need)?;
            self.list.changed(&self.blocks, id, &block);
            used
        } else {
            acts.note(Act::Unlinked);
            self.list.remove(&mut self.blocks, id);
            self.blocks.edit(id, |block| block.free = false);
            id
        };
        acts.note(Act::Tagged);
        self.touched = used;
        self.high = self.high.max(block.address + need);
        Some(Place { address: block.address + word, block: used })
    }

    /// Requests memory from the system. The new memory extends a free top block if there is one; otherwise, it is
    /// inserted before the rover as a freed block.
    #[cold]
    fn grow(&mut self, need: u64, acts: &mut Acts) -> Option<u32> {
        let bytes = need.checked_next_multiple_of(self.settings.grow)?;
        self.heap().checked_add(bytes).filter(|end| *end <= ADDRESS_SPACE)?;
        let before = self.blocks.top();
        let (id, new) = self.blocks.grow(bytes)?;
        if new {
            self.list.insert(&mut self.blocks, id);
        } else {
            self.list.changed(&self.blocks, id, &before);
        }
        acts.note(Act::Sbrk);
        Some(id)
    }

    pub(super) fn free(&mut self, place: Place, acts: &mut Acts) {
        let id = place.block;
        let block = self.blocks.get(id);
        let (below, above) = (self.blocks.get(block.below), self.blocks.get(block.above));
        acts.note(Act::Tagged);
        acts.add(Act::Merged, u64::from(below.free) + u64::from(above.free));
        self.touched = match (below.free, above.free) {
            (false, false) => {
                acts.note(Act::Inserted);
                self.blocks.edit(id, |block| block.free = true);
                self.list.insert(&mut self.blocks, id);
                id
            }
            (true, false) => {
                self.blocks.absorb_above(block.below);
                self.list.changed(&self.blocks, block.below, &below);
                block.below
            }
            (below_is_free, true) => {
                self.blocks.absorb_below(block.above);
                if below_is_free {
                    self.list.remove(&mut self.blocks, block.below);
                    self.blocks.absorb_below(block.above);
                }
                self.list.changed(&self.blocks, block.above, &above);
                block.above
            }
        };
    }

    pub(super) fn check_touched(&self) -> Result<(), String> {
        let Block { free, below, above, .. } = self.blocks.get(self.touched);
        for id in [below, self.touched, above].into_iter().filter(|id| *id != super::blocks::NONE) {
            self.blocks.check_one(id)?;
        }
        if free { self.list.check_one(&self.blocks, self.touched) } else { Ok(()) }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let free = self.blocks.check_all()?;
        self.list.check(&self.blocks, &free)
    }
}

/// Declares an allocator with tags as a type.
macro_rules! tagged {
    ($(#[$doc:meta])* $name:ident($list:ty) = $text:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(Tagged<$list>);

        impl $name {
            /// Creates an empty heap.
            #[must_use]
            pub fn new(settings: TagSettings) -> Self {
                Self(Tagged::new(settings, <$list>::default()))
            }
        }

        impl Allocator for $name {
            fn name(&self) -> String {
                format!("{}:{}", $text, self.0.settings.text())
            }

            fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
                self.0.allocate(size, acts)
            }

            fn free(&mut self, place: Place, _: u64, acts: &mut Acts) {
                self.0.free(place, acts);
            }

            fn heap(&self) -> u64 {
                self.0.heap()
            }

            fn held(&self) -> u64 {
                self.0.held()
            }

            fn check_touched(&self) -> Result<(), String> {
                self.0.check_touched()
            }

            fn check(&self) -> Result<(), String> {
                self.0.check()
            }
        }
    };
}

pub(super) use tagged;
