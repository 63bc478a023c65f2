//! The file header (spec 5.1), which is the same in both versions.

use super::feature_names;
use crate::{Error, ErrorKind, Result};

/// The width of addresses and of the header's integers (spec 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Class number 1: 32-bit addresses and 4-byte integers.
    Bits32,
    /// Class number 2: 64-bit addresses and 8-byte integers.
    Bits64,
}

impl Class {
    /// Returns the class with this number in the header.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Bits32),
            2 => Some(Self::Bits64),
            _ => None,
        }
    }

    /// Returns the number of the class in the header.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Bits32 => 1,
            Self::Bits64 => 2,
        }
    }

    /// Returns whether addresses have 64 bits.
    #[must_use]
    pub fn is_64(self) -> bool {
        self == Self::Bits64
    }

    /// Returns the size in bytes of an `int` in the header and of a metadata value with default width (spec 4.1).
    #[must_use]
    pub fn int_size(self) -> usize {
        match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }
}

/// The byte order of the header's integers and of record content (spec 5.1).
///
/// # Examples
///
/// ```
/// use metatf_container::Order;
///
/// assert_eq!(Order::Little.read(&[0x34, 0x12]), 0x1234);
/// let mut bytes = Vec::new();
/// Order::Big.write(0x1234, 3, &mut bytes);
/// assert_eq!(bytes, [0, 0x12, 0x34]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Byte order number 1: little-endian.
    Little,
    /// Byte order number 2: big-endian.
    Big,
}

impl Order {
    /// Returns the byte order with this number in the header.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Little),
            2 => Some(Self::Big),
            _ => None,
        }
    }

    /// Returns the number of the byte order in the header.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Little => 1,
            Self::Big => 2,
        }
    }

    /// Returns the integer in `bytes`, zero-extended. If there are more than 8 bytes, returns the low 64 bits.
    #[inline]
    #[must_use]
    pub fn read(self, bytes: &[u8]) -> u64 {
        let push = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, push),
            Self::Big => bytes.iter().fold(0, push),
        }
    }

    /// Stores the low bytes of `value` in `out`. At most 8 bytes are stored.
    #[doc(hidden)]
    #[inline]
    pub fn store(self, value: u64, out: &mut [u8]) {
        let width = out.len().min(8);
        let (little, big) = (value.to_le_bytes(), value.to_be_bytes());
        let bytes = match self {
            Self::Little => little.get(..width),
            Self::Big => big.get(8 - width..),
        };
        if let (Some(out), Some(bytes)) = (out.get_mut(..width), bytes) {
            out.copy_from_slice(bytes);
        }
    }

    /// Appends the low `width` bytes (0 to 8) of `value` to `out`.
    #[inline]
    pub fn write(self, value: u64, width: usize, out: &mut Vec<u8>) {
        let width = width.min(8);
        match self {
            Self::Little => out.extend_from_slice(&value.to_le_bytes()[..width]),
            Self::Big => out.extend_from_slice(&value.to_be_bytes()[8 - width..]),
        }
    }
}

/// An entry in the section table of version 0 (spec 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionEntry {
    /// `sh_number`: the section number, or 0 for the global part (first entry only).
    pub number: u8,
    /// `sh_start`: the offset just after the extent's `section` record.
    pub start: u64,
    /// `sh_size`: the size of the content in bytes.
    pub size: u64,
    /// Offset of the entry itself in the file.
    pub entry_offset: u64,
}

/// The file header (spec 5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The class, 32 or 64 bits.
    pub class: Class,
    /// The byte order of content.
    pub order: Order,
    /// The version: 0 for the paper's layout, 1 for chunks (spec 5.2).
    pub version: u8,
    /// Offset of the first data byte or chunk.
    pub start: u64,
    /// Number of data records in the file; 0 if it is unknown or not representable.
    pub nrecords: u64,
    /// The URL of the DTD. Invalid UTF-8 is replaced.
    pub dtd_url: String,
    /// The section table of version 0; empty if there is none.
    pub sections: Vec<SectionEntry>,
    /// The features that the trace requires of its reader, as a bit mask of their numbers.
    pub features: u64,
    /// Size of the header in bytes, including the table.
    pub len: u64,
}

/// The first bytes of a trace (spec 5.1).
pub const MAGIC: [u8; 4] = [0x7f, b'M', b'T', b'F'];

/// Offset of the feature bits, which end where the integers begin.
const FEATURES_AT: usize = 8;

/// Offset of `nsections`; `start` and `nrecords` follow as one `int` each.
pub(crate) const INTS_AT: usize = 16;

fn invalid(offset: usize, what: &'static str, found: u64, expected: &'static str) -> Error {
    Error::at(offset as u64, ErrorKind::Invalid { what, found, expected })
}

