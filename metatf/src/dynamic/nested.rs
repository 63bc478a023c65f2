//! Byte arrays that contain records of a section (spec 3.7).

use super::{OwnedRecord, Schema};
use crate::decode::ArrayReader;
use crate::format::FormatRef;
use metatf_container::{Order, Result};
use std::sync::Arc;

/// A reader for the records in a trace's byte arrays.
///
/// # Examples
///
/// ```
/// use metatf::container::Order;
/// use metatf::dynamic::{Item, Nested, Schema};
///
/// let dtd = b"section packets 1 { packet: (tag, vfield) { tag.value = 4; vfield.data.section = 2; } }
///     section options 2 { option: (tag, n) { tag.value = 7; n.width = 1; n.interpretation = none; } }";
/// let schema = Schema::parse("packets.dtd", dtd)?;
///
/// let mut numbers = Vec::new();
/// let is_complete = Nested::new(Order::Little).read(&schema, (2, &[7, 1, 7, 2][..]), &mut |_, _, option| {
///     if let Some(Item::Number(number)) = option.get(0) {
///         numbers.push(number);
///     }
///     Ok(())
/// });
/// assert!(is_complete);
/// assert_eq!(numbers, [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
