//! A GLIBC arena: chunks with boundary tags in bins, and a top chunk.

use super::super::blocks::{Block, Blocks, NONE};
use super::super::lists::Lists;
use super::super::{Act, Acts};

/// The minimum chunk size.
pub(super) const LEAST: u64 = 32;
/// The size granularity.
pub(super) const UNIT: u64 = 16;
/// The smallest large chunk size.
pub(super) const LARGE: u64 = 1024;
/// The index of the unsorted list, in place of a bin for size 0. One bin per small size follows, and then the bins for
/// size ranges.
const UNSORTED: usize = 0;
const BINS: usize = 127;
/// Returns the bin for a chunk size.
fn bin(size: u64) -> usize {
    let of = match size {
        ..LARGE => size / UNIT,
        _ if size >> 6 <= 48 => 48 + (size >> 6),
        _ if size >> 9 <= 20 => 91 + (size >> 9),
        _ if size >> 12 <= 10 => 110 + (size >> 12),
        _ if size >> 15 <= 4 => 119 + (size >> 15),
        _ if size >> 18 <= 2 => 124 + (size >> 18),
        _ => 126,
    };
    usize::try_from(of).unwrap_or(126)
}

#[derive(Debug)]
pub(super) struct Arena {
    pub(super) blocks: Blocks,
    pub(super) bins: Lists,
    /// Fast bins by size, with the most recently freed chunk at the end.
    pub(super) fast: Vec<Vec<u32>>,
    pub(super) has_fast: bool,
    /// The remainder of the last split for a small request.
    remainder: u32,
    /// The end of the memory that was touched and not returned.
    pub(super) high: u64,
    pub(super) touched: u32,
}

impl Arena {
    pub(super) fn new() -> Self {
        Self {
            blocks: Blocks::new(),
            bins: Lists::new(BINS),
            fast: Vec::new(),
            has_fast: false,
            remainder: NONE,
            high: 0,
            touched: NONE,
        }
    }

    /// Takes a chunk of `need` bytes from a free chunk that is in no list. The remainder, if large enough, goes to the
    /// unsorted list.
    pub(super) fn split(&mut self, id: u32, need: u64, acts: &mut Acts) -> Option<u32> {
        let size = self.blocks.get(id).size;
        if size - need < LEAST {
            self.blocks.edit(id, |block| block.free = false);
            return Some(id);
        }
        acts.note(Act::Split);
        let used = self.blocks.cut(id, need)?;
        self.bins.push(&mut self.blocks, UNSORTED, id);
        if need < LARGE {
            self.remainder = id;
        }
        Some(used)
    }

    pub(super) fn unlink(&mut self, id: u32, acts: &mut Acts) {
        acts.note(Act::Unlinked);
        self.bins.remove(&mut self.blocks, id);
    }

    /// Inserts a chunk into the bin for its size. A small chunk is inserted at the front, and a large chunk is inserted
    /// after all larger chunks.
    pub(super) fn sort(&mut self, id: u32, acts: &mut Acts) {
        let size = self.blocks.get(id).size;
        let list = bin(size);
        let mut at = self.bins.first(list);
        if size >= LARGE {
            // The smallest chunk is at the end; most chunks belong there.
            let last = self.bins.last(list);
            if last != NONE && size < self.blocks.get(last).size {
                at = NONE;
            }
            while at != NONE && self.blocks.get(at).size > size {
                acts.note(Act::Examined);
                at = self.blocks.get(at).next;
            }
            // Insert after the first chunk of this size: glibc unlinks such a chunk faster, because only the first
            // chunk of each size is in its list of sizes.
            if at != NONE && self.blocks.get(at).size == size {
                at = self.blocks.get(at).next;
            }
        }
        acts.note(Act::Inserted);
        self.bins.insert_before(&mut self.blocks, list, id, at);
    }

