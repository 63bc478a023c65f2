//! Size rounding by an allocator, and the freed objects of a size class.

use super::super::NONE;
use super::clear;
use hashbrown::HashMap;
use metatf_container::SizeRule;

/// The rounding of sizes by a rule.
pub(super) trait Rounding: Sized {
    /// Returns the rule's number in a trace.
    fn number(self) -> u64;

    /// Returns the rule with this number.
    fn from_number(number: u64) -> Option<Self>;

    /// Returns an object size that the rule rounds up to `round`.
    fn size_of(self, round: u64) -> u64;

    /// Returns the number of bytes that an object of this size occupies.
    fn round(self, size: u64) -> u64;
}

impl Rounding for SizeRule {
    fn number(self) -> u64 {
        match self {
            Self::Header => 0,
            Self::Classes => 1,
        }
    }

    fn from_number(number: u64) -> Option<Self> {
        [Self::Header, Self::Classes].into_iter().find(|rule| rule.number() == number)
    }

    fn size_of(self, round: u64) -> u64 {
        match self {
            Self::Header => round.saturating_sub(8),
            Self::Classes => round,
        }
    }

    #[inline]
    fn round(self, size: u64) -> u64 {
        match self {
            Self::Header => (size.saturating_add(8 + 15) & !15).max(32),
            Self::Classes if size <= 128 => (size.max(1) + 15) & !15,
            Self::Classes => {
                let step = 1_u64 << (63 - size.leading_zeros()).saturating_sub(2);
                size.saturating_add(step - 1) & !(step - 1)
            }
        }
    }
}

/// The freed objects of one class and one context, linked through the blocks from the oldest to the newest.
#[derive(Clone, Copy, Debug)]
pub(super) struct SizeClass {
    /// Number of bytes that an object occupies; 0 if no object has belonged to this class yet.
    pub(super) round: u64,
    pub(super) newest: u32,
    /// The blocks that were next to the most recently reused block in the list, on the older side and on the newer
    /// side.
    pub(super) older: u32,
    pub(super) newer: u32,
    /// End of the last object of the class whose address neither a freed object nor a bump pointer predicted; 0 if
    /// there is no such object.
    pub(super) fresh: u64,
}

impl SizeClass {
    /// A class to which no object has belonged.
    const UNKNOWN: Self = Self { round: 0, newest: NONE, older: NONE, newer: NONE, fresh: 0 };

    fn new(round: u64) -> Self {
        Self { round, ..Self::UNKNOWN }
    }
}

/// The classes of a context.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    /// The small classes, indexed by `round / 16` and including unused ones, followed by the large classes.
    all: Vec<SizeClass>,
    /// Indices of the large classes.
    large: HashMap<u64, u32>,
}

/// Number of classes found without hashing.
const SMALL_CLASSES: usize = 64;
const SMALL: u64 = SMALL_CLASSES as u64;

impl Classes {
    pub(super) fn new() -> Self {
        Self { all: (0..SMALL).map(|_| SizeClass::UNKNOWN).collect(), large: HashMap::new() }
    }

    /// Removes everything but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.all.truncate(SMALL_CLASSES);
        self.all.fill(SizeClass::UNKNOWN);
        clear(&mut self.large);
    }

    /// Returns the index of the class for a rounded size. The class may not have been used yet.
    #[inline]
    pub(super) fn index(&self, round: u64) -> Option<u32> {
        let small = round / 16;
        #[allow(clippy::cast_possible_truncation, reason = "less than 64")]
        if small < SMALL { Some(small as u32) } else { self.large.get(&round).copied() }
    }

    /// Returns the index like [`index`](Self::index), but only for small classes.
    #[inline(always)]
    pub(super) fn small(&self, round: u64) -> Option<u32> {
        let small = round / 16;
        #[allow(clippy::cast_possible_truncation, reason = "less than 64")]
        (small < SMALL).then_some(small as u32)
    }

    /// Returns a class that has been used.
    #[inline]
    pub(super) fn find(&self, round: u64) -> Option<(u32, &SizeClass)> {
        let index = self.index(round)?;
        self.get(index).filter(|class| class.round != 0).map(|class| (index, class))
    }

    #[inline]
    pub(super) fn find_or_add(&mut self, round: u64) -> u32 {
        match self.find(round) {
            Some((class, _)) => class,
            None => self.add(round),
        }
    }

    #[cold]
    fn add(&mut self, round: u64) -> u32 {
        if let Some(small) = self.index(round) {
            if let Some(class) = self.get_mut(small) {
                *class = SizeClass::new(round);
            }
            return small;
        }
        let class = u32::try_from(self.all.len()).unwrap_or(NONE);
        self.all.push(SizeClass::new(round));
        self.large.insert(round, class);
        class
    }

    #[inline]
    pub(super) fn get(&self, class: u32) -> Option<&SizeClass> {
        self.all.get(class as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, class: u32) -> Option<&mut SizeClass> {
        self.all.get_mut(class as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding() {
        let header = [(0, 32), (24, 32), (25, 48), (40, 48), (41, 64), (u64::MAX, !15)];
        let classes =
            [(0, 16), (16, 16), (17, 32), (128, 128), (129, 160), (160, 160), (161, 192), (257, 320), (1025, 1280)];
        for (size, round) in header {
            assert_eq!(SizeRule::Header.round(size), round, "{size}");
            assert_eq!(SizeRule::Header.round(SizeRule::Header.size_of(round)), round, "{size}");
        }
        for (size, round) in classes {
            assert_eq!(SizeRule::Classes.round(size), round, "{size}");
            assert_eq!(SizeRule::Classes.round(SizeRule::Classes.size_of(round)), round, "{size}");
        }
        assert!(SizeRule::Classes.round(u64::MAX) > u64::MAX / 2);
    }
}
