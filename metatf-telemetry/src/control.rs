//! Which kinds of events are wanted: a word with a bit for each.

use crate::error::Error;

/// The bit of notes, which are in no DTD.
pub const NOTES: u64 = 1 << 63;

/// Makes the word of what a user wrote: names of kinds, a number, `all` or `none`; several of them, with spaces or commas between.
/// `kinds` are the names of the kinds, from bit 0.
///
/// # Errors
/// A name that the DTD does not have.
pub fn parse(text: &str, kinds: &[&str]) -> Result<u64, Error> {
    words(text).map(|word| one(word, kinds)).try_fold(0, |all, one| Ok(all | one?))
}

/// What is to become of a control word: other kinds in place of those that are on, or single kinds more and less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Bits that stay as they are.
    keep: u64,
    /// Bits that are on then, besides.
    set: u64,
}

impl Change {
    /// Makes the change that a user wrote: as for [`parse`], or each word with `+` or `-` before it: `+Pool -Arena`.
    ///
    /// # Errors
    /// A name that the DTD does not have; words with a sign beside words without.
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
                let why = "give `+` or `-` to each kind, to change these alone, or to none, to have no others";
                return Err(Error::Setting(format!("`{word}` has no sign, and others have: {why}")));
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
                "there is no kind of events `{word}`: the kinds are {known}; `all`, `none`, `notes` and numbers are known, too"
            )))
        }
    }
}

/// Prints a word by the names of its kinds.
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
        // The last counts.
        assert_eq!((after("+Arena -Arena", 0), after("-Arena +Arena", 0)), (0, 1));
        assert_eq!(after("+all -Pool", 0), !2);
        let error = Change::parse("+Arena Pool", &kinds).unwrap_err().to_string();
        assert!(error.contains("`Pool` has no sign"), "{error}");
        assert!(Change::parse("+Pol", &kinds).is_err());
    }
}
