//! Containers: how the bytes of a trace lie in a file (spec 5). Knows headers, extents, chunks, codecs, the index and
//! salvage; knows nothing of records.
//!
//! A reader turns a source into [`Part`]s: runs of one section's content, in file order. A writer takes finished runs
//! and lays them down.

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
    pub width: u8,
    /// Data records or stream elements the chunk header declares; `None` in version 0.
    pub records: Option<u32>,
    /// Salvage: chunks are missing between this part and the one delivered before it.
    pub damage_before: bool,
    /// Salvage: a chunk of this part's group before this part is missing.
    pub group_damaged: bool,
}

/// The bytes of a part.
#[derive(Clone, Debug)]
pub enum Content {
    /// A range of the mapped file or caller's slice.
    Mapped(std::ops::Range<usize>),
    /// Decompressed, or read from a stream.
    Owned(std::sync::Arc<[u8]>),
}

/// How a position in a part's content is named (spec 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Content byte 0 lies at this file offset.
    Stored(u64),
    /// The content is compressed or filtered: offset of the chunk's header.
    Packed(u64),
}
