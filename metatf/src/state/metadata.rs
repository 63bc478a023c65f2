//! A metadata record (spec 4.1), and its bytes.

use super::Change;
use crate::format::Interpretation;
use metatf_container::{ErrorKind, MetadataRule, Order};

/// A metadata record (spec 4.1), as it stands in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Tag of the record it changes.
    pub record: u32,
    /// Index of the leaf it changes.
    pub field: u8,
    /// Property byte.
    pub property: u8,
    /// Values, 64 bits each; a stride is sign-extended.
    pub values: [u64; 2],
    /// How many of `values` there are: 0 to 2.
    pub count: u8,
}

impl Metadata {
    /// What the record changes.
    ///
    /// # Errors
    /// A width over 8, or a section number over 255.
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

    /// Whether it changes all leaves of the field's name (bit 3).
    #[must_use]
    pub fn all(&self) -> bool {
        self.property & 8 != 0
    }
}

/// A metadata record in its bytes.
pub(crate) struct Parsed {
    pub(crate) metadata: Metadata,
    /// Bytes of the record, from behind its own tag on.
    pub(crate) length: usize,
    /// Where its values begin, and how wide each is.
    pub(crate) values: usize,
    pub(crate) width: usize,
}

impl Parsed {
    /// Of the bytes behind the tag `metadata`, or what is wrong with them, and where. `word`: bytes of a value that does not say how
    /// many it has.
    #[allow(clippy::cast_possible_truncation, reason = "each value is as wide as it was read")]
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
            // A stride is sign-extended, all else zero-extended.
            if i == 1 {
                let unused = 64 - 8 * width as u32;
                *slot = ((*slot << unused) as i64 >> unused) as u64;
            }
        }
        let metadata = Metadata { record, field, property, values, count };
        Ok(Self { metadata, length, values: tag_width + 2, width })
    }
}
