//! Blocks that are mapped by themselves, and given back when they are freed.

use super::best::Index;
use super::tagged::{TagSettings, Tagged};
use super::{ADDRESS_SPACE, Acts, PAGE, Place};

/// The half of the address space that has such blocks.
pub(super) const MAPPED: u64 = ADDRESS_SPACE / 2;

/// Mapped blocks. The system finds their addresses by best fit, with a page between neighbours.
#[derive(Debug)]
pub(super) struct Mapped {
    space: Tagged<Index>,
    /// The bytes of each block, by its number.
    sizes: Vec<u64>,
    bytes: u64,
    blocks: u64,
}

impl Mapped {
    pub(super) fn new() -> Self {
        let settings = TagSettings { word: PAGE, least: 4 * PAGE, grow: 4 * PAGE };
        Self { space: Tagged::new(settings, Index::default()), sizes: Vec::new(), bytes: 0, blocks: 0 }
    }

    /// Returns whether a block is one of these.
    #[inline]
    pub(super) fn has(place: Place) -> bool {
        place.address >= MAPPED
    }

    /// Returns the bytes mapped.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how many blocks are mapped.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Maps a block; `None`: its half of the address space is full.
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

    /// Returns the bytes of a mapped block.
    pub(super) fn size(&self, place: Place) -> u64 {
        self.sizes.get(place.block as usize).copied().unwrap_or(0)
    }

    /// Unmaps a block; returns the bytes that it had.
    pub(super) fn unmap(&mut self, place: Place) -> u64 {
        let bytes = self.size(place);
        self.bytes -= bytes;
        self.blocks -= 1;
        self.space.free(Place { address: place.address - MAPPED, ..place }, &mut Acts::default());
        bytes
    }

    /// Gives a block another size, as `mremap` does: its pages stay, its address may change.
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
