//! Runs of content, as a container delivers them to readers of records.

use super::content::{KeptColumns, Owned};
use super::source::Source;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The maximum `raw_len` of a chunk other than the index (spec 5.2).
pub const MAX_RAW_LEN: usize = 64 << 20;

/// A run of content of one section, in file order. It is an extent (version 0), a chunk (version 1) or a complete raw
/// stream.
#[derive(Clone, Debug)]
pub struct Part {
    /// Number of the section; 0 for the global section.
    pub section: u8,
    /// The bytes.
    pub content: Content,
    /// Form in which errors report a position in the content.
    pub origin: Origin,
    /// In version 1, the chunk's `base`, which is the offset of this content in its section's logical content. In
    /// version 0, the file offset (shown as `@offset`, spec 8).
    pub base: u64,
    /// Whether the section's state is reset before this part. Always true for a section's first part in version 0.
    pub reset: bool,
    /// Whether this is the first chunk of a group.
    pub group_start: bool,
    /// Whether this is a chunk of a shared table (flag bit 2).
    pub shared: bool,
    /// Number of the group.
    pub group: u32,
    /// The stored width of the single leaf of a stream section in this chunk, or 0 for the DTD's width. With a filter,
    /// this is the element size, and only a stream section of single numbers uses it as the leaf's width. Callers that
    /// know the DTD must check that such a chunk has a width of 1 to 8.
    pub width: u8,
    /// Whether the content was transposed, in which case `width` is the element size even if the section is not a
    /// stream section.
    pub transposed: bool,
    /// Number of data records or stream elements according to the chunk header; `None` in version 0.
    pub records: Option<u32>,
    /// Whether this part is the rest of a version 0 file without a section table. The reader of its records must follow
    /// the `section` records in it (spec 5.1).
    pub follow: bool,
    /// The byte range of the part in the file, including the header for a chunk.
    pub place: std::ops::Range<u64>,
    /// Whether, when salvaging, chunks are missing between the previous part and this part according to the sequence
    /// numbers. If this part does not belong to a shared table, the previous part is the last one outside shared
    /// tables.
    pub damage_before: bool,
    /// Whether, when salvaging, an earlier chunk of this part's group is missing or was reported with
    /// [`Reader::report_bad_content`](crate::Reader::report_bad_content). The cursors of the group are then unreliable:
    /// a part of a section that strides through a stream section must be dropped (spec 5.2); see
    /// [`Reader::report_lost`](crate::Reader::report_lost). Never set for chunks of shared tables.
    pub group_damaged: bool,
}

/// The bytes of a part.
#[derive(Clone, Debug)]
pub enum Content {
    /// A range of the mapped file or the caller's slice.
    Mapped(Range<usize>),
    /// Bytes that were decompressed or read from a stream.
    Owned(Owned),
    /// Columns that were not turned into content, because the caller [keeps](crate::Reader::keep_columns) them.
    #[doc(hidden)]
    Columns(KeptColumns),
}

impl Content {
    /// Keeps only the first bytes.
    pub fn truncate(&mut self, length: usize) {
        match self {
            Content::Mapped(range) => range.end = range.end.min(range.start.saturating_add(length)),
            Content::Owned(owned) => owned.truncate(length),
            Content::Columns(_) => {}
        }
    }
}

/// Content held independently of its reader.
#[derive(Clone, Debug)]
pub struct ContentBytes<'a>(Held<'a>);

#[derive(Clone, Debug)]
enum Held<'a> {
    Owned(Owned),
    Slice(&'a [u8]),
    Copied(Arc<[u8]>),
}

impl<'a> ContentBytes<'a> {
    /// Returns the bytes of `content`, which are empty if the content does not belong to this source.
    pub(crate) fn new(source: &Source<'a>, content: &Content) -> Self {
        Self(match (content, source) {
            (Content::Owned(owned), _) => Held::Owned(owned.clone()),
            (Content::Mapped(range), Source::Map(map)) => {
                Held::Copied(map.get(range.clone()).unwrap_or_default().into())
            }
            (Content::Mapped(range), Source::Slice { bytes, .. }) => {
                Held::Slice(bytes.get(range.clone()).unwrap_or_default())
            }
            (Content::Columns(_), _) | (Content::Mapped(_), Source::Ranges(_) | Source::Stream(_)) => Held::Slice(&[]),
        })
    }
}

impl Deref for ContentBytes<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Owned(owned) => owned,
            Held::Slice(bytes) => bytes,
            Held::Copied(bytes) => bytes,
        }
    }
}

/// Form in which errors report a position in a part's content (spec 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The content starts at this file offset.
    Stored(u64),
    /// The content is compressed or filtered. The value is the offset of the chunk's header.
    Packed(u64),
}
