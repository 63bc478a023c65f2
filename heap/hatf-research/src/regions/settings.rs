//! Settings of a memory manager.

use super::{Inter, Intra};

/// The treatment of an object larger than a block (the document's formulas would make its free space negative).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oversize {
    /// Rounds its block up to a multiple of the block size.
    Grow,
    /// Fails with an error.
    Refuse,
}

/// Settings of a memory manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes per block; not 0.
    pub block: u64,
    /// The choice of a block.
    pub intra: Intra,
    /// The choice of a region.
    pub inter: Inter,
    /// The treatment of objects larger than a block.
    pub oversize: Oversize,
}
