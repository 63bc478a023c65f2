//! The 48-byte chunk header and the rules for individual chunks (spec 5.2).

use super::codec;
use super::columns::MOST_RATIO;
use super::crc;
use super::header::{Class, Header, Order};
use super::part::MAX_RAW_LEN;
use super::source::Source;
use crate::{Error, ErrorKind, Result};

/// Size of a chunk header in bytes.
pub(crate) const LEN: usize = 48;
pub(crate) const SYNC: [u8; 4] = *b"MTFC";

pub(crate) const DATA: u8 = 0;
pub(crate) const DTD: u8 = 1;
pub(crate) const INDEX: u8 = 2;
pub(crate) const USER: u8 = 3;
/// The times of groups, which readers skip unless they need them.
pub(crate) const TIMES: u8 = 129;
/// The lowest chunk kind that readers skip if they do not recognize it.
pub(crate) const OTHERS: u8 = 128;

/// Flag bit 0: the section's state is reset before this chunk.
pub(crate) const RESET: u8 = 1;
/// Flag bit 1: the first chunk of a group.
pub(crate) const GROUP: u8 = 2;
/// Flag bit 2: a chunk of a shared table.
pub(crate) const SHARED: u8 = 4;

/// Offsets of the fields in the header, for errors that report an invalid field.
pub(crate) mod at {
    pub(crate) const SECTION: u64 = 4;
    pub(crate) const KIND: u64 = 5;
    pub(crate) const CODEC: u64 = 6;
    pub(crate) const FILTER: u64 = 7;
    pub(crate) const FLAGS: u64 = 8;
    pub(crate) const WIDTH: u64 = 9;
    pub(crate) const CLASS: u64 = 10;
    pub(crate) const ORDER: u64 = 11;
    pub(crate) const STORED_LEN: u64 = 12;
    pub(crate) const RAW_LEN: u64 = 16;
    pub(crate) const NRECORDS: u64 = 20;
    pub(crate) const GROUP: u64 = 24;
    pub(crate) const SEQUENCE: u64 = 28;
    pub(crate) const BASE: u64 = 32;
    pub(crate) const FILTERED_LEN: u64 = 40;
}

/// Filter number of byte transpose.
pub(crate) const TRANSPOSE: u8 = 1;
/// Filter number of the record dictionary.
pub(crate) const RECORD_DICTIONARY: u8 = 2;
/// Filter number of split suffix: a record dictionary of the records without their last bytes, followed by the last
/// bytes.
pub(crate) const SPLIT_SUFFIX: u8 = 3;

/// Filter number of columns.
pub(crate) const COLUMNS: u8 = 4;

/// A chunk header without the sync bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    pub(crate) section: u8,
    pub(crate) kind: u8,
    pub(crate) codec: u8,
    pub(crate) filter: u8,
    pub(crate) flags: u8,
    pub(crate) width: u8,
    pub(crate) class: u8,
    pub(crate) order: u8,
    pub(crate) stored_len: u32,
    pub(crate) raw_len: u32,
    pub(crate) nrecords: u32,
    pub(crate) group: u32,
    pub(crate) sequence: u32,
    pub(crate) base: u64,
    /// For filters 2 and 3, the length of the filtered content before compression; 0 for other filters.
    pub(crate) filtered_len: u32,
    pub(crate) crc: u32,
}

