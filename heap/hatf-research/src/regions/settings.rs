//! Settings of a memory manager.

use super::{Inter, Intra};

/// The treatment of an object larger than a block, for which the paper's formulas would yield negative free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Oversize {
    /// Rounds the object's block up to a multiple of the block size.
    Grow,
    /// Fails with an error.
    Refuse,
}

/// Settings of a memory manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes per block, which must not be 0.
    pub block: u64,
    /// The policy for choosing a block within a region.
    pub intra: Intra,
    /// The policy for choosing a region.
    pub inter: Inter,
    /// The treatment of objects larger than a block.
    pub oversize: Oversize,
}
