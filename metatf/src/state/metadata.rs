//! Metadata records (spec 4.1) and their encoding.

use super::Change;
use crate::format::Interpretation;
use metatf_container::{ErrorKind, MetadataRule, Order};

/// A metadata record (spec 4.1) as stored in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Tag of the record to change.
    pub record: u32,
    /// Index of the leaf to change.
    pub field: u8,
    /// Property byte.
    pub property: u8,
    /// Values of 64 bits each. A stride is sign-extended.
    pub values: [u64; 2],
    /// Number of used entries in `values`, 0 to 2.
    pub count: u8,
}

impl Metadata {
    /// Returns the change that the record makes.
    ///
    /// # Errors
    /// Returns an error for a width of more than 8 or a section number greater than 255.
    pub fn change(&self) -> Result<Change, ErrorKind> {
        let [first, second] = self.values;
        let section = || u8::try_from(first).map_err(|_| ErrorKind::Metadata(MetadataRule::SectionNumber));
        Ok(match self.property & 7 {
            0 => match u8::try_from(first) {
                Ok(width @ 0..=8) => Change::Width(width),
                _ => return Err(ErrorKind::Metadata(MetadataRule::Width)),
            },
            1 => Change::Interpretation(Interpretation::None),
            2 => Change::Interpretation(Interpretation::BaseOffset(first)),
            3 => Change::Interpretation(Interpretation::Delta(first)),
            4 => Change::Interpretation(Interpretation::Default(first)),
            5 => Change::Interpretation(Interpretation::SectionOffset(section()?)),
            6 => Change::Interpretation(Interpretation::Stride(first, second)),
            _ => Change::Interpretation(Interpretation::SectionStride(section()?, second)),
        })
    }

    /// Returns whether the change applies to all leaves with the field's name (bit 3).
    #[must_use]
    pub fn all(&self) -> bool {
        self.property & 8 != 0
    }
}

/// A parsed metadata record and the layout of its bytes.
pub(crate) struct Parsed {
    pub(crate) metadata: Metadata,
    /// Length of the record in bytes, excluding its own tag.
    pub(crate) length: usize,
    /// Start of the record's values and the width of each value.
    pub(crate) values: usize,
    pub(crate) width: usize,
}

impl Parsed {
    /// Parses the bytes after the tag of a `metadata` record. On failure, returns the position of the error and its
    /// kind. `word` is the size of a value that does not specify its own size.
    #[allow(clippy::cast_possible_truncation, reason = "the width is that of the value just read")]
    pub(crate) fn new(bytes: &[u8], tag_width: usize, word: usize, order: Order) -> Result<Self, (usize, ErrorKind)> {
        let mut length = 0;
        let mut take = |width: usize| {
            let short = (length, ErrorKind::Truncated("a metadata or section record"));
            let found = bytes.get(length..length + width).ok_or(short)?;
            length += width;
            Ok(order.read(found))
        };
        let record = take(tag_width)? as u32;
        let field = take(1)? as u8;
        let property = take(1)? as u8;
        let width = match property >> 4 {
            0 => word,
            n @ 1..=8 => usize::from(n),
            n => {
                let (what, found) = ("the width of metadata values", n.into());
                return Err((tag_width + 1, ErrorKind::Invalid { what, found, expected: "0 to 8" }));
            }
        };
        let count = [1, 0, 1, 1, 1, 1, 2, 2][usize::from(property & 7)];
        let mut values = [0; 2];
        for (i, slot) in values.iter_mut().enumerate().take(count.into()) {
            *slot = take(width)?;
            // A stride is sign-extended; all other values are zero-extended.
            if i == 1 {
                let unused = 64 - 8 * width as u32;
                *slot = ((*slot << unused) as i64 >> unused) as u64;
            }
        }
        let metadata = Metadata { record, field, property, values, count };
        Ok(Self { metadata, length, values: tag_width + 2, width })
    }
}
