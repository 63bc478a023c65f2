//! A run of content, as a container gives it to anyone who reads records.

use super::content::Owned;
use super::source::Source;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The largest `raw_len` of a chunk other than the index (spec 5.2).
pub const MAX_RAW_LEN: usize = 64 << 20;

/// A run of content of one section, in file order: an extent (version 0), a chunk (version 1), a whole raw stream.
#[derive(Clone, Debug)]
pub struct Part {
    /// Number of the section; 0 the global one.
    pub section: u8,
    /// Where the bytes are.
    pub content: Content,
    /// How a position in the content is named in an error.
    pub origin: Origin,
    /// Version 1: `base`, the offset of this content in its section's logical content. Version 0: the file offset
    /// (what `@offset` shows, spec 8).
    pub base: u64,
    /// State of the section is reset before this part (always for a section's first part in version 0).
    pub reset: bool,
    /// First chunk of a group.
    pub group_start: bool,
    /// A chunk of a shared table (flag bit 2).
    pub shared: bool,
    /// Number of the group.
    pub group: u32,
    /// The stored width of the single leaf of a stream section in this chunk, in place of the DTD's; 0: the DTD's.
    /// Where there is a filter, it is the element size, and only a stream section of one numeric leaf reads it as
    /// the leaf's width; that such a section's chunk has 1 to 8 is for anyone who knows the DTD to check.
    pub width: u8,
    /// The content was transposed: `width` is the size of its elements, whatever the section.
    pub transposed: bool,
    /// Data records or stream elements the chunk header declares; `None` in version 0.
    pub records: Option<u32>,
    /// Version 0 without a section table: this part is the rest of the file, and its reader follows the `section`
    /// records in it (spec 5.1).
    pub follow: bool,
    /// Where the part lies in the file; a chunk with its header.
    pub place: std::ops::Range<u64>,
    /// Salvage: by the sequence numbers, chunks are missing between this part and the one returned before it (where
    /// this one is not of a shared table: the one before it that is not).
    pub damage_before: bool,
    /// Salvage: a chunk of this part's group before this part is missing, or was reported with
    /// [`Reader::report_bad_content`](crate::Reader::report_bad_content). The cursors of the group can no longer be trusted: a part of a section that
    /// strides through a stream section must be dropped (spec 5.2), see [`Reader::report_lost`](crate::Reader::report_lost). Never set for
    /// chunks of shared tables.
    pub group_damaged: bool,
}

/// The bytes of a part.
#[derive(Clone, Debug)]
pub enum Content {
    /// A range of the mapped file or caller's slice.
    Mapped(Range<usize>),
    /// Decompressed, or read from a stream.
    Owned(Owned),
}

impl Content {
    /// Keeps the first bytes only.
    pub fn truncate(&mut self, length: usize) {
        match self {
            Content::Mapped(range) => range.end = range.end.min(range.start.saturating_add(length)),
            Content::Owned(owned) => owned.truncate(length),
        }
    }
}

/// Content that is held apart from the reader that it came from.
#[derive(Clone, Debug)]
pub struct ContentBytes<'a>(Held<'a>);

#[derive(Clone, Debug)]
enum Held<'a> {
    Owned(Owned),
    Slice(&'a [u8]),
    Copied(Arc<[u8]>),
}

impl<'a> ContentBytes<'a> {
    /// Empty where the content is not of this source.
    pub(crate) fn new(source: &Source<'a>, content: &Content) -> Self {
        Self(match (content, source) {
            (Content::Owned(owned), _) => Held::Owned(owned.clone()),
            (Content::Mapped(range), Source::Map(map)) => {
                Held::Copied(map.get(range.clone()).unwrap_or_default().into())
            }
            (Content::Mapped(range), Source::Slice { bytes, .. }) => {
                Held::Slice(bytes.get(range.clone()).unwrap_or_default())
            }
            (Content::Mapped(_), Source::File(_) | Source::Stream(_)) => Held::Slice(&[]),
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

/// How a position in a part's content is named (spec 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Content byte 0 lies at this file offset.
    Stored(u64),
    /// The content is compressed or filtered: offset of the chunk's header.
    Packed(u64),
}
