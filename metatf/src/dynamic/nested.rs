//! Byte arrays that are records of a section (spec 3.7).

use super::{OwnedRecord, Schema};
use crate::decode::ArrayReader;
use crate::format::FormatRef;
use metatf_container::{Order, Result};
use std::sync::Arc;

/// Reads the records that byte arrays of a trace hold.
#[derive(Debug)]
pub struct Nested {
    order: Order,
    /// By index of the section, as far as they were used.
    readers: Vec<Option<Box<ArrayReader>>>,
}

impl Nested {
    /// For a trace of this byte order.
    #[must_use]
    pub fn new(order: Order) -> Self {
        Self { order, readers: Vec::new() }
    }

    /// Gives the records of an array, by number of its section, to `each`, which may read arrays in them. False where the bytes are not
    /// whole records; those before are given. Sections nest at most 8 deep, and none in itself, so this recursion is bounded.
    ///
    /// An error of `each` ends the reading, as bytes that are not a record do.
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