impl ChunkHeader {
    /// Parses a header that begins with the sync bytes.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let b: &[u8; LEN] = bytes.get(..LEN)?.try_into().ok()?;
        if b[..4] != SYNC {
            return None;
        }
        let int = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        Some(Self {
            section: b[4],
            kind: b[5],
            codec: b[6],
            filter: b[7],
            flags: b[8],
            width: b[9],
            class: b[10],
            order: b[11],
            stored_len: int(12),
            raw_len: int(16),
            nrecords: int(20),
            group: int(24),
            sequence: int(28),
            base: u64::from(int(36)) << 32 | u64::from(int(32)),
            filtered_len: int(40),
            crc: int(44),
        })
    }

    /// Returns the header's bytes, with the CRC for `payload`.
    pub(crate) fn emit(&self, payload: &[u8]) -> [u8; LEN] {
        let mut b = [0; LEN];
        b[..4].copy_from_slice(&SYNC);
        let bytes = [self.section, self.kind, self.codec, self.filter, self.flags, self.width, self.class, self.order];
        b[4..12].copy_from_slice(&bytes);
        let ints = [self.stored_len, self.raw_len, self.nrecords, self.group, self.sequence];
        for (place, value) in b[12..32].chunks_exact_mut(4).zip(ints) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        b[32..40].copy_from_slice(&self.base.to_le_bytes());
        b[40..44].copy_from_slice(&self.filtered_len.to_le_bytes());
        let crc = crc(&b, payload);
        b[44..].copy_from_slice(&crc.to_le_bytes());
        b
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns whether the chunk's bytes are its content, without codec and filter.
    pub(crate) fn is_plain(&self) -> bool {
        self.codec == codec::STORED && self.filter == 0
    }

    /// Returns the length of header and payload.
    pub(crate) fn total_len(&self) -> u64 {
        LEN as u64 + u64::from(self.stored_len)
    }

    /// Returns whether the declared payload length exceeds the output of every codec, in which case the header is
    /// corrupt. (The specification limits only `raw_len`. Without this check, a corrupt length could cause the entire
    /// rest of a stream to be read into memory.)
    pub(crate) fn is_absurd(&self) -> bool {
        self.kind != INDEX && u64::from(self.stored_len) > 2 * MAX_RAW_LEN as u64
    }

    /// Checks the rules for an individual chunk. `start` is the file offset of the chunk header. An error contains the
    /// offset of the invalid field.
    pub(crate) fn check(&self, start: u64, file: &Header) -> Result<()> {
        let wrong = |at: u64, what, found: u64, expected| {
            Err(Error::at(start + at, ErrorKind::Invalid { what, found, expected }))
        };
        if Class::from_number(self.class) != Some(file.class) {
            return wrong(at::CLASS, "the chunk's class", self.class.into(), "the header's class");
        }
        if Order::from_number(self.order) != Some(file.order) {
            return wrong(at::ORDER, "the chunk's byteorder", self.order.into(), "the header's byteorder");
        }
        if self.kind >= OTHERS {
            return Ok(()); // Skipped, because the meaning of the fields is unknown.
        }
        if self.kind > USER {
            let expected = "0 data, 1 DTD, 2 index, 3 user metadata, or 128 to 255";
            return wrong(at::KIND, "the chunk's kind", self.kind.into(), expected);
        }
        self.check_fields(start)
    }

    /// Checks the fields that depend on the kind, if this is a kind that the caller does not skip.
    pub(crate) fn check_fields(&self, start: u64) -> Result<()> {
        let wrong = |at: u64, what, found: u64, expected| {
            Err(Error::at(start + at, ErrorKind::Invalid { what, found, expected }))
        };
        if codec::entry(self.codec).is_none() {
            return Err(Error::at(start + at::CODEC, ErrorKind::Codec(self.codec)));
        }
        if self.filter > COLUMNS {
            let expected = "0 none, 1 byte transpose, 2 record dictionary, 3 split suffix or 4 columns";
            return wrong(at::FILTER, "the chunk's filter", self.filter.into(), expected);
        }
        if self.flags & !(RESET | GROUP | SHARED) != 0 {
            return wrong(at::FLAGS, "the chunk's flags", self.flags.into(), "only bits 0 to 2");
        }
        if self.filter == TRANSPOSE && self.width == 0 {
            return wrong(at::WIDTH, "the chunk's width", 0, "the element size that the filter requires");
        }
        if self.filter != TRANSPOSE && self.width > 8 {
            let expected = "1 to 8 for a numeric leaf, or 0";
            return wrong(at::WIDTH, "the chunk's width", self.width.into(), expected);
        }
        if self.raw_len as usize > MAX_RAW_LEN && self.kind != INDEX {
            return wrong(at::RAW_LEN, "the chunk's raw_len", self.raw_len.into(), "at most 64 MiB");
        }
        if self.has_filtered_len() {
            self.check_filtered_len(start)?;
        } else if self.filtered_len != 0 {
            let expected = "0, because only filters 2 and 3 use filtered_len";
            return wrong(at::FILTERED_LEN, "the chunk's filtered_len", self.filtered_len.into(), expected);
        } else if self.filter == COLUMNS {
            self.check_columns(start)?;
        } else if self.codec == codec::STORED && self.raw_len != self.stored_len {
            return wrong(
                at::RAW_LEN,
                "the chunk's raw_len",
                self.raw_len.into(),
                "the value of stored_len, because the content is stored",
            );
        }
        if self.filter == TRANSPOSE && !self.raw_len.is_multiple_of(self.width.into()) {
            let expected = "a multiple of the filter's element size";
            return wrong(at::RAW_LEN, "the chunk's raw_len", self.raw_len.into(), expected);
        }
        if self.kind == DATA { Ok(()) } else { self.check_not_data(start) }
    }

    /// Returns whether the filter changes the length of the content.
    pub(crate) fn has_filtered_len(&self) -> bool {
        matches!(self.filter, RECORD_DICTIONARY | SPLIT_SUFFIX)
    }

    fn check_filtered_len(&self, start: u64) -> Result<()> {
        let found = self.filtered_len;
        if found == 0 {
            let (what, expected) = ("the chunk's filter", "0 or 1 if filtered_len is 0");
            let kind = ErrorKind::Invalid { what, found: self.filter.into(), expected };
            return Err(Error::at(start + at::FILTER, kind));
        }
        let stored = self.codec != codec::STORED || found == self.stored_len;
        // A token takes at least one byte and represents at most 255 bytes. With a suffix, it takes two bytes and
        // represents at most 256.
        let long_enough = u64::from(found) * 255 >= u64::from(self.raw_len);
        if stored && long_enough && found as usize <= MAX_RAW_LEN {
            return Ok(());
        }
        let expected = "the length of the codec's output, from raw_len / 255 to 64 MiB";
        let what = "the chunk's filtered_len";
        Err(Error::at(start + at::FILTERED_LEN, ErrorKind::Invalid { what, found: found.into(), expected }))
    }

    fn check_columns(&self, start: u64) -> Result<()> {
        let what = "the chunk's filter";
        let wrong =
            |expected| Error::at(start + at::FILTER, ErrorKind::Invalid { what, found: COLUMNS.into(), expected });
        if self.kind != DATA {
            return Err(wrong("a filter other than 4, because the chunk is not a data chunk"));
        }
        if u64::from(self.raw_len) > u64::from(self.stored_len).saturating_mul(MOST_RATIO) {
            let (what, expected) = ("the chunk's raw_len", "at most 65,536 times stored_len");
            let kind = ErrorKind::Invalid { what, found: self.raw_len.into(), expected };
            return Err(Error::at(start + at::RAW_LEN, kind));
        }
        Ok(())
    }

    fn check_not_data(&self, start: u64) -> Result<()> {
        let zero = [
            (at::SECTION, "the chunk's section", u64::from(self.section)),
            (at::FLAGS, "the chunk's flags", self.flags.into()),
            (at::NRECORDS, "the chunk's nrecords", self.nrecords.into()),
            (at::GROUP, "the chunk's group", self.group.into()),
        ];
        for (at, what, found) in zero {
            if found != 0 {
                let expected = "0, because the chunk is not a data chunk";
                return Err(Error::at(start + at, ErrorKind::Invalid { what, found, expected }));
            }
        }
        if self.kind == INDEX && !self.is_plain() {
            let what = "the index's codec or filter";
            let found = u64::from(self.codec.max(self.filter));
            return Err(Error::at(start + at::CODEC, ErrorKind::Invalid { what, found, expected: "0 (stored)" }));
        }
        Ok(())
    }
}

