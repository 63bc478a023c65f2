//! The index and the footer of version 1 (spec 5.2).

use super::chunk::{self, ChunkHeader};
use crate::{Error, ErrorKind, Result};

/// Size of an index entry in bytes.
pub(crate) const ENTRY: usize = 32;
/// Size of the footer in bytes.
pub(crate) const FOOTER: usize = 16;
const MAGIC: [u8; 4] = *b"MTFE";

/// An index entry, which describes a chunk of the file; the index itself has no entry. A chunk's sequence number is the
/// position of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkInfo {
    /// Offset of the chunk's header.
    pub offset: u64,
    /// Offset of the chunk's content within the logical content of its section.
    pub base: u64,
    /// Section number; 0 for the global section and for chunks other than data.
    pub section: u8,
    /// Kind: 0 for data, 1 for the DTD, 3 for user metadata, 129 for the times of groups; other kinds are unknown.
    pub kind: u8,
    /// Codec number.
    pub codec: u8,
    /// Flags: bit 0 for a reset, bit 1 for the first chunk of a group, bit 2 for a shared table.
    pub flags: u8,
    /// Size of the payload in bytes.
    pub stored_len: u32,
    /// Size of the content in bytes.
    pub raw_len: u32,
    /// Number of data records or stream elements.
    pub nrecords: u32,
}

impl ChunkInfo {
    pub(crate) fn of(header: &ChunkHeader, offset: u64) -> Self {
        Self {
            offset,
            base: header.base,
            section: header.section,
            kind: header.kind,
            codec: header.codec,
            flags: header.flags,
            stored_len: header.stored_len,
            raw_len: header.raw_len,
            nrecords: header.nrecords,
        }
    }

    /// Returns the offset of the end of the chunk.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(chunk::LEN as u64).saturating_add(self.stored_len.into())
    }

    /// Returns whether this is a data chunk of a shared table or a group.
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.kind == chunk::DATA
    }

    /// Returns whether the section's state is reset before this chunk.
    #[must_use]
    pub fn is_reset(&self) -> bool {
        self.flags & chunk::RESET != 0
    }

    /// Returns whether this is the first chunk of a group.
    #[must_use]
    pub fn is_group_start(&self) -> bool {
        self.is_data() && self.flags & chunk::GROUP != 0
    }

    /// Returns whether this is a chunk of a shared table.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.is_data() && self.flags & chunk::SHARED != 0
    }

    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.base.to_le_bytes());
        out.extend_from_slice(&[self.section, self.kind, self.codec, self.flags]);
        for int in [self.stored_len, self.raw_len, self.nrecords] {
            out.extend_from_slice(&int.to_le_bytes());
        }
    }

    pub(crate) fn parse(b: &[u8; ENTRY]) -> Self {
        let int = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        let long = |i: usize| u64::from(int(i + 4)) << 32 | u64::from(int(i));
        Self {
            offset: long(0),
            base: long(8),
            section: b[16],
            kind: b[17],
            codec: b[18],
            flags: b[19],
            stored_len: int(20),
            raw_len: int(24),
            nrecords: int(28),
        }
    }

    /// Returns the first field that differs from `other`, as its offset in the entry, its name, and its value in this
    /// entry.
    fn difference(&self, other: &Self) -> Option<(u64, &'static str, u64)> {
        let fields = [
            (0, "the index entry's offset", self.offset, other.offset),
            (8, "the index entry's base", self.base, other.base),
            (16, "the index entry's section", self.section.into(), other.section.into()),
            (17, "the index entry's kind", self.kind.into(), other.kind.into()),
            (18, "the index entry's codec", self.codec.into(), other.codec.into()),
            (19, "the index entry's flags", self.flags.into(), other.flags.into()),
            (20, "the index entry's stored_len", self.stored_len.into(), other.stored_len.into()),
            (24, "the index entry's raw_len", self.raw_len.into(), other.raw_len.into()),
            (28, "the index entry's nrecords", self.nrecords.into(), other.nrecords.into()),
        ];
        fields.into_iter().find(|f| f.2 != f.3).map(|f| (f.0, f.1, f.2))
    }

    /// Checks an entry against `real`, the entry of the actual chunk. `entry_at` is the offset of the entry.
    pub(crate) fn check(&self, real: &Self, entry_at: u64) -> Result<()> {
        let Some((at, what, found)) = self.difference(real) else { return Ok(()) };
        Err(Error::at(entry_at + at, ErrorKind::Invalid { what, found, expected: "the value in the chunk's header" }))
    }
}