impl Header {
    /// Returns the maximum size of a header without its section table, given at least the first 16 bytes of the file.
    /// If the bytes are not a header, returns the minimum size.
    pub(crate) fn most_len(bytes: &[u8]) -> usize {
        let int = bytes.get(4).and_then(|&n| Class::from_number(n)).map_or(4, Class::int_size);
        let names = bytes.get(FEATURES_AT..INTS_AT).is_some_and(|pad| pad.iter().any(|&pad| pad != 0));
        let names = if names { feature_names::MOST_BYTES } else { 0 };
        INTS_AT + 3 * int + bytes.get(6).map_or(0, |&n| usize::from(n)) + names
    }

    /// Reads the header without the section table and returns it with the table's length. `bytes` starts at the first
    /// byte of the file and may extend past the header. Every error contains the offset of the invalid field.
    pub(crate) fn parse(bytes: &[u8]) -> Result<(Self, u64)> {
        let cut = |at: usize, what| Error::at(at as u64, ErrorKind::Truncated(what));
        let Some(magic) = bytes.get(..4) else {
            let agrees = !bytes.is_empty() && MAGIC.starts_with(bytes);
            return Err(if agrees { cut(0, "the header") } else { wrong_magic(bytes) });
        };
        if magic != MAGIC {
            return Err(wrong_magic(magic));
        }
        let byte = |at: usize, what| bytes.get(at).copied().ok_or_else(|| cut(at, what));
        let number = byte(4, "the header's class")?;
        let class =
            Class::from_number(number).ok_or_else(|| invalid(4, "class", number.into(), "1 (32-bit) or 2 (64-bit)"))?;
        let number = byte(5, "the header's byteorder")?;
        let order = Order::from_number(number)
            .ok_or_else(|| invalid(5, "byteorder", number.into(), "1 (little-endian) or 2 (big-endian)"))?;
        let url_len = usize::from(byte(6, "the header's dtdlength")?);
        let version = byte(7, "the header's pad")?;
        if version > 1 {
            return Err(invalid(7, "version (pad[0])", version.into(), "0 or 1"));
        }
        let mut features = [0; 8];
        for (at, pad) in (FEATURES_AT..INTS_AT).zip(&mut features) {
            *pad = byte(at, "the header's pad")?;
            if *pad != 0 && version == 0 {
                return Err(invalid(at, "pad", (*pad).into(), "0"));
            }
        }
        let int = class.int_size();
        let field = |index: usize, what| {
            let at = INTS_AT + index * int;
            bytes.get(at..at + int).map(|b| order.read(b)).ok_or_else(|| cut(at, what))
        };
        let nsections = field(0, "the header's nsections")?;
        let start = field(1, "the header's start")?;
        let nrecords = field(2, "the header's nrecords")?;
        let url_at = INTS_AT + 3 * int;
        let url = bytes.get(url_at..url_at + url_len).ok_or_else(|| cut(url_at, "the header's dtd"))?;

        let (features, unknown, names_end) =
            feature_names::parse(u64::from_le_bytes(features), bytes, url_at + url_len)?;

        let table = nsections.checked_mul(3 * int as u64);
        let len = table.and_then(|table| table.checked_add(names_end as u64));
        let (Some(table), Some(len)) = (table, len) else {
            return Err(invalid(INTS_AT, "nsections", nsections, "a number of sections whose table fits in the file"));
        };
        if version == 1 && nsections != 0 {
            return Err(invalid(INTS_AT, "nsections", nsections, "0, because a version 1 file has no section table"));
        }
        if version == 1 && start != len {
            return Err(invalid(INTS_AT + int, "start", start, "the end of the header"));
        }
        if unknown.numbers() != 0 {
            let first = FEATURES_AT as u64 + u64::from(unknown.numbers().trailing_zeros() / 8);
            return Err(Error::at(first, ErrorKind::UnknownFeatures(unknown)));
        }
        if start < len {
            return Err(invalid(INTS_AT + int, "start", start, "an offset after the header"));
        }
        let dtd_url = String::from_utf8_lossy(url).into_owned();
        Ok((Self { class, order, version, start, nrecords, dtd_url, sections: Vec::new(), features, len }, table))
    }

    /// Reads the section table of a version 0 file, which must be completely in memory, and checks every rule that does
    /// not depend on the tag width: the section numbers, their order, and overflows of start plus size.
    pub(crate) fn parse_table(&mut self, file: &[u8], table_len: u64) -> Result<()> {
        let int = self.class.int_size();
        let table_at = self.len.saturating_sub(table_len);
        let range = usize::try_from(table_at).ok().zip(usize::try_from(self.len).ok());
        let Some(table) = range.and_then(|(from, to)| file.get(from..to)) else {
            return Err(Error::at(file.len() as u64, ErrorKind::Truncated("the section table")));
        };
        if self.start > file.len() as u64 {
            return Err(invalid(INTS_AT + int, "start", self.start, "an offset inside the file"));
        }
        let mut entry_offset = table_at;
        self.sections.reserve(table.len() / (3 * int));
        for entry in table.chunks_exact(3 * int) {
            let number = self.order.read(&entry[..int]);
            let Ok(small) = u8::try_from(number) else {
                let kind = ErrorKind::Invalid { what: "sh_number", found: number, expected: "0 to 255" };
                return Err(Error::at(entry_offset, kind));
            };
            self.sections.push(SectionEntry {
                number: small,
                start: self.order.read(&entry[int..2 * int]),
                size: self.order.read(&entry[2 * int..]),
                entry_offset,
            });
            entry_offset += 3 * int as u64;
        }
        Ok(())
    }

