//! What a trace needs of its reader (spec 5.2): features, each with a number and a name, which stand in the header.

use std::fmt;

use crate::{Error, ErrorKind, Result};

/// Features that a trace needs and this version does not have: their numbers, and their names as far as there is room for them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Features {
    numbers: u64,
    /// The names of the first ones, in order, each with a space behind it; then zeros.
    names: [u8; MOST_NAMES],
}

/// Bytes of the longest name.
const LONGEST: usize = 31;

/// Room for one name of any length, or for some short ones: an error stays small.
const MOST_NAMES: usize = LONGEST + 1;

impl Features {
    /// Bytes that the names of 64 features take at most.
    pub(crate) const MOST_BYTES: usize = 64 * (1 + LONGEST);

    /// Reads the names of the features whose bits are set, which begin at offset `at` of the header in `bytes`. Returns them with the offset
    /// behind the last one.
    pub(crate) fn parse(numbers: u64, bytes: &[u8], mut at: usize) -> Result<(Self, usize)> {
        let wrong = |at: usize, kind| Error::at(at as u64, kind);
        let cut = |at: usize| wrong(at, ErrorKind::Truncated("the names of the header's features"));
        let (mut names, mut used) = ([0; MOST_NAMES], 0);
        for _ in 0..numbers.count_ones() {
            let length = *bytes.get(at).ok_or_else(|| cut(at))?;
            if !(1..=LONGEST).contains(&usize::from(length)) {
                let what = "the length of a feature's name";
                return Err(wrong(at, ErrorKind::Invalid { what, found: length.into(), expected: "1 to 31" }));
            }
            at += 1;
            let name = bytes.get(at..at + usize::from(length)).ok_or_else(|| cut(at))?;
            let in_name = |b: &u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-');
            if let Some((index, &found)) = name.iter().enumerate().find(|(_, b)| !in_name(b)) {
                let (what, expected) = ("a byte of a feature's name", "a lower-case letter, a digit or `-`");
                return Err(wrong(at + index, ErrorKind::Invalid { what, found: found.into(), expected }));
            }
            // Of names that do not fit, no later one is kept either: the names are those of the first numbers.
            match names.get_mut(used..=used + name.len()) {
                Some(room) => {
                    room[..name.len()].copy_from_slice(name);
                    room[name.len()] = b' ';
                    used += name.len() + 1;
                }
                None => used = MOST_NAMES,
            }
            at += name.len();
        }
        Ok((Self { numbers, names }, at))
    }

    /// The numbers, a bit for each.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        self.numbers
    }

    /// The numbers in ascending order, each with its name where that found room.
    pub fn iter(&self) -> impl Iterator<Item = (u8, Option<&str>)> {
        let names = std::str::from_utf8(&self.names).unwrap_or_default();
        let mut names = names.trim_end_matches(['\0', ' ']).split(' ').filter(|name| !name.is_empty());
        (0..64).filter(|n| self.numbers >> n & 1 != 0).map(move |n| (n, names.next()))
    }
}

/// `the feature "pages" (9)`, or `the features "pages" (9), "tree" (10) and 63`.
impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.numbers.count_ones();
        f.write_str(if left == 1 { "the feature " } else { "the features " })?;
        for (number, name) in self.iter() {
            left -= 1;
            match name {
                Some(name) => write!(f, "\"{name}\" ({number})")?,
                None => write!(f, "{number}")?,
            }
            f.write_str(["", " and ", ", "][left.min(2) as usize])?;
        }
        Ok(())
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
