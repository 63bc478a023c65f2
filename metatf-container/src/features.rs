//! The features that a trace requires of its reader (spec 5.2). Each has a number and a name, which are stored in the
//! header.

use std::fmt;

/// Features that a trace requires but this version does not support, with their numbers and as many names as fit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Features {
    numbers: u64,
    /// The names of the lowest-numbered features in ascending order, each followed by a space; the rest is zeros.
    names: [u8; MOST_NAMES],
}

/// Maximum length of a name in bytes.
pub(crate) const LONGEST: usize = 31;

/// Space for one name of any length or a few short names, which keeps the error small.
const MOST_NAMES: usize = LONGEST + 1;

impl Features {
    /// Creates a set of features without names from a bit mask of their numbers.
    pub(crate) fn new(numbers: u64) -> Self {
        Self { numbers, names: [0; MOST_NAMES] }
    }

    /// Adds a feature with a higher number than all others. Appends its name after `used` bytes of names if it fits, and
    /// returns the number of bytes then in use. Once a name does not fit, no later name is stored either, so the names belong to the lowest
    /// numbers.
    pub(crate) fn add(&mut self, number: u8, used: usize, name: &[u8]) -> usize {
        self.numbers |= 1 << number;
        let Some(room) = self.names.get_mut(used..=used + name.len()) else { return MOST_NAMES };
        if let Some((end, room)) = room.split_last_mut() {
            room.copy_from_slice(name);
            *end = b' ';
        }
        used + name.len() + 1
    }

    /// Returns the set of feature numbers, as a bit mask.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        self.numbers
    }

    /// Returns the numbers in ascending order, each with its name if the name was stored.
    pub fn iter(&self) -> impl Iterator<Item = (u8, Option<&str>)> {
        let names = std::str::from_utf8(&self.names).unwrap_or_default();
        let mut names = names.trim_end_matches(['\0', ' ']).split(' ').filter(|name| !name.is_empty());
        (0..64).filter(|n| self.numbers >> n & 1 != 0).map(move |n| (n, names.next()))
    }
}

/// Prints `the feature "pages" (9)`, or `the features "pages" (9), "tree" (10) and 63`.
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
