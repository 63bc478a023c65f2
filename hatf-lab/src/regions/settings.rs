//! Settings of a memory manager.

use super::{Inter, Intra};

/// What becomes of an object that is larger than a block (the document's formulas would make its free space negative).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oversize {
    /// It gets a new block of the next multiple of the block size.
    Grow,
    /// It is an error.
    Refuse,
}

/// Settings of a memory manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of a block; not 0.
    pub block: u64,
    /// How a block is chosen.
    pub intra: Intra,
    /// How a region is chosen.
    pub inter: Inter,
    /// What becomes of large objects.
    pub oversize: Oversize,
}