/// Returns the CRC-32C of the 44 header bytes before the CRC field and of the payload.
pub(crate) fn crc(header: &[u8; LEN], payload: &[u8]) -> u32 {
    crc::append(crc_of(&header[..44]), payload)
}

/// Returns the CRC-32C of a run of bytes.
pub(crate) fn crc_of(bytes: &[u8]) -> u32 {
    crc::append(0, bytes)
}

/// The result of checking the chunk at an offset.
pub(crate) enum Probe {
    /// The end of the input.
    End,
    /// A complete chunk with a valid CRC. Its fields have not been checked yet.
    Whole(ChunkHeader),
    /// No chunk, an incomplete chunk, or a chunk with an invalid CRC.
    Bad(Error),
}

/// The result of locating the chunk at an offset without checking its CRC.
pub(crate) enum Frame {
    /// A complete chunk.
    Whole(ChunkHeader),
    /// No chunk or an incomplete chunk, as described by the [`Probe`].
    None(Probe),
}

/// Checks the chunk at `start`. Returns an error only if reading the source fails; problems with the chunk are returned
/// in the [`Probe`].
pub(crate) fn probe(source: &mut Source<'_>, start: u64) -> Result<Probe> {
    match frame(source, start)? {
        Frame::None(probe) => Ok(probe),
        Frame::Whole(header) if crc_holds(source, &header, start)? => Ok(Probe::Whole(header)),
        Frame::Whole(_) => Ok(Probe::Bad(Error::at(start, ErrorKind::Checksum))),
    }
}

/// Locates the chunk at `start` without checking its CRC.
pub(crate) fn frame(source: &mut Source<'_>, start: u64) -> Result<Frame> {
    let head = source.view(start, LEN)?;
    if head.is_empty() {
        return Ok(Frame::None(Probe::End));
    }
    let bad = |at: u64, kind| Ok(Frame::None(Probe::Bad(Error::at(at, kind))));
    let sync = &head[..head.len().min(4)];
    if !SYNC.starts_with(sync) {
        let found = Order::Big.read(sync);
        return bad(start, ErrorKind::Invalid { what: "the chunk's sync", found, expected: "'MTFC' (1297368643)" });
    }
    let Some(header) = ChunkHeader::parse(head) else {
        return bad(start, ErrorKind::Truncated("a chunk header"));
    };
    if header.is_absurd() {
        let what = "the chunk's stored_len";
        let found = header.stored_len.into();
        return bad(start + at::STORED_LEN, ErrorKind::Invalid { what, found, expected: "at most 128 MiB" });
    }
    let len = LEN.saturating_add(header.stored_len as usize);
    if !source.has(start, len)? {
        return bad(start, ErrorKind::Truncated("a chunk"));
    }
    Ok(Frame::Whole(header))
}

/// Returns whether the CRC of the complete chunk at `start` is valid.
pub(crate) fn crc_holds(source: &mut Source<'_>, header: &ChunkHeader, start: u64) -> Result<bool> {
    let frame = source.view(start, LEN.saturating_add(header.stored_len as usize))?;
    Ok(frame.split_first_chunk::<LEN>().is_some_and(|(head, payload)| crc(head, payload) == header.crc))
}