    /// Frees a chunk and merges it with its neighbours. Returns the resulting size.
    pub(super) fn merge(&mut self, id: u32, acts: &mut Acts) -> u64 {
        self.blocks.edit(id, |block| block.free = true);
        let Block { below, above, .. } = self.blocks.get(id);
        let mut id = id;
        if self.blocks.get(below).free {
            acts.note(Act::Merged);
            self.bins.remove(&mut self.blocks, below);
            self.blocks.absorb_below(id);
            if self.remainder == below {
                self.remainder = NONE;
            }
        }
        let top = self.blocks.top_id();
        if self.blocks.get(above).free {
            acts.note(Act::Merged);
            if above == top {
                // The top chunk keeps its number.
                self.blocks.absorb_below(top);
                id = top;
            } else {
                self.bins.remove(&mut self.blocks, above);
                self.blocks.absorb_above(id);
                if self.remainder == above {
                    self.remainder = NONE;
                }
            }
        }
        if id != self.blocks.top_id() {
            acts.note(Act::Inserted);
            self.bins.push(&mut self.blocks, UNSORTED, id);
        }
        self.touched = id;
        self.blocks.get(id).size
    }

    /// Merges all chunks in the fast bins.
    pub(super) fn merge_fast(&mut self, acts: &mut Acts) {
        if !std::mem::take(&mut self.has_fast) {
            return;
        }
        for n in 0..self.fast.len() {
            let mut chunks = self.fast.get_mut(n).map(std::mem::take).unwrap_or_default();
            while let Some(id) = chunks.pop() {
                self.merge(id, acts);
            }
            if let Some(place) = self.fast.get_mut(n) {
                *place = chunks;
            }
        }
    }

    /// Cuts a chunk from the top if the rest is still large enough for a chunk.
    pub(super) fn cut_top(&mut self, need: u64, acts: &mut Acts) -> Option<u32> {
        let top = self.blocks.top_id();
        if self.blocks.get(top).size < need + LEAST {
            return None;
        }
        acts.note(Act::Cut);
        let used = self.blocks.cut(top, need)?;
        self.high = self.high.max(self.blocks.get(top).address + UNIT);
        Some(used)
    }

    /// Takes the least recently freed chunk from the bin for a small size, and up to `room` further chunks for the
    /// cache.
    pub(super) fn small(&mut self, need: u64, room: usize, acts: &mut Acts) -> Option<(u32, Vec<u32>)> {
        let list = bin(need);
        let id = Some(self.bins.last(list)).filter(|id| *id != NONE)?;
        let mut take = |of: &mut Self, id| {
            of.unlink(id, acts);
            of.blocks.edit(id, |block| block.free = false);
        };
        take(self, id);
        let mut others = Vec::new();
        while others.len() < room && self.bins.last(list) != NONE {
            let other = self.bins.last(list);
            take(self, other);
            others.push(other);
        }
        Some((id, others))
    }

    /// Sorts the unsorted list into bins until a chunk fits, then takes the smallest chunk that is large enough. Chunks
    /// of exactly this size go to the cache while the cache has room.
    pub(super) fn search(&mut self, need: u64, room: usize, acts: &mut Acts) -> Option<(Option<u32>, Vec<u32>)> {
        let mut cached = Vec::new();
        while self.bins.last(UNSORTED) != NONE {
            let id = self.bins.last(UNSORTED);
            let size = self.blocks.get(id).size;
            acts.note(Act::Examined);
            let alone = self.bins.first(UNSORTED) == id;
            self.unlink(id, acts);
            if need < LARGE && alone && id == self.remainder && size > need + LEAST {
                return Some((self.split(id, need, acts), cached));
            }
            if size == need {
                self.blocks.edit(id, |block| block.free = false);
                if cached.len() < room {
                    cached.push(id);
                    continue;
                }
                return Some((Some(id), cached));
            }
            self.sort(id, acts);
        }
        if !cached.is_empty() {
            return Some((None, cached));
        }
        let mut from = bin(need);
        if need >= LARGE {
            // Search from the smallest chunk in the bin.
            let mut at = self.bins.last(from);
            while at != NONE && self.blocks.get(at).size < need {
                acts.note(Act::Examined);
                at = self.blocks.get(at).previous;
            }
            if at != NONE {
                self.unlink(at, acts);
                return Some((self.split(at, need, acts), cached));
            }
            from += 1;
        }
        if let Some(list) = self.bins.next_filled(from.max(1), BINS) {
            let id = self.bins.last(list);
            acts.note(Act::Examined);
            self.unlink(id, acts);
            return Some((self.split(id, need, acts), cached));
        }
        Some((None, cached))
    }
}
