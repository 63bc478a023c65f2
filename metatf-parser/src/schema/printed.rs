//! Formats values by the `format` property of their leaf (spec 2).

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Format, date};

impl Format {
    /// Appends a number in this format.
    pub fn write_number(self, out: &mut String, n: u64) {
        // Writing to a string cannot fail.
        let _ = match self {
            Format::Hex => write!(out, "{n:#x}"),
            Format::Signed => write!(out, "{}", n.cast_signed()),
            Format::F32 => match single(n) {
                Some(float) => write!(out, "{float:?}"),
                None => write!(out, "{n:#x}"),
            },
            Format::F64 => write!(out, "{:?}", f64::from_bits(n)),
            Format::TimeNs => write!(out, "{}.{:09}s", n / 1_000_000_000, n % 1_000_000_000),
            Format::TimeUs => write!(out, "{}.{:06}s", n / 1_000_000, n % 1_000_000),
            Format::TimeS => write!(out, "{n}s"),
            Format::DurationNs => duration(out, n),
            _ => match self.word(n) {
                // Enclose the characters in quotes. They may themselves include spaces and quotes.
                Some(word) if matches!(self, Format::Char | Format::Chars | Format::CharsLe) => {
                    write!(out, "'{}'", word.escape_debug())
                }
                Some(word) => write!(out, "{word}"),
                None => write!(out, "{n}"),
            },
        };
    }

    /// Checks whether the numbers are the bits of floating-point numbers.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Format::F32 | Format::F64)
    }

    /// Returns the floating-point number with these bits. Returns `None` if the format is neither `f32` nor `f64`, or if
    /// it is `f32` and the number has more than 32 bits.
    ///
    /// # Examples
    ///
    /// ```
    /// use metatf_parser::schema::Format;
    ///
    /// assert_eq!(Format::F32.float(0x3fc0_0000), Some(1.5));
    /// assert_eq!(Format::F64.float(1.5_f64.to_bits()), Some(1.5));
    /// assert_eq!(Format::Dec.float(0), None);
    /// ```
    #[must_use]
    pub fn float(self, n: u64) -> Option<f64> {
        match self {
            Format::F32 => single(n).map(f64::from),
            Format::F64 => Some(f64::from_bits(n)),
            _ => None,
        }
    }

    /// Returns the text that replaces the number, such as `true` or `127.0.0.1`. Returns `None` if the format does not
    /// replace numbers, or has no text for this number.
    #[must_use]
    pub fn word(self, n: u64) -> Option<String> {
        match self {
            Format::Bool => ["false", "true"].get(usize::try_from(n).ok()?).map(|word| (*word).to_owned()),
            Format::Ipv4 => u32::try_from(n).ok().map(|n| Ipv4Addr::from_bits(n).to_string()),
            Format::Char => u32::try_from(n).ok().and_then(char::from_u32).map(String::from),
            Format::Chars => chars(&n.to_be_bytes(), |text| text.trim_start_matches('\0')),
            Format::CharsLe => chars(&n.to_le_bytes(), |text| text.trim_end_matches('\0')),
            _ => date::text(n.cast_signed(), self.per_second()?),
        }
    }

    /// Checks whether there is any number for which [`word`](Self::word) returns text.
    #[must_use]
    pub fn has_words(self) -> bool {
        matches!(self, Format::Bool | Format::Ipv4 | Format::Char | Format::Chars | Format::CharsLe)
            || self.per_second().is_some()
    }

    /// Returns the number for a [`word`](Self::word).
    #[must_use]
    pub fn number_of_word(self, word: &str) -> Option<u64> {
        match self {
            Format::Bool => ["false", "true"].iter().position(|w| *w == word).and_then(|n| u64::try_from(n).ok()),
            Format::Ipv4 => word.parse::<Ipv4Addr>().ok().map(|address| address.to_bits().into()),
            Format::Char => {
                let mut chars = word.chars();
                let c = chars.next().filter(|_| chars.as_str().is_empty())?;
                Some(u32::from(c).into())
            }
            Format::Chars | Format::CharsLe if word.len() <= 8 && is_printable(word) => {
                let add = |sum: u64, byte: u8| sum << 8 | u64::from(byte);
                Some(if self == Format::Chars { word.bytes().fold(0, add) } else { word.bytes().rev().fold(0, add) })
            }
            _ => date::count(word, self.per_second()?).map(i64::cast_unsigned),
        }
    }

    /// Checks whether the format is a time, either in seconds or as a date.
    #[must_use]
    pub fn is_time(self) -> bool {
        matches!(self, Format::TimeNs | Format::TimeUs | Format::TimeS) || self.per_second().is_some()
    }

    /// Returns the number of the format's units per second, or `None` for formats other than dates.
    fn per_second(self) -> Option<i64> {
        match self {
            Format::DateNs => Some(1_000_000_000),
            Format::DateUs => Some(1_000_000),
            Format::DateMs => Some(1_000),
            Format::DateS => Some(1),
            _ => None,
        }
    }

    /// Returns the text for the bytes of an address or a UUID. Returns `None` if the format or the length does not
    /// match.
    #[must_use]
    pub fn word_of_bytes(self, bytes: &[u8]) -> Option<String> {
        let number = u128::from_be_bytes(bytes.try_into().ok()?);
        match self {
            Format::Ipv6 => Some(Ipv6Addr::from_bits(number).to_string()),
            Format::Uuid => {
                let hex = format!("{number:032x}");
                let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
                Some([part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-"))
            }
            _ => None,
        }
    }

    /// Returns the bytes as a string, which ends before the first 0 for `cstring` and contains all bytes for `utf8`.
    /// Returns `None` for other formats, and for invalid UTF-8.
    #[must_use]
    pub fn text_of_bytes(self, bytes: &[u8]) -> Option<&str> {
        match self {
            Format::Utf8 => std::str::from_utf8(bytes).ok(),
            Format::CString => std::str::from_utf8(cut(bytes).0).ok(),
            _ => None,
        }
    }

    /// Returns the bytes after [`text_of_bytes`](Self::text_of_bytes), which for `cstring` are the first 0 and all
    /// following bytes.
    #[must_use]
    pub fn tail_of_bytes(self, bytes: &[u8]) -> &[u8] {
        if self == Format::CString { cut(bytes).1 } else { &[] }
    }

    /// Returns the bytes for a [`word_of_bytes`](Self::word_of_bytes).
    #[must_use]
    pub fn bytes_of_word(self, word: &str) -> Option<[u8; 16]> {
        let number = match self {
            Format::Ipv6 => word.parse::<Ipv6Addr>().ok()?.to_bits(),
            Format::Uuid => {
                let parts: Vec<&str> = word.split('-').collect();
                let is_hex = word.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
                let lengths = parts.iter().map(|part| part.len());
                let fits = is_hex && lengths.eq([8, 4, 4, 4, 12]);
                fits.then(|| u128::from_str_radix(&parts.concat(), 16).ok()).flatten()?
            }
            _ => return None,
        };
        Some(number.to_be_bytes())
    }
}

/// Returns the characters of a number after `trim` has removed the zero bytes at the most significant end. Returns
/// `None` if there are no characters or any character is not printable ASCII.
fn chars(bytes: &[u8; 8], trim: impl Fn(&str) -> &str) -> Option<String> {
    let text = trim(std::str::from_utf8(bytes).ok()?);
    is_printable(text).then(|| text.to_owned())
}

/// Checks whether the text is a nonempty sequence of printable ASCII characters.
fn is_printable(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| matches!(b, b' '..=b'~'))
}

