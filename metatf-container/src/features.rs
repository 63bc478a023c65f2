//! What a trace needs of its reader (spec 5.2): features, each with a number and a name, which stand in the header.

use std::fmt;

/// Features that a trace needs and this version does not have: their numbers, and their names as far as there is room for them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Features {
    numbers: u64,
    /// The names of the first ones, in order, each with a space behind it; then zeros.
    names: [u8; MOST_NAMES],
}

/// Bytes of the longest name.
pub(crate) const LONGEST: usize = 31;

/// Room for one name of any length, or for some short ones: an error stays small.
const MOST_NAMES: usize = LONGEST + 1;

impl Features {
    /// Features of these numbers, a bit for each, without names.
    pub(crate) fn new(numbers: u64) -> Self {
        Self { numbers, names: [0; MOST_NAMES] }
    }

    /// Keeps the name of the next feature behind `used` bytes of names, if there is room; returns how many are used then. Of names that do not
    /// fit, no later one is kept either: the names are those of the first numbers.
    pub(crate) fn keep_name(&mut self, used: usize, name: &[u8]) -> usize {
        let Some(room) = self.names.get_mut(used..=used + name.len()) else { return MOST_NAMES };
        if let Some((end, room)) = room.split_last_mut() {
            room.copy_from_slice(name);
            *end = b' ';
        }
        used + name.len() + 1
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
