//! Names for the values and bits of a number (spec 2, `values` and `flags`). Names do not affect the stored bytes.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

/// Numbers and their names, in DTD order.
pub type NameList = Arc<[(u64, String)]>;

/// The names of a leaf's values or bits, as defined in the DTD.
///
/// # Examples
///
/// ```
/// use metatf_parser::schema::{Bits, Names};
///
/// // `flags = "0 writable, 4-7 version"`
/// let version = Bits { first: 4, last: 7 };
/// let names = Names::Flags([(0, "writable".to_owned()), (version.number(), "version".to_owned())].into());
/// assert_eq!(names.text(0x51).as_deref(), Some("writable|version=5"));
/// assert_eq!(names.value("writable|version=5"), Some(0x51));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// No names.
    #[default]
    None,
    /// Names of values, as in an enumeration. Values without a name are also allowed.
    Values(NameList),
    /// Names of bits, counted from the least significant bit, and of bit ranges that contain a number. The bits are
    /// encoded as [`Bits::number`].
    Flags(NameList),
}

/// A named bit or range of bits of an integer.
///
/// See the example of [`Names`](Names#examples).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The least significant bit, 0 to 63.
    pub first: u8,
    /// The most significant bit. If it equals `first`, this is a flag; otherwise, the range contains a number.
    pub last: u8,
}

impl Bits {
    /// Returns the encoding in a [`NameList`]. For a single bit, this is the bit's index; for a range, it is the first
    /// index plus 256 times the last index.
    #[must_use]
    pub fn number(self) -> u64 {
        u64::from(self.first) | if self.is_flag() { 0 } else { u64::from(self.last) << 8 }
    }

    /// Returns the bits encoded as this number in a list.
    #[must_use]
    pub fn of(number: u64) -> Self {
        let [first, last, ..] = number.to_le_bytes();
        Self { first: first.min(63), last: last.clamp(first.min(63), 63) }
    }

    /// Checks whether this is a single bit.
    #[must_use]
    pub fn is_flag(self) -> bool {
        self.first == self.last
    }

    /// Returns an integer in which exactly these bits are set.
    #[must_use]
    pub fn mask(self) -> u64 {
        u64::MAX >> (63 - (self.last - self.first)) << self.first
    }

    /// Parses `4` or `4-7`.
    fn parse(text: &str) -> Option<Self> {
        let bit = |text: &str| number_of(text).and_then(|n| u8::try_from(n).ok()).filter(|bit| *bit < 64);
        match text.split_once('-') {
            Some((first, last)) => {
                Some(Self { first: bit(first)?, last: bit(last)? }).filter(|bits| bits.first < bits.last)
            }
            None => bit(text).map(|bit| Self { first: bit, last: bit }),
        }
    }
}

impl std::fmt::Display for Bits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_flag() { write!(f, "{}", self.first) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

impl Names {
    /// Returns the numbers and names. For flags, the numbers are encoded as [`Bits::number`].
    #[must_use]
    pub fn list(&self) -> &[(u64, String)] {
        match self {
            Names::None => &[],
            Names::Values(list) | Names::Flags(list) => list,
        }
    }

    /// Returns the name of a value. For flags, the result consists of the names of the set bits, separated by `|` and
    /// followed by all unnamed bits as a single hexadecimal number; a nonzero bit range has the form `name=5`. Returns
    /// `None` if the value has no name or no flag is set.
    #[must_use]
    pub fn text(&self, value: u64) -> Option<Cow<'_, str>> {
        match self {
            Names::None => None,
            Names::Values(list) => list.iter().find(|(v, _)| *v == value).map(|(_, name)| name.into()),
            Names::Flags(list) => {
                let mut rest = value;
                let mut text = String::new();
                for (bits, name) in list.iter().map(|(number, name)| (Bits::of(*number), name)) {
                    let number = (value & bits.mask()) >> bits.first;
                    if number == 0 {
                        continue;
                    }
                    rest &= !bits.mask();
                    text += if text.is_empty() { "" } else { "|" };
                    text += name;
                    if !bits.is_flag() {
                        let _ = write!(text, "={number}");
                    }
                }
                if rest != 0 && !text.is_empty() {
                    let _ = write!(text, "|{rest:#x}");
                }
                (!text.is_empty()).then(|| text.into())
            }
        }
    }

