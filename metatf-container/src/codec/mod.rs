//! The codecs of chunks (spec 5.2): one table with an entry for each, from which all else here and in the tools derives.
//!
//! To add a codec: a file beside this one with its engine, a variant of [`Codec`] and an entry of [`CODECS`]; and in
//! `Cargo.toml` a feature of its name, which `metatf` passes on.

#[cfg(feature = "lz4")]
mod lz4;
#[cfg(feature = "zlib")]
mod zlib;
#[cfg(feature = "zstd")]
mod zstd;
#[cfg(feature = "zstd-decode")]
mod zstd_decode;

use std::str::FromStr;

use crate::{Error, ErrorKind, Result};

/// How chunks are compressed (spec 5.2). A chunk that does not get shorter is stored.
///
/// Its text is its name, with a level if it has one: `stored`, `zstd`, `zstd:19`, `lz4`, `zlib:9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// 0: as it is.
    Stored,
    /// 1: zstd, with its level (0 means 3).
    Zstd(i32),
    /// 2: LZ4 block.
    Lz4,
    /// 3: zlib, with its level (0 to 9).
    Zlib(u32),
}

/// The number of what is stored as it is.
pub(crate) const STORED: u8 = 0;

/// A codec, as far as all but the codec itself need to know it.
pub(crate) struct CodecEntry {
    /// Its name; in lower case that of its feature.
    name: &'static str,
    feature: &'static str,
    /// The greatest level and the one taken where none is given; 0: it has no levels.
    levels: (i32, i32),
    with_level: fn(i32) -> Codec,
    /// Codecs that find more in content have a greater one: what filter suits them suits others.
    pub(crate) strength: u8,
    /// The most bytes that a payload of this many can hold: nothing is allocated for a length it cannot reach.
    pub(crate) most: fn(u64) -> u64,
    /// Payloads are parsed by a library in C, which must not see them change.
    pub(crate) foreign: bool,
    /// `None` where it is not built in, or nothing is to be done.
    pub(crate) engine: Option<Engine>,
}

/// Makes what compresses and decompresses chunks one after the other.
pub(crate) struct Engine {
    /// `None` where it decompresses only.
    pub(crate) compress: Option<fn() -> Box<dyn Compress>>,
    pub(crate) decompress: fn() -> Result<Box<dyn Decompress>, Failure>,
}

/// Compresses chunks.
pub(crate) trait Compress: Send {
    /// Compresses into `out`, which is empty; false where it gives up because the result would not be shorter.
    fn compress(&mut self, level: i32, raw: &[u8], out: &mut Vec<u8>) -> Result<bool>;
}

/// Decompresses chunks.
pub(crate) trait Decompress: Send {
    /// Fills `out` exactly.
    fn decompress(&mut self, payload: &[u8], out: &mut [u8]) -> Result<(), Failure>;
}

/// Why a payload is not decompressed.
pub(crate) enum Failure {
    /// It holds more or fewer bytes than asked for.
    Length,
    /// It is not a payload of this codec.
    Payload(&'static str),
}

/// All codecs, by their numbers. The first that is built in and compresses is the default.
static CODECS: [CodecEntry; 4] = [
    CodecEntry {
        name: "stored",
        feature: "",
        levels: (0, 0),
        with_level: |_| Codec::Stored,
        strength: 0,
        most: |payload| payload,
        foreign: false,
        engine: None,
    },
    CodecEntry {
        name: "zstd",
        feature: "zstd",
        levels: (22, 3),
        with_level: Codec::Zstd,
        strength: 3,
        most: |payload| (payload / 4 + 1) * (128 << 10), // A block of at most 128 KiB takes 4 bytes at least.
        foreign: true,
        #[cfg(feature = "zstd")]
        engine: Some(zstd::ENGINE),
        #[cfg(all(feature = "zstd-decode", not(feature = "zstd")))]
        engine: Some(zstd_decode::ENGINE),
        #[cfg(not(any(feature = "zstd", feature = "zstd-decode")))]
        engine: None,
    },
    CodecEntry {
        name: "LZ4",
        feature: "lz4",
        levels: (0, 0),
        with_level: |_| Codec::Lz4,
        strength: 1,
        most: |payload| payload * 255 + 64,
        foreign: false,
        #[cfg(feature = "lz4")]
        engine: Some(lz4::ENGINE),
        #[cfg(not(feature = "lz4"))]
        engine: None,
    },
    CodecEntry {
        name: "zlib",
        feature: "zlib",
        levels: (9, 6),
        with_level: |level| Codec::Zlib(level.unsigned_abs()),
        strength: 2,
        most: |payload| payload * 1040 + 64, // Deflate's least: 258 bytes in 2 bits.
        foreign: false,
        #[cfg(feature = "zlib")]
        engine: Some(zlib::ENGINE),
        #[cfg(not(feature = "zlib"))]
        engine: None,
    },
];

/// The codecs there are.
pub(crate) const COUNT: usize = CODECS.len();

/// The codec with this number.
pub(crate) fn entry(number: u8) -> Option<&'static CodecEntry> {
    CODECS.get(usize::from(number))
}

