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
    let words = text.split([' ', ',', '\t', '|']).filter(|word| !word.is_empty());
    words.map(|word| one(word, kinds)).try_fold(0, |all, one| Ok(all | one?))
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
}