    /// Returns the value with this name. This is the inverse of [`text`](Self::text).
    #[must_use]
    pub fn value(&self, text: &str) -> Option<u64> {
        let find = |list: &NameList, text: &str| list.iter().find(|(_, name)| name == text).map(|(v, _)| *v);
        match self {
            Names::None => None,
            Names::Values(list) => find(list, text),
            Names::Flags(list) => text.split('|').try_fold(0, |value, part| {
                let bit = find(list, part).map(Bits::of).filter(|bits| bits.is_flag()).map(Bits::mask);
                let range = || {
                    let (name, number) = part.split_once('=')?;
                    let bits = find(list, name).map(Bits::of).filter(|bits| !bits.is_flag())?;
                    let number: u64 = number.parse().ok()?;
                    (number <= bits.mask() >> bits.first).then(|| number << bits.first)
                };
                let hex = || u64::from_str_radix(part.strip_prefix("0x")?, 16).ok();
                Some(value | bit.or_else(range).or_else(hex)?)
            }),
        }
    }
}

/// Maximum number of names in a list. Nobody would read a longer list.
const MOST_NAMES: usize = 4096;

/// A mistake in the text of a list, as its location and a message.
pub(crate) type ListError = (Range<usize>, String);

/// Parses a list such as `0 running, 1 sleeping`. A trailing comma is allowed.
pub(crate) fn parse(text: &str, flags: bool) -> Result<NameList, ListError> {
    let (mut numbers, mut names, mut taken) = (HashSet::new(), HashSet::new(), 0);
    let mut list = Vec::new();
    let mut at = 0;
    let text = text.trim_end().strip_suffix(',').unwrap_or(text);
    for item in text.split(',') {
        let start = at + item.len() - item.trim_start().len();
        at += item.len() + 1;
        let item = item.trim();
        let fail = |message: String| Err((start..start + item.len(), message));
        let Some((number, name)) = item.split_once(char::is_whitespace) else {
            return fail(format!("expected a number and a name, found `{item}`"));
        };
        let name = name.trim_start();
        let bits = if flags { Bits::parse(number) } else { None };
        let Some(value) = (if flags { bits.map(Bits::number) } else { number_of(number) }) else {
            return fail(match flags {
                true => format!("expected a bit from 0 to 63 or a range of bits such as `4-7`, found `{number}`"),
                false if is_hexadecimal(number) => {
                    format!("expected a number, found `{number}`; hexadecimal numbers begin with `0x`")
                }
                false => format!("expected a 64-bit number, found `{number}`"),
            });
        };
        let strange = |c: char| c.is_control() || changes_direction(c);
        if name.contains(strange) || (flags && name.contains(['|', '='])) || number_of(name).is_some() {
            return fail(format!("`{}` cannot be used as a name", name.escape_debug()));
        }
        let mask = bits.map_or(0, Bits::mask);
        if taken & mask != 0 || !numbers.insert(value) {
            return fail(format!("`{number}` has two names"));
        }
        taken |= mask;
        if !names.insert(name) {
            return fail(format!("two numbers have the name `{name}`"));
        }
        if list.len() == MOST_NAMES {
            return fail(format!("there are more than {MOST_NAMES} names"));
        }
        list.push((value, name.to_owned()));
    }
    Ok(list.into())
}