impl CodecEntry {
    /// Whether chunks can be written with it.
    fn compresses(&self) -> bool {
        self.engine.as_ref().is_some_and(|engine| engine.compress.is_some())
    }
}

/// The codec with this number, if what decompresses it is built in.
pub(crate) fn built_in(number: u8) -> Result<&'static CodecEntry, ErrorKind> {
    let entry = entry(number).ok_or(ErrorKind::Codec(number))?;
    let is_built_in = number == STORED || entry.engine.is_some();
    if is_built_in { Ok(entry) } else { Err(ErrorKind::MissingCodec(entry.feature)) }
}

impl Codec {
    /// Its number in a chunk header.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Stored => STORED,
            Self::Zstd(_) => 1,
            Self::Lz4 => 2,
            Self::Zlib(_) => 3,
        }
    }

    /// Its level; 0 where it has none.
    pub(crate) fn level(self) -> i32 {
        match self {
            Self::Stored | Self::Lz4 => 0,
            Self::Zstd(level) => level,
            Self::Zlib(level) => level.try_into().unwrap_or(i32::MAX),
        }
    }

    /// The name of the codec with this number in a chunk header.
    #[must_use]
    pub fn name_of(number: u8) -> Option<&'static str> {
        entry(number).map(|entry| entry.name)
    }

    /// Whether this program was built with it, so that chunks can be written. Some builds read zstd without writing it (feature
    /// `zstd-decode`).
    #[must_use]
    pub fn is_built_in(self) -> bool {
        self.check().is_ok()
    }

    /// Refuses a codec that chunks cannot be written with, as it was not built in.
    pub(crate) fn check(self) -> Result<()> {
        let entry = built_in(self.number()).map_err(|kind| Error::at(0, kind))?;
        let writes = self.number() == STORED || entry.compresses();
        if writes { Ok(()) } else { Err(Error::at(0, ErrorKind::MissingCodec(entry.feature))) }
    }

    pub(crate) fn entry(self) -> Option<&'static CodecEntry> {
        entry(self.number())
    }
}

impl Default for Codec {
    /// zstd at level 3 where it is built in, else another codec that is, else none. One that is only read is not taken.
    fn default() -> Self {
        let built_in = CODECS.iter().find(|entry| entry.compresses());
        built_in.map_or(Self::Stored, |entry| (entry.with_level)(entry.levels.1))
    }
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let named =
            |entry: &&CodecEntry| entry.name.eq_ignore_ascii_case(name) && (level.is_none() || entry.levels.0 > 0);
        let Some(entry) = CODECS.iter().find(named) else {
            return Err(names());
        };
        let (most, default) = entry.levels;
        match level.map(str::parse) {
            None => Ok((entry.with_level)(default)),
            Some(Ok(level)) if (0..=most).contains(&level) => Ok((entry.with_level)(level)),
            Some(_) => Err(format!("the level is 0 to {most}")),
        }
    }
}

/// The texts of all codecs.
fn names() -> String {
    let mut names = Vec::new();
    for entry in &CODECS {
        let name = entry.name.to_ascii_lowercase();
        if entry.levels.0 > 0 {
            names.push(format!("{name}:LEVEL"));
        }
        names.push(name);
    }
    format!("one of {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_in_the_table() {
        for (number, entry) in (0..).zip(&CODECS) {
            let codec = (entry.with_level)(entry.levels.1);
            assert_eq!((codec.number(), codec.level()), (number, entry.levels.1));
            assert_eq!(Codec::name_of(number), Some(entry.name));
        }
    }

    #[test]
    fn codecs_by_name() {
        assert_eq!("stored".parse(), Ok(Codec::Stored));
        assert_eq!("lz4".parse(), Ok(Codec::Lz4));
        assert_eq!("zstd".parse(), Ok(Codec::Zstd(3)));
        assert_eq!("zstd:19".parse(), Ok(Codec::Zstd(19)));
        assert_eq!("zlib:0".parse(), Ok(Codec::Zlib(0)));
        assert_eq!("zlib:10".parse::<Codec>(), Err("the level is 0 to 9".to_owned()));
        assert_eq!("zstd:x".parse::<Codec>(), Err("the level is 0 to 22".to_owned()));
        for wrong in ["lz4:1", "stored:0", "brotli", ""] {
            let all = "one of stored, zstd:LEVEL, zstd, lz4, zlib:LEVEL, zlib";
            assert_eq!(wrong.parse::<Codec>(), Err(all.to_owned()));
        }
    }
}
