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
    bytes: u64,
    blocks: u64,
}

impl Mapped {
    pub(super) fn new() -> Self {
        let settings = TagSettings { word: PAGE, least: 4 * PAGE, grow: 4 * PAGE };
        Self { space: Tagged::new(settings, Index::default()), bytes: 0, blocks: 0 }
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
        Some(Place { address: MAPPED + address, block })
    }

    /// Unmaps a block that was mapped with this size.
    pub(super) fn unmap(&mut self, place: Place, bytes: u64) {
        self.bytes -= bytes.max(1).next_multiple_of(PAGE);
        self.blocks -= 1;
        self.space.free(Place { address: place.address - MAPPED, ..place }, &mut Acts::default());
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.space.check()
    }
}