/// Splits bytes before the first 0.
fn cut(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()))
}

/// Returns the 4-byte floating-point number with these bits.
fn single(n: u64) -> Option<f32> {
    u32::try_from(n).ok().map(f32::from_bits)
}

/// Appends a number of nanoseconds in the largest unit that does not exceed the value, such as `1.5ms`.
fn duration(out: &mut String, n: u64) -> std::fmt::Result {
    let (unit, name, digits) = match n {
        0..1_000 => return write!(out, "{n}ns"),
        1_000..1_000_000 => (1_000, "us", 3),
        1_000_000..1_000_000_000 => (1_000_000, "ms", 6),
        _ => (1_000_000_000, "s", 9),
    };
    let rest = format!("{:0digits$}", n % unit);
    let rest = rest.trim_end_matches('0');
    let point = if rest.is_empty() { "" } else { "." };
    write!(out, "{}{point}{rest}{name}", n / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: Format, n: u64) -> String {
        let mut out = String::new();
        format.write_number(&mut out, n);
        out
    }

    #[test]
    fn numbers_read_by_their_format() {
        for (format, n, expected) in [
            (Format::Hex, 255, "0xff"),
            (Format::Signed, u64::MAX, "-1"),
            (Format::F64, 1.5_f64.to_bits(), "1.5"),
            (Format::F32, 0.1_f32.to_bits().into(), "0.1"),
            (Format::F32, 1 << 32, "0x100000000"),
            (Format::TimeNs, 1_000_000_001, "1.000000001s"),
            (Format::TimeUs, 2_000_003, "2.000003s"),
            (Format::TimeS, 7, "7s"),
            (Format::DurationNs, 0, "0ns"),
            (Format::DurationNs, 999, "999ns"),
            (Format::DurationNs, 1_500, "1.5us"),
            (Format::DurationNs, 1_000_000, "1ms"),
            (Format::DurationNs, u64::MAX, "18446744073.709551615s"),
            (Format::Bool, 1, "true"),
            (Format::Bool, 2, "2"),
            (Format::Ipv4, 0x7f00_0001, "127.0.0.1"),
            (Format::Ipv4, 1 << 32, "4294967296"),
            (Format::Char, 0x61, "'a'"),
            (Format::Char, 10, "'\\n'"),
            (Format::Char, 0xd800, "55296"),
            (Format::Uuid, 5, "5"),
            (Format::Chars, 0x4948_4452, "'IHDR'"),
            (Format::Chars, 0x4948_4400, "1229472768"),
            (Format::Chars, 0x27, r"'\''"),
            (Format::Chars, 0, "0"),
            (Format::CharsLe, 0x4646_4952, "'RIFF'"),
            (Format::CharsLe, 0x6162_6364_6566_6768, "'hgfedcba'"),
            (Format::CharsLe, 0x41_00, "16640"),
            (Format::DateS, 1_000_000_000, "2001-09-09T01:46:40Z"),
            (Format::DateMs, 1_000_000_000_001, "2001-09-09T01:46:40.001Z"),
            (Format::DateUs, u64::MAX, "1969-12-31T23:59:59.999999Z"),
            (Format::DateNs, 0, "1970-01-01T00:00:00.000000000Z"),
            (Format::DateS, 1 << 40, "1099511627776"),
        ] {
            assert_eq!(text(format, n), expected);
        }
    }

    #[test]
    fn bytes_read_as_text() {
        for (format, bytes, text, tail) in [
            (Format::Utf8, &b"ab"[..], Some("ab"), &b""[..]),
            (Format::Utf8, b"\xff", None, b""),
            (Format::Bytes, b"ab", None, b""),
            (Format::CString, b"", Some(""), b""),
            (Format::CString, b"ab", Some("ab"), b""),
            (Format::CString, b"ab\0c\0", Some("ab"), b"\0c\0"),
            (Format::CString, b"ab\0\xff", Some("ab"), b"\0\xff"),
            (Format::CString, b"\xff\0", None, b"\0"),
        ] {
            assert_eq!((format.text_of_bytes(bytes), format.tail_of_bytes(bytes)), (text, tail));
        }
    }

    #[test]
    fn words_are_read_again() {
        for c in (0..0x300).chain([0x202e, 0x1_f600, 0x10_ffff]) {
            let word = Format::Char.word(c).unwrap_or_default();
            assert_eq!(Format::Char.number_of_word(&word), Some(c), "{word}");
        }
        for n in [0, 1, 0xffff_ffff, 0x0a00_0001] {
            assert_eq!(Format::Ipv4.word(n).and_then(|w| Format::Ipv4.number_of_word(&w)), Some(n));
        }
        for format in [Format::Chars, Format::CharsLe, Format::DateS, Format::DateNs] {
            for n in [0x41, 0x4948_4452, 0x6162_6364_6566_6768, 0x2020_2020] {
                let word = format.word(n).unwrap_or_default();
                assert_eq!(format.number_of_word(&word), format.word(n).map(|_| n), "{word}");
            }
            assert_eq!(["", "ninechars", "\u{e9}"].map(|word| format.number_of_word(word)), [None; 3]);
        }
        for word in ["yes", "", "ab", "\u{301}a", "1.2.3"] {
            let read = [Format::Bool, Format::Char, Format::Ipv4].map(|format| format.number_of_word(word));
            assert_eq!(read, [None; 3], "{word}");
        }
        let bytes: [u8; 16] = std::array::from_fn(|i| u8::try_from(i).unwrap_or(0));
        for (format, word) in
            [(Format::Uuid, "00010203-0405-0607-0809-0a0b0c0d0e0f"), (Format::Ipv6, "1:203:405:607:809:a0b:c0d:e0f")]
        {
            assert_eq!(
                (format.word_of_bytes(&bytes).as_deref(), format.bytes_of_word(word)),
                (Some(word), Some(bytes))
            );
        }
        assert_eq!((Format::Uuid.word_of_bytes(b"short"), Format::Hex.word_of_bytes(&bytes)), (None, None));
        for word in ["+0010203-0405-0607-0809-0a0b0c0d0e0f", "00010203040506070809-0a0b0c0d0e0f", ""] {
            assert_eq!(Format::Uuid.bytes_of_word(word), None);
        }
    }
}
