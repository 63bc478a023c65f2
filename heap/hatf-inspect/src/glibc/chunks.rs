//! Blocks between two addresses.
//!
//! Each block begins with a header of two words. The first is the size of the block before it if that block is free,
//! and belongs to that block's content otherwise. The second is the size of the block and three flags.

use crate::memory::{Pages, Window};
use crate::{Inconsistency, Result};

/// The flag of a header whose preceding block is in use.
const PREVIOUS_IN_USE: u64 = 1;
/// The flag of a block that is mapped individually.
pub(super) const MAPPED: u64 = 2;
/// All flags.
pub(super) const FLAGS: u64 = 7;
/// The size of the smallest block.
pub(super) const LEAST: u64 = 32;

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The program uses the block.
    Live,
    /// The block is free, and was merged with free blocks around it.
    Free,
    /// The block is free and in a fast bin.
    Fast,
    /// The block is free and in the cache of a thread.
    Cached,
    /// The block is the cache of a thread itself, or marks the end of a heap.
    Internal,
    /// The block is the free memory at the end of an arena.
    Top,
}

/// A block and its header. The size is a multiple of 16, so that its lowest bits can contain the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The address of the header.
    pub(crate) address: u64,
    head: u64,
}

const STATES: [State; 6] = [State::Live, State::Free, State::Fast, State::Cached, State::Internal, State::Top];

impl Chunk {
    pub(crate) fn new(address: u64, size: u64, state: State) -> Self {
        Self { address, head: size & !15 | state as u64 }
    }

    pub(crate) fn size(self) -> u64 {
        self.head & !15
    }

    pub(crate) fn end(self) -> u64 {
        self.address + self.size()
    }

    pub(crate) fn state(self) -> State {
        STATES.into_iter().nth(usize::from((self.head & 15) as u8)).unwrap_or(State::Live)
    }

    pub(crate) fn set_state(&mut self, state: State) {
        self.head = self.size() | state as u64;
    }
}

/// The origin of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The heap segment, which belongs to the main arena.
    Main,
    /// A heap of another arena.
    Arena,
    /// The mapping of a single block.
    Mapped,
}

/// Memory that consists of blocks.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) place: Place,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) pages: Pages,
}

impl Region {
    /// Returns the number of bytes of a block that do not belong to its content.
    pub(crate) fn header(&self, chunk: Chunk) -> u64 {
        // A block in an arena also uses the first word of the next header, and so does a mapped block since 2.43, after
        // which there is room for a header.
        if self.place == Place::Mapped && self.end == chunk.end() { 16 } else { 8 }
    }
}

/// Reads the blocks from `start`, up to `top` if it is known, or else up to the marks at the end of a heap.
pub(super) fn walk(window: &mut Window<'_>, start: u64, end: u64, top: Option<u64>) -> Result<Vec<Chunk>> {
    let mut chunks = Vec::new();
    let wrong = |at, what: String| Err(Inconsistency::new(at, what));
    let mut at = start;
    let [_, mut head] = window.pair(at)?;
    loop {
        let size = head & !FLAGS;
        if top == Some(at) {
            if size < 16 || at.checked_add(size) != Some(end) {
                return wrong(
                    at,
                    format!("the free memory at the end of an arena has {size} bytes and ends elsewhere"),
                );
            }
            chunks.push(Chunk::new(at, size, State::Top));
            return Ok(chunks);
        }
        if top.is_none() && at + 16 == end && size == 0 {
            // A block of 16 or 32 bytes and an empty one mark the end of a heap.
            let last: Option<&mut Chunk> = chunks.last_mut().filter(|last| last.size() <= LEAST);
            let Some(last) = last else { return wrong(at, "the end of a heap is not marked".to_owned()) };
            *last = Chunk::new(last.address, end - last.address, State::Internal);
            return Ok(chunks);
        }
        let is_mark = top.is_none() && size == 16 && at + 32 == end;
        let next = at.checked_add(size).filter(|next| next.checked_add(16).is_some_and(|after| after <= end));
        let Some(next) = next.filter(|_| is_mark || (size >= LEAST && size.is_multiple_of(16) && head & MAPPED == 0))
        else {
            return wrong(at, format!("a block has the header {head:#x}, which is not a valid size"));
        };
        let [copy, following] = window.pair(next)?;
        let state = if following & PREVIOUS_IN_USE == 0 { State::Free } else { State::Live };
        if state == State::Free && copy != size {
            return wrong(at, format!("a free block has {size} bytes, but the copy of its size is {copy}"));
        }
        chunks.push(Chunk::new(at, size, state));
        (at, head) = (next, following);
    }
}
