//! Files without a header (spec 5.4): what they begin with, and where their content is.

use super::{Format, LeafKind, borrowed};
use std::borrow::Cow;

/// What a DTD says of files without a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFile {
    /// What a file may begin with: the first that fits counts.
    pub starts: Cow<'static, [RawStart]>,
    /// Number of the section that has the records.
    pub records: u8,
    /// Number of the stream section of what stands behind the records.
    pub trailer: Option<u8>,
}

/// A record that a file may begin with: the element of a stream section (a prologue), or the first of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawStart {
    /// Number of its section.
    pub section: u8,
    /// Its index in [`Format::records`].
    pub record: u16,
    /// The leaves that tell the file.
    pub magic: Cow<'static, [Magic]>,
    /// The leaf that has how many bytes of records follow; `None`: all that there are.
    pub records_size: Option<u8>,
}

/// A leaf whose value tells a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Magic {
    /// Its index in the record.
    pub leaf: u8,
    /// The values that it may have.
    pub values: Cow<'static, [u64]>,
}

impl Format {
    /// Whether a section holds what stands before the records of a file without a header, or behind them.
    #[must_use]
    pub fn is_around_records(&self, number: u8) -> bool {
        self.raw.as_ref().is_some_and(|raw| {
            number != raw.records
                && (raw.trailer == Some(number) || borrowed(&raw.starts).iter().any(|start| start.section == number))
        })
    }

    /// Bytes other than 0 that a file of this start has in its magic: the fewest that its values allow.
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
