//! The content of a chunk to be encoded.

use super::chunk;
use super::columns::Rows;

/// A chunk's content and its structure, as needed by filters.
pub(crate) struct RawContent<'c> {
    pub(crate) raw: &'c [u8],
    /// Size of the content's elements; 0 or 1 if there are no elements.
    pub(crate) element: u8,
    /// Ends of the content's records; empty if there are no records.
    pub(crate) ends: &'c [u32],
    /// The division of the content into rows, if filter 4 may be applied.
    pub(crate) rows: Option<&'c Rows>,
}

impl RawContent<'_> {
    /// Returns whether the filter can be applied.
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
