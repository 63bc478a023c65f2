//! Blocks that are mapped individually and unmapped when they are freed.

use super::best::Index;
use super::tagged::{TagSettings, Tagged};
use super::{ADDRESS_SPACE, Acts, PAGE, Place};

/// The start of the upper half of the address space, which contains the mapped blocks.
pub(super) const MAPPED: u64 = ADDRESS_SPACE / 2;

/// Mapped blocks. The simulated system places blocks by best fit, with a page between neighbours.
#[derive(Debug)]
pub(super) struct Mapped {
    space: Tagged<Index>,
    /// The size of each block in bytes, indexed by block number.
    sizes: Vec<u64>,
    bytes: u64,
    blocks: u64,
}

impl Mapped {
    pub(super) fn new() -> Self {
        let settings = TagSettings { word: PAGE, least: 4 * PAGE, grow: 4 * PAGE };
        Self { space: Tagged::new(settings, Index::default()), sizes: Vec::new(), bytes: 0, blocks: 0 }
    }

    /// Returns whether a block is mapped.
    #[inline]
    pub(super) fn has(place: Place) -> bool {
        place.address >= MAPPED
    }

    /// Returns the number of mapped bytes.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of mapped blocks.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Maps a block. Returns `None` if this half of the address space is full.
    pub(super) fn map(&mut self, bytes: u64) -> Option<Place> {
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE).filter(|bytes| *bytes < MAPPED / 2)?;
        if self.space.heap().checked_add(bytes)? > MAPPED - 16 * PAGE {
            return None;
        }
        let Place { address, block } = self.space.allocate(bytes, &mut Acts::default())?;
        self.bytes += bytes;
        self.blocks += 1;
        let number = block as usize;
        if number >= self.sizes.len() {
            self.sizes.resize(number + 1, 0);
        }
        if let Some(size) = self.sizes.get_mut(number) {
            *size = bytes;
        }
        Some(Place { address: MAPPED + address, block })
    }

    /// Returns the size of a mapped block in bytes.
    pub(super) fn size(&self, place: Place) -> u64 {
        self.sizes.get(place.block as usize).copied().unwrap_or(0)
    }

    /// Unmaps a block and returns its former size in bytes.
    pub(super) fn unmap(&mut self, place: Place) -> u64 {
        let bytes = self.size(place);
        self.bytes -= bytes;
        self.blocks -= 1;
        self.space.free(Place { address: place.address - MAPPED, ..place }, &mut Acts::default());
        bytes
    }

    /// Resizes a block like `mremap`. The block keeps its pages, but its address may change.
    pub(super) fn remap(&mut self, place: Place, bytes: u64) -> Option<Place> {
        if bytes.max(1).checked_next_multiple_of(PAGE)? == self.size(place) {
            return Some(place);
        }
        self.unmap(place);
        self.map(bytes)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.space.check()
    }
}