/// Returns whether a character changes the text direction, so that text may be displayed in a misleading order.
#[must_use]
pub fn changes_direction(c: char) -> bool {
    matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Checks whether a word is a number with hexadecimal letters and without `0x`.
pub(crate) fn is_hexadecimal(word: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| word.bytes().any(|byte| kind(&byte));
    let is_long = matches!(word.len(), 8 | 16);
    has(u8::is_ascii_alphabetic) && (has(u8::is_ascii_digit) || is_long) && u64::from_str_radix(word, 16).is_ok()
}

/// Parses a decimal or hexadecimal number. A negative number is converted to two's complement.
fn number_of(text: &str) -> Option<u64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let number = match digits.strip_prefix("0x") {
        Some(hex) if !hex.starts_with('+') => u64::from_str_radix(hex, 16).ok(),
        None if !digits.starts_with('+') => digits.parse().ok(),
        _ => None,
    }?;
    match negative {
        true => (number <= 1 << 63).then(|| number.wrapping_neg()),
        false => Some(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_names_and_names_values() {
        let names = Names::Values(parse("0 running, 0x10 not found ,-1 gone,", false).unwrap_or_default());
        for (value, name) in [(0, "running"), (16, "not found"), (u64::MAX, "gone")] {
            assert_eq!((names.text(value).as_deref(), names.value(name)), (Some(name), Some(value)));
        }
        assert_eq!((names.text(1), names.value("Running"), names.value("")), (None, None, None));
    }

    #[test]
    fn flags_are_joined() {
        let names = Names::Flags(parse("0 read, 1 write, 63 top", true).unwrap_or_default());
        for (value, text) in [(1, "read"), (3, "read|write"), (1 << 63 | 2 | 0x30, "write|top|0x30")] {
            assert_eq!((names.text(value).as_deref(), names.value(text)), (Some(text), Some(value)));
        }
        assert_eq!((names.text(0), names.text(4), names.value("read|"), names.value("x")), (None, None, None, None));
        assert_eq!(names.value("0x4"), Some(4));
    }

    #[test]
    fn several_bits_are_a_number() {
        let names = Names::Flags(parse("0-3 length, 4-0x7 version, 9 last, 10-63 rest", true).unwrap_or_default());
        for (value, text) in [
            (0x45, "length=5|version=4"),
            (0x200, "last"),
            (0x5, "length=5"),
            (!0x100, "length=15|version=15|last|rest=18014398509481983"),
        ] {
            assert_eq!((names.text(value).as_deref(), names.value(text)), (Some(text), Some(value)));
        }
        assert_eq!(names.text(0x104).as_deref(), Some("length=4|0x100"));
        for text in ["length=16", "length", "length=", "last=1", "length=-1", "other=1"] {
            assert_eq!(names.value(text), None, "{text}");
        }
        let all = parse("0-63 all", true).unwrap_or_default();
        assert_eq!(Names::Flags(all).text(u64::MAX).as_deref(), Some("all=18446744073709551615"));
    }

    #[test]
    fn what_is_no_list() {
        for (text, flags, at) in [
            ("", false, 0..0),
            ("0 a,, 1 b", false, 4..4),
            ("0 a, 1", false, 5..6),
            ("0 a, x b", false, 5..8),
            ("0 a, 0x0 b", false, 5..10),
            ("0 a, 1 a", false, 5..8),
            ("0 7", false, 0..3),
            ("0 a\u{202e}", false, 0..6),
            ("64 a", true, 0..4),
            ("-1 a", true, 0..4),
            ("0 a|b", true, 0..5),
            ("0 a=b", true, 0..5),
            ("3-3 a", true, 0..5),
            ("4-3 a", true, 0..5),
            ("0-64 a", true, 0..6),
            ("0-3-4 a", true, 0..7),
            ("3 a, 0-3 b", true, 5..10),
            ("0-3 a", false, 0..5),
        ] {
            assert_eq!(parse(text, flags).map_err(|(at, _)| at), Err(at), "{text:?}");
        }
    }
}
