//! The times of the groups of a version 1 file (spec 5.2, kind 129).

use super::leb128;
use crate::{Error, ErrorKind, Result};

/// A range of times, which is empty if `lowest` exceeds `highest`.
///
/// # Examples
///
/// ```
/// use metatf_container::TimeRange;
///
/// let mut times = TimeRange::EMPTY;
/// [30, 10, 20].into_iter().for_each(|time| times.add(time));
/// assert_eq!(times, TimeRange { lowest: 10, highest: 30 });
/// assert!(times.overlaps(TimeRange { lowest: 30, highest: 40 }));
/// assert!(!times.overlaps(TimeRange { lowest: 31, highest: 40 }));
/// assert!(!times.overlaps(TimeRange::EMPTY));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The lowest time.
    pub lowest: u64,
    /// The highest time.
    pub highest: u64,
}

/// A leaf that contains times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLeaf {
    /// Number of the section.
    pub section: u8,
    /// Tag of the record.
    pub tag: u32,
    /// Index of the leaf in the record.
    pub leaf: u8,
}

/// The times of the groups of a trace. Every value of the leaves is in the range of its group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupTimes {
    /// The leaves that contain the times.
    pub leaves: Vec<TimeLeaf>,
    /// The times of each group, in file order. The range is empty if no record of the group contains a time, and
    /// [`TimeRange::ALL`] if the times are not known.
    pub groups: Vec<TimeRange>,
}

impl TimeRange {
    /// No time.
    pub const EMPTY: Self = Self { lowest: u64::MAX, highest: 0 };

    /// All times.
    pub const ALL: Self = Self { lowest: 0, highest: u64::MAX };

    /// Extends the range to include a time.
    #[inline]
    pub fn add(&mut self, time: u64) {
        self.lowest = self.lowest.min(time);
        self.highest = self.highest.max(time);
    }

    /// Returns whether a time is in both ranges.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.lowest.max(other.lowest) <= self.highest.min(other.highest)
    }

    /// Returns whether all times of the other range are in this range.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        other.lowest > other.highest || self.lowest <= other.lowest && other.highest <= self.highest
    }
}

/// The stored number of a group without times.
const NONE: u64 = 0;
/// The stored number of a group whose times are not known.
const UNKNOWN: u64 = 1;
/// The stored number of a group with a single time. A higher number states how far the highest time is from the lowest.
const ONE: u64 = 2;

