//! FIRST: Knuth's first fit with a roving pointer, as written by Moraes.
//!
//! (Table 6 of the paper names "Algorithm C", which frees blocks. Allocation is Knuth's Algorithm A, which becomes next
//! fit with the rover.)

use super::blocks::{Block, Blocks, NONE};
use super::order::Order;
use super::tagged::{FreeList, TagSettings, Tagged, tagged};
use super::{Act, Acts, Allocator, Place};

tagged! {
    /// First fit, where each search starts at the end of the previous search.
    ///
    /// # Examples
    ///
    /// A search starts at the block that was freed last, even if a lower block fits:
    ///
    /// ```
    /// use hatf_lab::allocator::{Acts, Allocator, First, TagSettings};
    ///
    /// let (mut first, mut acts) = (First::new(TagSettings::default()), Acts::default());
    /// first.switch_to(0);
    /// let places = [(); 4].map(|()| first.allocate(16, &mut acts));
    /// for place in [places[0], places[2]].into_iter().flatten() {
    ///     first.free(place, 16, &mut acts);
    /// }
    /// assert_eq!(first.allocate(16, &mut acts), places[2]);
    /// ```
    First(Rover) = "first"
}

/// The number of blocks that a search visits before it uses the [`Order`].
const NEAR: u64 = 12;
/// The total number of blocks that all searches may visit beyond [`NEAR`] before an [`Order`] is built. Most heaps
/// never reach this number.
const FAR: u64 = 1 << 16;

/// A circular, doubly linked list. A search begins at the rover and goes around once.
///
/// Searches count the blocks that a linear walk would visit. If walks are long, an [`Order`] finds the same block and
/// the same count without walking.
#[derive(Debug)]
pub(super) struct Rover {
    rover: u32,
    length: usize,
    /// The number of blocks that searches may still visit before an [`Order`] is built.
    left: u64,
    order: Option<Order>,
}

impl Default for Rover {
    fn default() -> Self {
        Self { rover: NONE, length: 0, left: FAR, order: None }
    }
}

impl Rover {
    /// Builds an [`Order`] of all blocks in the list.
    #[cold]
    fn put_in_order(&self, blocks: &Blocks) -> Order {
        let (mut order, mut at) = (Order::new(), self.rover);
        for _ in 0..self.length {
            let Block { size, next, .. } = blocks.get(at);
            order.insert_before(NONE, at, size);
            at = next;
        }
        order
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
            if examined < NEAR {
                continue;
            }
            if let Some(order) = &self.order {
                let (found, count) = order.find(at, need);
                // Without a match, the walk would end where it began.
                examined = if found.is_some() { examined + count } else { count };
                break found;
            }
            self.left -= 1;
            if self.left == 0 {
                self.order = Some(self.put_in_order(blocks));
            }
        };
        acts.add(Act::Examined, examined);
        found
    }

    /// Inserts a block before the rover and moves the rover to it.
    fn insert(&mut self, blocks: &mut Blocks, id: u32) {
        let next = if self.rover == NONE { id } else { self.rover };
        let previous = if self.rover == NONE { id } else { blocks.get(next).previous };
        blocks.edit(id, |block| (block.next, block.previous) = (next, previous));
        blocks.edit(next, |block| block.previous = id);
        blocks.edit(previous, |block| block.next = id);
        if let Some(order) = &mut self.order {
            let next = if self.rover == NONE { NONE } else { next };
            order.insert_before(next, id, blocks.get(id).size);
        }
        self.rover = id;
        self.length += 1;
    }

    /// Removes a block and moves the rover to the block that follows it.
    fn remove(&mut self, blocks: &mut Blocks, id: u32) {
        let Block { next, previous, .. } = blocks.get(id);
        blocks.edit(previous, |block| block.next = next);
        blocks.edit(next, |block| block.previous = previous);
        if let Some(order) = &mut self.order {
            order.remove(id);
        }
        self.rover = if next == id { NONE } else { next };
        self.length -= 1;
    }

    /// Moves the rover to a block whose bounds have changed.
    fn changed(&mut self, blocks: &Blocks, id: u32, _: &Block) {
        if let Some(order) = &mut self.order {
            order.resize(id, blocks.get(id).size);
        }
        self.rover = id;
    }

    fn check(&self, blocks: &Blocks, free: &[u32]) -> Result<(), String> {
        let mut at = self.rover;
        for _ in 0..self.length {
            self.check_one(blocks, at)?;
            at = blocks.get(at).next;
        }
        if at != self.rover || self.length != free.len() {
            return Err(format!("the list contains {} blocks, but {} are free", self.length, free.len()));
        }
        Ok(())
    }

    fn check_one(&self, blocks: &Blocks, id: u32) -> Result<(), String> {
        let Block { address, next, previous, free, .. } = blocks.get(id);
        if free && blocks.get(next).previous == id && blocks.get(previous).next == id {
            return Ok(());
        }
        Err(format!("the block at {address} is not linked in both directions"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On long walks, searches find the same blocks and counts with and without an [`Order`].
    #[test]
    fn an_order_changes_nothing() {
        let heap = |left| Tagged::new(TagSettings::default(), Rover { left, ..Rover::default() });
        let (mut walked, mut ordered) = ((heap(u64::MAX), Acts::default()), (heap(1), Acts::default()));
        let (mut live, mut random) = (Vec::new(), 1_u64);
        for step in 0..30_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = random >> 33;
            if step % 10_000 < 4000 || draw % 2 == 0 || live.is_empty() {
                let size = if draw % 16 == 1 { draw % 60_000 } else { draw % 400 };
                let place = walked.0.allocate(size, &mut walked.1).unwrap();
                assert_eq!(ordered.0.allocate(size, &mut ordered.1), Some(place));
                live.push(place);
            } else {
                let place = live.swap_remove(usize::try_from(draw).unwrap() % live.len());
                walked.0.free(place, &mut walked.1);
                ordered.0.free(place, &mut ordered.1);
            }
            assert_eq!(walked.1, ordered.1);
        }
        assert!(ordered.0.list().order.is_some() && walked.0.list().order.is_none());
        assert!(walked.1.of(Act::Examined) > 500_000, "{}", walked.1.of(Act::Examined));
        ordered.0.check().unwrap();
    }
}