/// Returns the entries in an index chunk's payload, ignoring an incomplete entry at its end.
pub(crate) fn entries(payload: &[u8]) -> impl ExactSizeIterator<Item = ChunkInfo> {
    payload.as_chunks::<ENTRY>().0.iter().map(ChunkInfo::parse)
}

/// Compares the index at `start` with the chunks found in the file.
pub(crate) fn check(payload: &[u8], start: u64, seen: &[ChunkInfo]) -> Result<()> {
    let payload_at = start + chunk::LEN as u64;
    if payload.len() != seen.len().saturating_mul(ENTRY) {
        let what = "the length of the index";
        let kind =
            ErrorKind::Invalid { what, found: payload.len() as u64, expected: "32 bytes for each chunk before it" };
        return Err(Error::at(start + chunk::at::RAW_LEN, kind));
    }
    for (n, (entry, real)) in entries(payload).zip(seen).enumerate() {
        entry.check(real, payload_at + (n * ENTRY) as u64)?;
    }
    Ok(())
}

/// Returns the footer for an index at offset `index`.
pub(crate) fn footer(index: u64) -> [u8; FOOTER] {
    let mut out = [0; FOOTER];
    out[..8].copy_from_slice(&index.to_le_bytes());
    let crc = chunk::crc_of(&out[..8]);
    out[8..12].copy_from_slice(&crc.to_le_bytes());
    out[12..].copy_from_slice(&MAGIC);
    out
}

/// Returns the offset of the index if `bytes` is a footer.
pub(crate) fn parse_footer(bytes: &[u8]) -> Option<u64> {
    let bytes: &[u8; FOOTER] = bytes.try_into().ok()?;
    let index = u64::from_le_bytes(*bytes.first_chunk()?);
    (footer(index) == *bytes).then_some(index)
}

/// Checks the data after the index at `index`: `rest` contains up to 17 bytes starting at `start`. Returns `Ok(false)`
/// if there is no data, because the file was not closed.
pub(crate) fn check_footer(rest: &[u8], start: u64, index: u64) -> Result<bool> {
    if rest.is_empty() {
        return Ok(false);
    }
    let Some((bytes, more)) = rest.split_first_chunk::<FOOTER>() else {
        return Err(Error::at(start, ErrorKind::Truncated("the footer")));
    };
    let right = footer(index);
    let wrong =
        |at: u64, what, found: u64, expected| Err(Error::at(start + at, ErrorKind::Invalid { what, found, expected }));
    if bytes[12..] != MAGIC {
        let found = super::Order::Big.read(&bytes[12..]);
        return wrong(12, "the footer's magic", found, "'MTFE' (1297368645)");
    }
    if bytes[8..12] != chunk::crc_of(&bytes[..8]).to_le_bytes() {
        return Err(Error::at(start + 8, ErrorKind::Checksum));
    }
    if bytes != &right {
        let found = super::Order::Little.read(&bytes[..8]);
        return wrong(0, "the footer's offset", found, "the offset of the index chunk");
    }
    if !more.is_empty() {
        let expected = "0, because the footer is the last 16 bytes of the file";
        return wrong(0, "the number of bytes after the footer", more.len() as u64, expected);
    }
    Ok(true)
}