impl GroupTimes {
    /// Returns the content of the chunk.
    pub(crate) fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        leb128::write(self.leaves.len() as u64, &mut out);
        for leaf in &self.leaves {
            let numbers = [leaf.section.into(), leaf.tag.into(), leaf.leaf.into()];
            numbers.into_iter().for_each(|number| leb128::write(number, &mut out));
        }
        leb128::write(self.groups.len() as u64, &mut out);
        let mut before = 0;
        for times in &self.groups {
            let length = times.highest.checked_sub(times.lowest);
            match length.map(|length| length.checked_add(ONE)) {
                None => leb128::write(NONE, &mut out),
                Some(None) => leb128::write(UNKNOWN, &mut out),
                Some(Some(number)) => {
                    leb128::write(number, &mut out);
                    let change = times.lowest.wrapping_sub(before);
                    // Zigzag.
                    leb128::write((change << 1) ^ 0_u64.wrapping_sub(change >> 63), &mut out);
                    before = times.lowest;
                }
            }
        }
        out
    }

    /// Parses the content of the chunk at `start`, which `groups` groups precede.
    pub(crate) fn parse(mut bytes: &[u8], start: u64, groups: u64) -> Result<Self> {
        let wrong = |what, found, expected| Error::at(start, ErrorKind::Invalid { what, found, expected });
        let torn = |left: &[u8]| {
            let expected = "a number of at most 64 bits in at most 10 bytes";
            wrong("a number in the times of groups", left.len() as u64, expected)
        };
        let number = |bytes: &mut &[u8]| leb128::read(bytes).ok_or_else(|| torn(bytes));
        let count = number(&mut bytes)?;
        if count > bytes.len() as u64 / 3 {
            return Err(wrong("the number of time leaves", count, "no more than the chunk contains"));
        }
        let mut leaves = Vec::new();
        for _ in 0..count {
            let [section, tag, leaf] = [number(&mut bytes)?, number(&mut bytes)?, number(&mut bytes)?];
            let leaf = || {
                Some(TimeLeaf {
                    section: section.try_into().ok()?,
                    tag: tag.try_into().ok()?,
                    leaf: leaf.try_into().ok()?,
                })
            };
            let expected = "a section and a leaf of at most 255, and a tag of at most 32 bits";
            leaves.push(leaf().ok_or_else(|| wrong("the tag of a time leaf", tag, expected))?);
        }
        let found = number(&mut bytes)?;
        if found != groups {
            return Err(wrong("the number of groups with times", found, "the number of groups before the chunk"));
        }
        let mut times = Vec::new();
        let mut before = 0_u64;
        for _ in 0..groups {
            times.push(match number(&mut bytes)? {
                NONE => TimeRange::EMPTY,
                UNKNOWN => TimeRange::ALL,
                length => {
                    let change = number(&mut bytes)?;
                    let lowest = before.wrapping_add((change >> 1) ^ 0_u64.wrapping_sub(change & 1));
                    let length = length - ONE;
                    let Some(highest) = lowest.checked_add(length) else {
                        return Err(wrong("the times of a group", length, "times of at most 64 bits"));
                    };
                    before = lowest;
                    TimeRange { lowest, highest }
                }
            });
        }
        match bytes.len() {
            0 => Ok(Self { leaves, groups: times }),
            rest => Err(wrong("the bytes after the times of groups", rest as u64, "no bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_as_emitted() {
        let one = |time| TimeRange { lowest: time, highest: time };
        let groups = vec![
            one(u64::MAX),
            one(0),
            TimeRange::EMPTY,
            TimeRange { lowest: 1, highest: u64::MAX - 2 },
            TimeRange::ALL,
            TimeRange { lowest: 1 << 63, highest: (1 << 63) + 1000 },
        ];
        let leaf = TimeLeaf { section: 255, tag: u32::MAX, leaf: 254 };
        let times = GroupTimes { leaves: vec![leaf, TimeLeaf { section: 1, ..leaf }], groups };
        let bytes = times.emit();
        assert_eq!(GroupTimes::parse(&bytes, 7, 6), Ok(times));
        for groups in [5, 7] {
            GroupTimes::parse(&bytes, 7, groups).unwrap_err();
        }
        for length in 0..bytes.len() {
            assert_eq!(GroupTimes::parse(&bytes[..length], 7, 6).unwrap_err().place.offset, 7);
        }
        GroupTimes::parse(&[&bytes[..], &[0]].concat(), 7, 6).unwrap_err();
    }

    #[test]
    fn a_range_of_times_that_cannot_be_stored_exactly_becomes_wider() {
        let times = |range| GroupTimes { leaves: Vec::new(), groups: vec![range] };
        let stored = times(TimeRange { lowest: 1, highest: u64::MAX }).emit();
        let parsed = GroupTimes::parse(&stored, 0, 1).unwrap();
        assert!(parsed.groups[0].contains(TimeRange { lowest: 1, highest: u64::MAX }));
    }

    #[test]
    fn times_beyond_64_bits_are_refused() {
        // One group from 2^64 - 1 on, with a length of 1.
        let mut bytes = vec![0, 1, 3];
        leb128::write(1, &mut bytes); // The change is -1.
        GroupTimes::parse(&bytes, 0, 1).unwrap_err();
        bytes[2] = 2;
        assert_eq!(GroupTimes::parse(&bytes, 0, 1).unwrap().groups[0].lowest, u64::MAX);
        assert_eq!(leb128::read(&mut &[0xFF; 9].into_iter().chain([1]).collect::<Vec<_>>()[..]), Some(u64::MAX));
        assert_eq!(leb128::read(&mut &[0xFF; 9].into_iter().chain([2]).collect::<Vec<_>>()[..]), None);
    }
}
