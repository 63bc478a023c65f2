//! FIRST: Knuth's first fit with a roving pointer, as written by Moraes.
//!
//! (Table 6 says "Algorithm C", which frees; allocation is Knuth's Algorithm A, and with the rover it is next fit.)

use super::blocks::{Block, Blocks, NONE};
use super::tagged::{FreeList, TagSettings, Tagged, tagged};
use super::{Act, Acts, Allocator, Place};

tagged! {
    /// First fit, from where the last search ended.
    First(Rover) = "first"
}

/// A circular, doubly linked list. A search begins at the rover and goes once around.
#[derive(Debug)]
pub(super) struct Rover {
    rover: u32,
    length: usize,
}

impl Default for Rover {
    fn default() -> Self {
        Self { rover: NONE, length: 0 }
    }
}

impl FreeList for Rover {
    fn find(&mut self, blocks: &Blocks, need: u64, acts: &mut Acts) -> Option<u32> {
        let (mut at, mut examined) = (self.rover, 0);
        let found = loop {
            let Some(block) = blocks.peek(at) else { break None };
            examined += 1;
            if block.size >= need {
                break Some(at);
            }
            at = block.next;
            if at == self.rover {
                break None;
            }
        };
        acts.add(Act::Examined, examined);
        found
    }

    /// Puts a block before the rover, which then is at it.
    fn insert(&mut self, blocks: &mut Blocks, id: u32) {
        let next = if self.rover == NONE { id } else { self.rover };
        let previous = if self.rover == NONE { id } else { blocks.get(next).previous };
        blocks.edit(id, |block| (block.next, block.previous) = (next, previous));
        blocks.edit(next, |block| block.previous = id);
        blocks.edit(previous, |block| block.next = id);
        self.rover = id;
        self.length += 1;
    }

    /// Takes a block out; the rover goes to the next.
    fn remove(&mut self, blocks: &mut Blocks, id: u32) {
        let Block { next, previous, .. } = blocks.get(id);
        blocks.edit(previous, |block| block.next = next);
        blocks.edit(next, |block| block.previous = previous);
        self.rover = if next == id { NONE } else { next };
        self.length -= 1;
    }

    /// Moves the rover to what was cut or grew.
    fn changed(&mut self, _: &Blocks, id: u32, _: &Block) {
        self.rover = id;
    }

    fn check(&self, blocks: &Blocks, free: &[u32]) -> Result<(), String> {
        let mut at = self.rover;
        for _ in 0..self.length {
            self.check_one(blocks, at)?;
            at = blocks.get(at).next;
        }
        if at != self.rover || self.length != free.len() {
            return Err(format!("the list has {} blocks, {} are free", self.length, free.len()));
        }
        Ok(())
    }

    fn check_one(&self, blocks: &Blocks, id: u32) -> Result<(), String> {
        let Block { address, next, previous, free, .. } = blocks.get(id);
        if free && blocks.get(next).previous == id && blocks.get(previous).next == id {
            return Ok(());
        }
        Err(format!("the block at {address} is not linked both ways"))
    }
}
