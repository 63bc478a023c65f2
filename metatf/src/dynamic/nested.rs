//! Byte arrays that are records of a section, as JSON (spec 3.7, 8).

use super::OwnedRecord;
use super::Schema;
use super::json_print::{JsonOptions, print_nested};
use crate::decode::ArrayReader;
use crate::format::FormatRef;
use metatf_container::Order;
use std::sync::Arc;

/// Reads the records that byte arrays of a trace hold.
#[derive(Debug)]
pub struct Nested {
    order: Order,
    /// By number of the section, as far as they were used.
    readers: Vec<Option<Box<ArrayReader>>>,
}

impl Nested {
    /// For a trace of this byte order.
    #[must_use]
    pub fn new(order: Order) -> Self {
        Self { order, readers: Vec::new() }
    }

    /// Prints the records of an array of the section with this number; false, and nothing is printed, where the bytes are no whole
    /// records. Sections nest at most 8 deep, and none in itself, so this recursion is bounded.
    pub(super) fn print(
        &mut self,
        out: &mut Vec<u8>,
        schema: &Schema,
        (number, bytes): (u8, &[u8]),
        options: JsonOptions,
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
        let start = out.len();
        out.push(b'[');
        let mut owned = OwnedRecord::default();
        let read = reader.read(bytes, &mut |record, row| {
            owned.decode(row)?;
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            print_nested(out, schema, record, &owned, options, self)
        });
        out.push(b']');
        if let Some(slot) = self.readers.get_mut(section) {
            *slot = Some(reader);
        }
        if read.is_err() {
            out.truncate(start);
        }
        read.is_ok()
    }
}
