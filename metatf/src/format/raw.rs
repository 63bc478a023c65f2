//! Files without a header (spec 5.4): their first records and the location of their content.

use super::{Format, LeafKind, borrowed};
use std::borrow::Cow;

/// The DTD's description of files without a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFile {
    /// The possible starts of a file, of which the first match is used.
    pub starts: Cow<'static, [RawStart]>,
    /// Number of the section that contains the records.
    pub records: u8,
    /// Number of the stream section for the data after the records.
    pub trailer: Option<u8>,
}

/// A possible first record of a file. It is either a prologue, which is the element of a separate stream section, or
/// the first of the file's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawStart {
    /// Number of the record's section.
    pub section: u8,
    /// Index of the record in [`Format::records`].
    pub record: u16,
    /// The leaves that identify the file.
    pub magic: Cow<'static, [Magic]>,
    /// The leaf with the number of bytes of records that follow, or `None` if the records extend to the end.
    pub records_size: Option<u8>,
}

/// A leaf whose value identifies a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Magic {
    /// Index of the leaf in the record.
    pub leaf: u8,
    /// The allowed values.
    pub values: Cow<'static, [u64]>,
}

impl Format {
    /// Returns whether a section contains the data before or after the records of a file without a header.
    #[must_use]
    pub fn is_around_records(&self, number: u8) -> bool {
        self.raw.as_ref().is_some_and(|raw| {
            number != raw.records
                && (raw.trailer == Some(number) || borrowed(&raw.starts).iter().any(|start| start.section == number))
        })
    }

    /// Returns the minimum number of nonzero bytes in the magic of a file with this start, over all allowed values.
    pub(crate) fn magic_bytes(&self, start: &RawStart) -> u32 {
        let record = self.records.get(usize::from(start.record));
        let bytes = |magic: &Magic| {
            let leaf = record.and_then(|record| record.leaves.get(usize::from(magic.leaf)));
            let width = match leaf.map(|leaf| &leaf.kind) {
                Some(LeafKind::Number { width, .. }) => usize::from(*width),
                Some(_) => usize::from(self.tag_width),
                None => 0,
            };
            let least = |value: &u64| value.to_le_bytes().iter().take(width).filter(|byte| **byte != 0).count();
            magic.values.iter().map(least).min().unwrap_or(0)
        };
        let bytes = start.magic.iter().map(bytes).sum::<usize>();
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}
