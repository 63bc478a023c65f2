//! Byte arrays that contain records of a section (spec 3.7).

use super::{OwnedRecord, Schema};
use crate::decode::ArrayReader;
use crate::format::FormatRef;
use metatf_container::{Order, Result};
use std::sync::Arc;

/// A reader for the records in a trace's byte arrays.
#[derive(Debug)]
pub struct Nested {
    order: Order,
    /// Readers by section index, created on first use.
    readers: Vec<Option<Box<ArrayReader>>>,
}

impl Nested {
    /// Creates a reader for a trace with this byte order.
    #[must_use]
    pub fn new(order: Order) -> Self {
        Self { order, readers: Vec::new() }
    }

    /// Calls `each` for every record of an array that belongs to the section with this number. `each` may read nested
    /// arrays. Returns false if the bytes do not consist of complete records; `each` is still called for the records
    /// before the incomplete one. Recursion is bounded, because sections nest at most 8 levels deep and never in
    /// themselves.
    ///
    /// An error from `each` ends reading, as malformed bytes do.
    pub fn read(
        &mut self,
        schema: &Schema,
        (number, bytes): (u8, &[u8]),
        each: &mut dyn FnMut(&mut Self, u16, &OwnedRecord) -> Result<()>,
    ) -> bool {
        let Some(section) = schema.format.section_index(number) else { return false };
        if self.readers.len() <= section {
            self.readers.resize_with(section + 1, || None);
        }
        let made = self.readers.get_mut(section).and_then(Option::take);
        let mut reader = made.unwrap_or_else(|| {
            let format = FormatRef::Shared(Arc::clone(&schema.format));
            Box::new(ArrayReader::new(format, section, self.order))
        });
        let mut owned = OwnedRecord::default();
        let read = reader.read(bytes, &mut |record, row| {
            owned.decode(row)?;
            each(self, record, &owned)
        });
        if let Some(slot) = self.readers.get_mut(section) {
            *slot = Some(reader);
        }
        read.is_ok()
    }
}
