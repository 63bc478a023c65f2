//! Where the next record of a type is noted, and how long it is.

use super::layout::Extent;

/// What is needed to note a record and to find the one behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeCursor {
    pub(super) tag: u32,
    pub(super) position: u16,
    pub(super) extent: Extent,
    /// The slot of `places` that the next record is noted in, and how far apart they are.
    pub(super) next: usize,
    pub(super) step: usize,
}

impl TypeCursor {
    /// Meets no record: no tag is so large, and should one be, no record is so long.
    pub(super) const NONE: Self = Self {
        tag: u32::MAX,
        position: u16::MAX,
        extent: Extent { fixed: usize::MAX >> 1, ..Extent::NONE },
        next: 0,
        step: 1,
    };
}
