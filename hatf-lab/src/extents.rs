//! Finds blocks that overlap, whatever their sizes, in a step or two each.
//!
//! The first and the last byte of each block are marked, in bitmaps of 1 KiB of addresses. No block in the bitmaps overlaps another, so marks
//! alternate, and the next mark tells whether a byte is in a block. What a block covers whole of such stretches is a range beside them.

use std::collections::BTreeMap;

use crate::address::{ADDRESS_SPACE, AddressMap};

/// Addresses of a stretch: two to this power.
const SHIFT: u32 = 10;
/// The last byte of a stretch.
const LAST: u64 = (1 << SHIFT) - 1;
/// Words of a bitmap.
const WORDS: usize = (1 << SHIFT) / 64;
/// Stretches without marks that are kept, beside as many as there are others.
const EMPTY: usize = 256;

/// Returns the last byte of a block. One of no bytes has that of its address; none is taken to be larger than 2^47 bytes.
#[must_use]
pub(crate) fn last_byte(address: u64, size: u64) -> u64 {
    address.saturating_add(size.clamp(1, ADDRESS_SPACE) - 1)
}

/// The bytes that are in a block. Memory is bounded by the most blocks at once.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    by_number: AddressMap<u32>,
    /// The same, in order.
    order: BTreeMap<u64, u32>,
    stretches: Vec<Stretch>,
    spare: Vec<u32>,
    /// Stretches without marks.
    empty: usize,
    /// Stretches that lie whole in a block, from one to another: they have no bitmap.
    covered: BTreeMap<u64, u64>,
}

/// The marks of a stretch.
#[derive(Clone, Debug, Default)]
struct Stretch {
    marks: u32,
    words: [Marks; WORDS],
}

/// The marks of 64 addresses.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    first: u64,
    last: u64,
}

impl Stretch {
    /// Returns whether a byte from here to there is in a block.
    fn is_taken(&self, from: u64, to: u64) -> bool {
        let (word, bit) = place(from);
        let mut mask = u64::MAX << bit;
        for (at, marks) in (word..).zip(self.words.get(word..).unwrap_or_default()) {
            let here = (marks.first | marks.last) & mask;
            if here != 0 {
                let bit = here.trailing_zeros();
                // Beyond, an end whose beginning is not there has its beginning before `from`.
                return at as u64 * 64 + u64::from(bit) <= to || marks.first >> bit & 1 == 0;
            }
            mask = u64::MAX;
        }
        // Nothing ends after it: is there a block that leaves the stretch?
        let mut mask = !(u64::MAX << bit);
        for marks in self.words.get(..=word).unwrap_or_default().iter().rev() {
            let here = (marks.first | marks.last) & mask;
            if here != 0 {
                return marks.last >> (63 - here.leading_zeros()) & 1 == 0;
            }
            mask = u64::MAX;
        }
        false
    }
}

/// Returns the word and the bit of a byte of a stretch.
fn place(byte: u64) -> (usize, u32) {
    ((byte / 64) as usize, (byte % 64) as u32)
}

impl Extents {
    /// Puts a block in, unless it overlaps one; returns whether it is in.
    pub(crate) fn insert(&mut self, address: u64, size: u64) -> bool {
        let last = last_byte(address, size);
        let (from, to) = (address >> SHIFT, last >> SHIFT);
        let Some(first) = self.stretch(from) else { return false };
        if from == to {
            if self.is_taken(first, address & LAST, last & LAST) {
                return false;
            }
            self.mark(first, address & LAST, |marks| &mut marks.first);
            self.mark(first, last & LAST, |marks| &mut marks.last);
            return true;
        }
        let Some(second) = self.stretch(to) else { return false };
        let is_taken = self.is_taken(first, address & LAST, LAST) || self.is_taken(second, 0, last & LAST);
        if is_taken || !self.cover(from + 1, to - 1) {
            return false;
        }
        self.mark(first, address & LAST, |marks| &mut marks.first);
        self.mark(second, last & LAST, |marks| &mut marks.last);
        true
    }

    /// Removes a block, if it was put in.
    pub(crate) fn remove(&mut self, address: u64, size: u64) {
        let last = last_byte(address, size);
        let (from, to) = (address >> SHIFT, last >> SHIFT);
        let Some(&first) = self.by_number.get(&from) else { return };
        if !self.clear(first, address & LAST, |marks| &mut marks.first) {
            return;
        }
        if from == to {
            self.clear(first, last & LAST, |marks| &mut marks.last);
        } else {
            self.covered.remove(&(from + 1));
            if let Some(&second) = self.by_number.get(&to) {
                self.clear(second, last & LAST, |marks| &mut marks.last);
            }
        }
        if self.empty > EMPTY + self.by_number.len() / 2 {
            self.drop_empty();
        }
    }

