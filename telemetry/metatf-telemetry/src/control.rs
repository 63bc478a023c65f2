//! The control word, which enables kinds of events with one bit for each kind.
//!
//! ```
//! use metatf_telemetry::control::{Change, parse, print};
//!
//! let kinds = ["Arena", "Pool", "Object"];
//! let word = parse("Arena Pool", &kinds)?;
//! assert_eq!(word, 0b011);
//! let changed = Change::parse("+Object -Arena", &kinds)?.of(word);
//! assert_eq!(print(changed, &kinds), "Pool Object");
//! # Ok::<(), metatf_telemetry::Error>(())
//! ```

use crate::error::Error;

/// The bit of notes, which are not part of any DTD.
pub const NOTES: u64 = 1 << 63;

/// Parses a control word, which consists of names of kinds, numbers, `all` or `none`, separated by spaces or commas.
/// `kinds` are the names of the kinds, starting at bit 0.
///
/// # Errors
/// Returns an error if the DTD does not declare a name.
pub fn parse(text: &str, kinds: &[&str]) -> Result<u64, Error> {
    words(text).map(|word| one(word, kinds)).try_fold(0, |all, one| Ok(all | one?))
}

/// A change to a control word, which either replaces all kinds or enables and disables individual kinds. See the
/// [module](crate::control) for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Bits to keep unchanged.
    keep: u64,
    /// Bits to set.
    set: u64,
}

impl Change {
    /// Parses a change, either in the format of [`parse`] or with `+` or `-` before each word, such as `+Pool -Arena`.
    ///
    /// # Errors
    /// Returns an error if the DTD does not declare a name, or if only some of the words have a sign.
    pub fn parse(text: &str, kinds: &[&str]) -> Result<Self, Error> {
        if !text.contains(['+', '-']) {
            return Ok(Self { keep: 0, set: parse(text, kinds)? });
        }
        let mut change = Self { keep: u64::MAX, set: 0 };
        for word in words(text) {
            if let Some(word) = word.strip_prefix('+') {
                change.set |= one(word, kinds)?;
            } else if let Some(word) = word.strip_prefix('-') {
                let bits = one(word, kinds)?;
                change.keep &= !bits;
                change.set &= !bits;
            } else {
                let why =
                    "to adjust the current set, prefix every kind with `+` or `-`; to replace the set, use no prefixes";
                return Err(Error::Setting(format!("`{word}` has no sign, but other kinds do: {why}")));
            }
        }
        Ok(change)
    }

    /// Returns the word after the change.
    #[must_use]
    pub fn of(self, word: u64) -> u64 {
        word & self.keep | self.set
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ',', '\t', '|']).filter(|word| !word.is_empty())
}

fn one(word: &str, kinds: &[&str]) -> Result<u64, Error> {
    if let Some(bit) = kinds.iter().position(|kind| kind.eq_ignore_ascii_case(word)) {
        return Ok(1 << (bit & 63));
    }
    let number = word.strip_prefix("0x").map_or_else(|| word.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
    match (word, number) {
        ("all", _) => Ok(u64::MAX),
        ("none", _) => Ok(0),
        ("notes", _) => Ok(NOTES),
        (_, Some(number)) => Ok(number),
        _ => {
            let known = kinds.join(", ");
            Err(Error::Setting(format!(
                "there is no event kind `{word}`: expected {known}, `all`, `none`, `notes` or a number"
            )))
        }
    }
}

/// Formats a word with the names of its kinds.
#[must_use]
pub fn print(word: u64, kinds: &[&str]) -> String {
    let named = kinds.iter().enumerate().filter(|(bit, _)| word >> (bit & 63) & 1 == 1).map(|(_, name)| *name);
    let notes = (word & NOTES != 0).then_some("notes");
    let names: Vec<_> = named.chain(notes).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_numbers_and_all() {
        let kinds = ["Arena", "Pool", "Object"];
        let word = |text| parse(text, &kinds).unwrap();
        assert_eq!(word("Arena Pool"), 3);
        assert_eq!(word("pool,0x4"), 6);
        assert_eq!(word("5"), 5);
        assert_eq!(word("all"), u64::MAX);
        assert_eq!((word("none"), word("")), (0, 0));
        let error = parse("Arena Pol", &kinds).unwrap_err().to_string();
        assert!(error.contains("`Pol`") && error.contains("Arena, Pool, Object"), "{error}");
        assert_eq!(print(5 | NOTES, &kinds), "Arena Object notes");
        assert_eq!(print(0, &kinds), "none");
    }

    #[test]
    fn single_kinds_more_and_less() {
        let kinds = ["Arena", "Pool", "Object"];
        let after = |text, word| Change::parse(text, &kinds).unwrap().of(word);
        assert_eq!(after("Arena", 6), 1);
        assert_eq!(after("", 6), 0);
        assert_eq!(after("+Arena", 6), 7);
        assert_eq!(after("-Pool", 6), 4);
        assert_eq!(after("+arena,-0x4", 6), 3);
        // The last change wins.
        assert_eq!((after("+Arena -Arena", 0), after("-Arena +Arena", 0)), (0, 1));
        assert_eq!(after("+all -Pool", 0), !2);
        let error = Change::parse("+Arena Pool", &kinds).unwrap_err().to_string();
        assert!(error.contains("`Pool` has no sign"), "{error}");
        assert!(Change::parse("+Pol", &kinds).is_err());
    }
}