    /// Returns the header's bytes without the table. `nsections` is the number of entries that follow.
    pub(crate) fn emit(&self, nsections: u64) -> Vec<u8> {
        let int = self.class.int_size();
        let url = self.dtd_url.as_bytes();
        let url = &url[..url.len().min(255)];
        let mut out = Vec::with_capacity(INTS_AT + 3 * int + url.len());
        out.extend_from_slice(&MAGIC);
        let url_len = u8::try_from(url.len()).unwrap_or(u8::MAX);
        out.extend_from_slice(&[self.class.number(), self.order.number(), url_len, self.version]);
        out.extend_from_slice(&self.features.to_le_bytes());
        for value in [nsections, self.start, self.nrecords] {
            self.order.write(value, int, &mut out);
        }
        out.extend_from_slice(url);
        feature_names::emit(self.features, &mut out);
        out
    }
}

fn wrong_magic(found: &[u8]) -> Error {
    let mut bytes = [0; 4];
    bytes.iter_mut().zip(found).for_each(|(byte, found)| *byte = *found);
    Error::at(0, ErrorKind::NotATrace(bytes, u8::try_from(found.len()).unwrap_or(4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error names all missing features: if it named only one, users might install a version that lacks another.
    #[test]
    fn all_features_that_are_missing_are_named() {
        let header = Header {
            class: Class::Bits64,
            order: Order::Little,
            version: 1,
            start: 40,
            nrecords: 0,
            dtd_url: String::new(),
            sections: Vec::new(),
            features: 0,
            len: 40,
        };
        let message = |pad: [u8; 8], names: &[&[u8]]| {
            let mut bytes = header.emit(0);
            bytes[8..16].copy_from_slice(&pad);
            for name in names {
                bytes.push(u8::try_from(name.len()).expect("a short name"));
                bytes.extend_from_slice(name);
            }
            let len = bytes.len();
            bytes[24] = u8::try_from(len).expect("a short header");
            let error = Header::parse(&bytes).unwrap_err();
            (error.place.offset, error.kind.to_string())
        };
        let needs =
            |features: &str| format!("the trace needs {features}, which this version of the program does not support");
        let pad = [0, 2, 0, 0, 0, 0, 0, 0];
        assert_eq!(message(pad, &[b"pages"]), (9, needs("the feature \"pages\" (9)")));
        let long = [b'a'; 31];
        let longest = format!("the feature \"{}\" (9)", "a".repeat(31));
        assert_eq!(message(pad, &[&long]), (9, needs(&longest)));
        let pad = [0, 0, 1, 0, 0, 0, 0, 128];
        assert_eq!(message(pad, &[b"x", b"y-2"]), (10, needs("the features \"x\" (16) and \"y-2\" (63)")));
        let pad = [1, 0, 1, 0, 0, 0, 0, 128];
        // The second name does not fit, so later names are not stored either.
        assert_eq!(message(pad, &[b"x", &long, b"z"]), (8, needs("the features \"x\" (0), 16 and 63")));
    }

    /// A name consists of a few harmless characters, because it may be printed to a terminal.
    #[test]
    fn names_are_short_and_plain() {
        let mut bytes = b"\x7fMTF\x01\x01\x00\x01".to_vec();
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([0; 12]);
        let wrong = |name: &[u8]| {
            let error = Header::parse(&[&bytes, name].concat()).unwrap_err();
            (error.place.offset, error.kind)
        };
        let length = |found| ErrorKind::Invalid { what: "the length of a feature's name", found, expected: "1 to 31" };
        assert_eq!(wrong(b"\0"), (28, length(0)));
        assert_eq!(wrong(&[&[32][..], &[b'a'; 32]].concat()), (28, length(32)));
        let byte = |found| ErrorKind::Invalid {
            what: "a byte of a feature's name",
            found,
            expected: "a lower-case letter, a digit or `-`",
        };
        assert_eq!(wrong(b"\x03a\x1b["), (30, byte(0x1b)));
        assert_eq!(wrong(b"\x02a "), (30, byte(0x20)));
        let cut = ErrorKind::Truncated("the names of the header's features");
        assert_eq!(wrong(b""), (28, cut));
        assert_eq!(wrong(b"\x03ab"), (29, cut));
    }

    /// `start` determines where the feature names end. A header whose names end elsewhere is invalid, whichever
    /// features it requires.
    #[test]
    fn names_end_where_the_chunks_start() {
        let mut bytes = b"\x7fMTF\x01\x01\x00\x01".to_vec();
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([0, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(b"\x02ab");
        let error = Header::parse(&bytes).unwrap_err();
        assert_eq!(error.to_string(), "offset 20: start is 28, expected the end of the header");
    }
}
