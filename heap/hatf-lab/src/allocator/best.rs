//! BEST: "the FIRST algorithm modified for best-fit", which "scans the entire list" (4.4).

use std::collections::BTreeSet;

use super::blocks::{Block, Blocks};
use super::tagged::{FreeList, TagSettings, Tagged, tagged};
use super::{Act, Acts, Allocator, Place};

tagged! {
    /// Best fit, which uses the smallest block that is large enough. Of equally small blocks, it uses the lowest.
    ///
    /// # Examples
    ///
    /// The allocator uses the free block of 40 bytes, although a larger free block precedes it:
    ///
    /// ```
    /// use hatf_lab::allocator::{Acts, Allocator, Best, TagSettings};
    ///
    /// let (mut best, mut acts) = (Best::new(TagSettings::default()), Acts::default());
    /// best.switch_to(0);
    /// let places = [200, 8, 40, 8].map(|size| best.allocate(size, &mut acts));
    /// for (place, size) in [(places[0], 200), (places[2], 40)] {
    ///     best.free(place.ok_or("the address space is full")?, size, &mut acts);
    /// }
    /// assert_eq!(best.allocate(40, &mut acts), places[2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Best(Index) = "best"
}

/// Free blocks ordered by size and address. The index replaces a linear list, so each search counts as many steps as a
/// scan of all free blocks.
#[derive(Debug, Default)]
pub(super) struct Index(BTreeSet<(u64, u64, u32)>);

impl FreeList for Index {
    fn find(&mut self, _: &Blocks, need: u64, acts: &mut Acts) -> Option<u32> {
        acts.add(Act::Examined, self.0.len() as u64);
        self.0.range((need, 0, 0)..).next().map(|(.., id)| *id)
    }

    fn insert(&mut self, blocks: &mut Blocks, id: u32) {
        let Block { size, address, .. } = blocks.get(id);
        self.0.insert((size, address, id));
    }

    fn remove(&mut self, blocks: &mut Blocks, id: u32) {
        let Block { size, address, .. } = blocks.get(id);
        self.0.remove(&(size, address, id));
    }

    fn changed(&mut self, blocks: &Blocks, id: u32, before: &Block) {
        self.0.remove(&(before.size, before.address, id));
        let Block { size, address, .. } = blocks.get(id);
        self.0.insert((size, address, id));
    }

    fn check(&self, blocks: &Blocks, free: &[u32]) -> Result<(), String> {
        if self.0.len() != free.len() {
            return Err(format!("the list contains {} blocks, but {} are free", self.0.len(), free.len()));
        }
        free.iter().try_for_each(|id| self.check_one(blocks, *id))
    }

    fn check_one(&self, blocks: &Blocks, id: u32) -> Result<(), String> {
        let Block { size, address, .. } = blocks.get(id);
        if self.0.contains(&(size, address, id)) {
            Ok(())
        } else {
            Err(format!("the free block at {address} is not listed"))
        }
    }
}
