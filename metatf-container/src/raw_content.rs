//! The content of a chunk that is about to be encoded.

use super::chunk;

/// A chunk's content, and what filters need to know of it.
pub(crate) struct RawContent<'c> {
    pub(crate) raw: &'c [u8],
    /// Size of its elements; 0 or 1: none.
    pub(crate) element: u8,
    /// Where its records end; empty: it has none.
    pub(crate) ends: &'c [u32],
}

impl RawContent<'_> {
    /// Whether the filter can be used on it.
    pub(super) fn can(&self, filter: u8) -> bool {
        match filter {
            chunk::TRANSPOSE => {
                let size = self.element;
                size >= 2 && !self.raw.is_empty() && self.raw.len().is_multiple_of(size.into())
            }
            chunk::RECORD_DICTIONARY | chunk::SPLIT_SUFFIX => !self.ends.is_empty(),
            _ => true,
        }
    }
}
