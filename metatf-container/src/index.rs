//! The index and the footer of version 1 (spec 5.2).

use super::chunk::{self, ChunkHeader};
use crate::{Error, ErrorKind, Result};

/// Bytes of an index entry.
pub(crate) const ENTRY: usize = 32;
/// Bytes of the footer.
pub(crate) const FOOTER: usize = 16;
const MAGIC: [u8; 4] = *b"MTFE";

/// An entry of the index: a chunk of the file, the index itself not counted. The chunk's sequence number is its
/// place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkInfo {
    /// Offset of the chunk's header.
    pub offset: u64,
    /// Offset of its content in the logical content of its section.
    pub base: u64,
    /// Section number; 0 the global section, and for kinds other than data.
    pub section: u8,
    /// 0 data, 1 DTD, 3 user metadata, others unknown.
    pub kind: u8,
    /// Number of the codec.
    pub codec: u8,
    /// Bit 0 reset, bit 1 first of a group, bit 2 shared table.
    pub flags: u8,
    /// Bytes of payload.
    pub stored_len: u32,
    /// Bytes of content.
    pub raw_len: u32,
    /// Data records or stream elements.
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

    /// A data chunk, of a shared table or a group.
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.kind == chunk::DATA
    }

    /// State is reset here.
    #[must_use]
    pub fn is_reset(&self) -> bool {
        self.flags & chunk::RESET != 0
    }

    /// The first chunk of a group.
    #[must_use]
    pub fn is_group_start(&self) -> bool {
        self.is_data() && self.flags & chunk::GROUP != 0
    }

    /// A chunk of a shared table.
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

    /// The first field that differs: its place in the entry, name, and value here.
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

    /// Checks an entry against the chunk that is really there. `entry_at` is where the entry lies.
    pub(crate) fn check(&self, real: &Self, entry_at: u64) -> Result<()> {
        let Some((at, what, found)) = self.difference(real) else { return Ok(()) };
        Err(Error::at(entry_at + at, ErrorKind::Invalid { what, found, expected: "what the chunk's header says" }))
    }
}

/// The entries of an index chunk's payload, which may end in part of one.
pub(crate) fn entries(payload: &[u8]) -> impl ExactSizeIterator<Item = ChunkInfo> {
    payload.as_chunks::<ENTRY>().0.iter().map(ChunkInfo::parse)
}

/// Compares the index at `start` with the chunks that were there.
pub(crate) fn check(payload: &[u8], start: u64, seen: &[ChunkInfo]) -> Result<()> {
    let payload_at = start + chunk::LEN as u64;
    if payload.len() != seen.len().saturating_mul(ENTRY) {
        let what = "the index's length";
        let kind =
            ErrorKind::Invalid { what, found: payload.len() as u64, expected: "32 bytes for each chunk before it" };
        return Err(Error::at(start + chunk::at::RAW_LEN, kind));
    }
    for (n, (entry, real)) in entries(payload).zip(seen).enumerate() {
        entry.check(real, payload_at + (n * ENTRY) as u64)?;
    }
    Ok(())
}

/// The footer's bytes for an index at `index`.
pub(crate) fn footer(index: u64) -> [u8; FOOTER] {
    let mut out = [0; FOOTER];
    out[..8].copy_from_slice(&index.to_le_bytes());
    let crc = chunk::crc_of(&out[..8]);
    out[8..12].copy_from_slice(&crc.to_le_bytes());
    out[12..].copy_from_slice(&MAGIC);
    out
}

/// Where the index is, if `bytes` is a footer.
pub(crate) fn parse_footer(bytes: &[u8]) -> Option<u64> {
    let bytes: &[u8; FOOTER] = bytes.try_into().ok()?;
    let index = u64::from_le_bytes(*bytes.first_chunk()?);
    (footer(index) == *bytes).then_some(index)
}

/// Checks what follows the index at `index`: `rest` is up to 17 bytes, from `start` on. `Ok(false)`: nothing is
/// there, the file was not closed.
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
        let expected = "nothing: the footer is the last 16 bytes of the file";
        return wrong(0, "what follows the footer", more.len() as u64, expected);
    }
    Ok(true)
}
