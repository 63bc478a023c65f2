//! The state for finding the next record of a type, with its length and the slot for its position.

use super::layout::Extent;

/// The data needed to store the position of a record and find the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeCursor {
    pub(super) tag: u32,
    pub(super) position: u16,
    pub(super) extent: Extent,
    /// The slot in `places` for the next record.
    pub(super) next: usize,
    /// The distance between slots.
    pub(super) step: usize,
}

impl TypeCursor {
    /// A cursor that matches no record, because no tag is this large and no record is this long.
    pub(super) const NONE: Self = Self {
        tag: u32::MAX,
        position: u16::MAX,
        extent: Extent { fixed: usize::MAX >> 1, ..Extent::NONE },
        next: 0,
        step: 1,
    };
}
