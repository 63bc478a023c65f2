//! The chunk codecs (spec 5.2). A single table contains an entry for each codec, from which this module and the tools
//! derive everything else.
//!
//! To add a codec, add a file with its engine to this directory, a variant of [`Codec`], an entry in [`CODECS`], and a
//! feature with its name to `Cargo.toml`. `metatf` forwards such features.

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

/// A chunk compression codec (spec 5.2). A chunk that compression does not shorten is stored.
///
/// The string form is its name with an optional level: `stored`, `zstd`, `zstd:19`, `lz4`, `zlib:9`.
///
/// # Examples
///
/// ```
/// use metatf_container::Codec;
///
/// let codec: Codec = "zlib:9".parse()?;
/// assert_eq!(codec, Codec::Zlib(9));
/// assert_eq!(Codec::name_of(codec.number()), Some("zlib"));
/// assert_eq!("zlib:10".parse::<Codec>(), Err("the level must be from 0 to 9".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Codec number 0: stored without compression.
    Stored,
    /// Codec number 1: zstd with its level (0 means 3).
    Zstd(i32),
    /// Codec number 2: an LZ4 block.
    Lz4,
    /// Codec number 3: zlib with its level (0 to 9).
    Zlib(u32),
}

/// The number of the codec for stored content.
pub(crate) const STORED: u8 = 0;

/// The properties of a codec for all code outside its own module.
pub(crate) struct CodecEntry {
    /// The codec's name. In lower case, this is also the name of the codec's feature.
    name: &'static str,
    feature: &'static str,
    /// The highest level and the default level; 0 if the codec has no levels.
    levels: (i32, i32),
    with_level: fn(i32) -> Codec,
    /// The compression strength. The filter that suits a stronger codec suits weaker codecs, too.
    pub(crate) strength: u8,
    /// Returns the maximum content length for a payload length. If a chunk declares a longer content, no memory is
    /// allocated for it.
    pub(crate) most: fn(u64) -> u64,
    /// Whether a C library parses the payloads. A payload must not change while the library parses it.
    pub(crate) foreign: bool,
    /// The engine, or `None` if the codec is not built in or does nothing.
    pub(crate) engine: Option<Engine>,
}

/// The functions that create compressors and decompressors for a sequence of chunks.
pub(crate) struct Engine {
    /// Creates a compressor, or `None` if the codec can only decompress.
    pub(crate) compress: Option<fn() -> Box<dyn Compress>>,
    pub(crate) decompress: fn() -> Result<Box<dyn Decompress>, Failure>,
}

/// Compresses chunks.
pub(crate) trait Compress: Send {
    /// Compresses into `out`, which must be empty. Returns false if compression is abandoned because the result would
    /// not be shorter.
    fn compress(&mut self, level: i32, raw: &[u8], out: &mut Vec<u8>) -> Result<bool>;
}

/// Decompresses chunks.
pub(crate) trait Decompress: Send {
    /// Decompresses into `out`, filling it exactly.
    fn decompress(&mut self, payload: &[u8], out: &mut [u8]) -> Result<(), Failure>;
}

/// The reason why a payload cannot be decompressed.
pub(crate) enum Failure {
    /// The payload contains more or fewer bytes than requested.
    Length,
    /// The payload is invalid for this codec.
    Payload(&'static str),
}

/// All codecs, indexed by their numbers. The default is the first built-in codec that can compress.
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
        most: |payload| (payload / 4 + 1) * (128 << 10), // A block of up to 128 KiB takes at least 4 bytes.
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
        most: |payload| payload * 1040 + 64, // The best case of Deflate: 258 bytes in 2 bits.
        foreign: false,
        #[cfg(feature = "zlib")]
        engine: Some(zlib::ENGINE),
        #[cfg(not(feature = "zlib"))]
        engine: None,
    },
];

/// Number of codecs.
pub(crate) const COUNT: usize = CODECS.len();

/// Returns the codec with this number.
pub(crate) fn entry(number: u8) -> Option<&'static CodecEntry> {
    CODECS.get(usize::from(number))
}

impl CodecEntry {
    /// Returns whether chunks can be written with the codec.
    fn compresses(&self) -> bool {
        self.engine.as_ref().is_some_and(|engine| engine.compress.is_some())
    }
}

/// Returns the codec with this number if its decompressor is built in.
pub(crate) fn built_in(number: u8) -> Result<&'static CodecEntry, ErrorKind> {
    let entry = entry(number).ok_or(ErrorKind::Codec(number))?;
    let is_built_in = number == STORED || entry.engine.is_some();
    if is_built_in { Ok(entry) } else { Err(ErrorKind::MissingCodec(entry.feature)) }
}

impl Codec {
    /// Returns the codec's number in a chunk header.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Stored => STORED,
            Self::Zstd(_) => 1,
            Self::Lz4 => 2,
            Self::Zlib(_) => 3,
        }
    }

    /// Returns the codec's level, or 0 if the codec has no levels.
    pub(crate) fn level(self) -> i32 {
        match self {
            Self::Stored | Self::Lz4 => 0,
            Self::Zstd(level) => level,
            Self::Zlib(level) => level.try_into().unwrap_or(i32::MAX),
        }
    }

    /// Returns the name of the codec with this number in a chunk header.
    #[must_use]
    pub fn name_of(number: u8) -> Option<&'static str> {
        entry(number).map(|entry| entry.name)
    }

    /// Returns whether this program was built with support for writing chunks with the codec. Some builds can read zstd
    /// without being able to write it (feature `zstd-decode`).
    #[must_use]
    pub fn is_built_in(self) -> bool {
        self.check().is_ok()
    }

    /// Returns an error if chunks cannot be written with the codec, because its compressor is not built in.
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
    /// Returns zstd at level 3 if its compressor is built in, otherwise another codec with a built-in compressor, or
    /// `Stored` if no compressor is built in.
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
            Some(_) => Err(format!("the level must be from 0 to {most}")),
        }
    }
}

/// Returns the string forms of all codecs.
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
        assert_eq!("zlib:10".parse::<Codec>(), Err("the level must be from 0 to 9".to_owned()));
        assert_eq!("zstd:x".parse::<Codec>(), Err("the level must be from 0 to 22".to_owned()));
        for wrong in ["lz4:1", "stored:0", "brotli", ""] {
            let all = "one of stored, zstd:LEVEL, zstd, lz4, zlib:LEVEL, zlib";
            assert_eq!(wrong.parse::<Codec>(), Err(all.to_owned()));
        }
    }
}