    fn is_taken(&self, stretch: u32, from: u64, to: u64) -> bool {
        self.stretches.get(stretch as usize).is_some_and(|stretch| stretch.is_taken(from, to))
    }

    /// Returns the index of a stretch; `None`: it is covered by a block.
    fn stretch(&mut self, number: u64) -> Option<u32> {
        if let Some(&stretch) = self.by_number.get(&number) {
            return Some(stretch);
        }
        if self.covered.range(..=number).next_back().is_some_and(|(_, last)| *last >= number) {
            return None;
        }
        let stretch = match self.spare.pop() {
            Some(stretch) => stretch,
            None => {
                self.stretches.push(Stretch::default());
                // There are fewer than 2^32 blocks, and as many again.
                u32::try_from(self.stretches.len() - 1).ok()?
            }
        };
        self.by_number.insert(number, stretch);
        self.order.insert(number, stretch);
        self.empty += 1;
        Some(stretch)
    }

    /// Covers stretches, if there are any, unless one has marks or is covered; returns whether they are free.
    fn cover(&mut self, from: u64, to: u64) -> bool {
        if from > to {
            return true;
        }
        if self.covered.range(..=to).next_back().is_some_and(|(_, last)| *last >= from) {
            return false;
        }
        let mut empty = Vec::new();
        let mut free = true;
        for (number, stretch) in self.order.range(from..=to) {
            if self.stretches.get(*stretch as usize).is_some_and(|stretch| stretch.marks > 0) {
                free = false;
                break;
            }
            empty.push(*number);
        }
        empty.into_iter().for_each(|number| self.drop_stretch(number));
        if free {
            self.covered.insert(from, to);
        }
        free
    }

    fn mark(&mut self, stretch: u32, byte: u64, of: fn(&mut Marks) -> &mut u64) {
        let Some(stretch) = self.stretches.get_mut(stretch as usize) else { return };
        let (word, bit) = place(byte);
        if let Some(marks) = stretch.words.get_mut(word) {
            *of(marks) |= 1 << bit;
            self.empty -= usize::from(stretch.marks == 0);
            stretch.marks += 1;
        }
    }

    /// Takes a mark away; returns whether it was there.
    fn clear(&mut self, stretch: u32, byte: u64, of: fn(&mut Marks) -> &mut u64) -> bool {
        let Some(stretch) = self.stretches.get_mut(stretch as usize) else { return false };
        let (word, bit) = place(byte);
        let Some(marks) = stretch.words.get_mut(word).map(of).filter(|marks| **marks >> bit & 1 == 1) else {
            return false;
        };
        *marks &= !(1 << bit);
        stretch.marks -= 1;
        self.empty += usize::from(stretch.marks == 0);
        true
    }

    /// Forgets a stretch without marks.
    fn drop_stretch(&mut self, number: u64) {
        self.order.remove(&number);
        if let Some(stretch) = self.by_number.remove(&number) {
            self.spare.push(stretch);
            self.empty -= 1;
        }
    }

    fn drop_empty(&mut self) {
        let is_empty = |stretch: &u32| self.stretches.get(*stretch as usize).is_some_and(|stretch| stretch.marks == 0);
        let empty: Vec<u64> =
            self.by_number.iter().filter(|(_, stretch)| is_empty(stretch)).map(|(number, _)| *number).collect();
        empty.into_iter().for_each(|number| self.drop_stretch(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compared with a list of blocks.
        #[test]
        fn blocks_overlap_as_by_a_list(
            calls in prop::collection::vec((0..3_usize, 0..6000_usize, 0..9_usize, 0..60_u64), 1..400),
            base in prop_oneof![Just(0), Just(u64::MAX - 6000), 0..1_u64 << 47],
        ) {
            let (mut extents, mut blocks) = (Extents::default(), Vec::<(u64, u64)>::new());
            for (what, at, class, size) in calls {
                if what == 0 && !blocks.is_empty() {
                    let (address, size) = blocks.swap_remove(at % blocks.len());
                    extents.remove(address, size);
                    // One that is not in changes nothing.
                    extents.remove(address, size);
                    continue;
                }
                let (address, size) = (base + at as u64, size * [1, 1, 1, 1, 1, 10, 40, 100, 1 << 40][class]);
                let last = last_byte(address, size);
                let is_free = blocks.iter().all(|&(other, size)| last < other || last_byte(other, size) < address);
                prop_assert_eq!(extents.insert(address, size), is_free, "{} bytes at {}", size, address);
                if is_free {
                    blocks.push((address, size));
                }
            }
            for (address, size) in blocks {
                extents.remove(address, size);
            }
            extents.drop_empty();
            prop_assert!(extents.by_number.is_empty() && extents.order.is_empty() && extents.covered.is_empty());
            prop_assert_eq!(extents.empty, 0);
        }
    }
}
