//! Names of a number's values and bits (spec 2, `values` and `flags`). They change no stored byte.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

/// Numbers and their names, in the order of the DTD.
pub type NameList = Arc<[(u64, String)]>;

/// Names that a DTD gives to the values of a leaf, or to their bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// None.
    #[default]
    None,
    /// Of values: an enumeration. Other values are allowed and have no name.
    Values(NameList),
    /// Of bits, numbered from the least significant one.
    Flags(NameList),
}

impl Names {
    /// Returns the numbers and names; of flags the numbers of bits.
    #[must_use]
    pub fn list(&self) -> &[(u64, String)] {
        match self {
            Names::None => &[],
            Names::Values(list) | Names::Flags(list) => list,
        }
    }

    /// Returns the name of a value: of flags those that are set, with `|` between and the bits without a name as one
    /// hexadecimal number behind. `None` where it has no name, and for flags of which none is set.
    #[must_use]
    pub fn text(&self, value: u64) -> Option<Cow<'_, str>> {
        match self {
            Names::None => None,
            Names::Values(list) => list.iter().find(|(v, _)| *v == value).map(|(_, name)| name.into()),
            Names::Flags(list) => {
                let mut rest = value;
                let mut text = String::new();
                for (bit, name) in list.iter().filter(|(bit, _)| value >> bit & 1 == 1) {
                    rest &= !(1 << bit);
                    text += if text.is_empty() { "" } else { "|" };
                    text += name;
                }
                if rest != 0 && !text.is_empty() {
                    let _ = write!(text, "|{rest:#x}");
                }
                (!text.is_empty()).then(|| text.into())
            }
        }
    }

    /// Returns the value with this name: the reverse of [`text`](Self::text).
    #[must_use]
    pub fn value(&self, text: &str) -> Option<u64> {
        let find = |list: &NameList, text: &str| list.iter().find(|(_, name)| name == text).map(|(v, _)| *v);
        match self {
            Names::None => None,
            Names::Values(list) => find(list, text),
            Names::Flags(list) => text.split('|').try_fold(0, |value, part| {
                let bit = find(list, part).map(|bit| 1 << bit);
                let hex = || u64::from_str_radix(part.strip_prefix("0x")?, 16).ok();
                Some(value | bit.or_else(hex)?)
            }),
        }
    }
}

/// More names than this are not a list that a person reads.
const MOST_NAMES: usize = 4096;

/// What is wrong with a list, and where in its text.
pub(crate) type ListError = (Range<usize>, String);

/// Reads `0 running, 1 sleeping`; a comma may follow the last.
pub(crate) fn parse(text: &str, flags: bool) -> Result<NameList, ListError> {
    let (mut numbers, mut names) = (HashSet::new(), HashSet::new());
    let mut list = Vec::new();
    let mut at = 0;
    let text = text.trim_end().strip_suffix(',').unwrap_or(text);
    for item in text.split(',') {
        let start = at + item.len() - item.trim_start().len();
        at += item.len() + 1;
        let item = item.trim();
        let fail = |message: String| Err((start..start + item.len(), message));
        let Some((number, name)) = item.split_once(char::is_whitespace) else {
            return fail(format!("`{item}` is not a number and a name"));
        };
        let name = name.trim_start();
        let Some(value) = number_of(number).filter(|n| !flags || *n < 64) else {
            return fail(match flags {
                true => format!("`{number}` is not the number of a bit, 0 to 63"),
                false => format!("`{number}` is not a number of 64 bits"),
            });
        };
        let strange = |c: char| c.is_control() || changes_direction(c);
        if name.contains(strange) || (flags && name.contains('|')) || number_of(name).is_some() {
            return fail(format!("`{}` is not a name", name.escape_debug()));
        }
        if !numbers.insert(value) {
            return fail(format!("{number} has two names"));
        }
        if !names.insert(name) {
            return fail(format!("two numbers have the name `{name}`"));
        }
        if list.len() == MOST_NAMES {
            return fail(format!("there are over {MOST_NAMES} names"));
        }
        list.push((value, name.to_owned()));
    }
    Ok(list.into())
}

/// Returns whether a character changes the direction in which text is shown, so that it may read otherwise than it looks.
#[must_use]
pub fn changes_direction(c: char) -> bool {
    matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Reads a decimal or hexadecimal number; a negative one is two's complement.
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
        ] {
            assert_eq!(parse(text, flags).map_err(|(at, _)| at), Err(at), "{text:?}");
        }
    }
}
