//! Finds blocks that overlap, whatever their sizes, in a step or two each.
//!
//! The first and the last byte of each block are marked, in bitmaps of 1 KiB of addresses. No block in the bitmaps overlaps another, so marks
//! alternate, and the next mark tells whether a byte is in a block. What a block covers whole of such stretches is a range beside them.
//! The bitmaps are found by regions of 64 KiB: there are few of these, so that finding one seldom waits for memory.

use std::collections::BTreeMap;

use crate::address::{ADDRESS_SPACE, AddressMap};

/// Addresses of a stretch: two to this power.
const SHIFT: u32 = 10;
/// The last byte of a stretch.
const LAST: u64 = (1 << SHIFT) - 1;
/// Words of a bitmap.
const WORDS: usize = (1 << SHIFT) / 64;
/// Stretches of a region: two to this power.
const REGION: u32 = 6;
/// Stretches without marks, and regions without stretches, that are kept beside half as many as there are others.
const EMPTY: usize = 1024;

/// Regions that were asked for last, at most; and what stands for no region.
const RECENT: usize = 1 << 8;
const NONE: (u64, u32) = (u64::MAX, 0);

/// Returns the last byte of a block. One of no bytes has that of its address; none is taken to be larger than 2^47 bytes.
#[must_use]
pub(crate) fn last_byte(address: u64, size: u64) -> u64 {
    address.saturating_add(size.clamp(1, ADDRESS_SPACE) - 1)
}

/// The bytes that are in a block. Memory is bounded by the most blocks at once.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    by_number: AddressMap<u32>,
    /// Regions that were asked for, each at the place of its last bits: an event is mostly near others.
    recent: Vec<(u64, u32)>,
    /// The same, in order.
    order: BTreeMap<u64, u32>,
    regions: Vec<Region>,
    spare_regions: Vec<u32>,
    stretches: Vec<Stretch>,
    spare: Vec<u32>,
    /// How many stretches there are, and how many of them are without marks.
    count: usize,
    empty: usize,
    /// Regions without stretches.
    empty_regions: usize,
    /// Stretches that lie whole in a block, from one to another: they have no bitmap.
    covered: BTreeMap<u64, u64>,
}

/// Stretches beside each other.
#[derive(Clone, Debug)]
struct Region {
    /// A bit for each stretch that is there.
    present: u64,
    /// Where these are.
    stretches: [u32; 1 << REGION],
}

impl Default for Region {
    fn default() -> Self {
        Self { present: 0, stretches: [0; 1 << REGION] }
    }
}

impl Region {
    #[inline]
    fn get(&self, bit: u32) -> Option<u32> {
        if self.present >> bit & 1 == 0 { None } else { self.stretches.get(bit as usize).copied() }
    }

    /// Drops those of the stretches of some bits that have no marks; returns how many.
    fn drop_empty(&mut self, bits: u64, stretches: &[Stretch], spare: &mut Vec<u32>) -> usize {
        let (mut left, before) = (self.present & bits, spare.len());
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            let is_empty = |index: &u32| stretches.get(*index as usize).is_some_and(|stretch| stretch.marks == 0);
            if let Some(index) = self.get(bit).filter(is_empty) {
                self.present &= !(1 << bit);
                spare.push(index);
            }
        }
        spare.len() - before
    }
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
    /// Marks the first or the last byte of a block.
    #[inline]
    fn mark(&mut self, byte: u64, of: impl Fn(&mut Marks) -> &mut u64) {
        let (word, bit) = place(byte);
        if let Some(marks) = self.words.get_mut(word) {
            *of(marks) |= 1 << bit;
            self.marks += 1;
        }
    }

    /// Takes a mark away; returns whether it was there.
    #[inline]
    fn clear(&mut self, byte: u64, of: impl Fn(&mut Marks) -> &mut u64) -> bool {
        let (word, bit) = place(byte);
        let Some(marks) = self.words.get_mut(word).map(of).filter(|marks| **marks >> bit & 1 == 1) else {
            return false;
        };
        *marks &= !(1 << bit);
        self.marks -= 1;
        true
    }

    /// Returns whether a byte from here to there is in a block.
    #[inline]
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

/// Returns the number of the region of a stretch, and the stretch's bit there.
#[inline]
fn in_region(stretch: u64) -> (u64, u32) {
    (stretch >> REGION, (stretch & ((1 << REGION) - 1)) as u32)
}

/// Returns the place of a region among those that were asked for.
#[inline]
fn recent(region: u64) -> usize {
    let [low, ..] = region.to_le_bytes();
    low.into()
}

/// Returns the word and the bit of a byte of a stretch.
#[inline]
fn place(byte: u64) -> (usize, u32) {
    ((byte / 64) as usize, (byte % 64) as u32)
}

impl Extents {
    /// Puts a block in, unless it overlaps one; returns whether it is in.
    #[inline]
    pub(crate) fn insert(&mut self, address: u64, size: u64) -> bool {
        let last = last_byte(address, size);
        let (from, to) = (address >> SHIFT, last >> SHIFT);
        if from != to {
            return self.insert_long(address, last);
        }
        let Some(index) = self.stretch(from) else { return false };
        let Some(stretch) = self.stretches.get_mut(index as usize) else { return false };
        if stretch.is_taken(address & LAST, last & LAST) {
            return false;
        }
        self.empty -= usize::from(stretch.marks == 0);
        stretch.mark(address & LAST, |marks| &mut marks.first);
        stretch.mark(last & LAST, |marks| &mut marks.last);
        true
    }

    /// Puts a block in that lies in several stretches.
    fn insert_long(&mut self, address: u64, last: u64) -> bool {
        let (from, to) = (address >> SHIFT, last >> SHIFT);
        let (Some(first), Some(second)) = (self.stretch(from), self.stretch(to)) else { return false };
        let is_taken = |stretch: u32, from, to| {
            self.stretches.get(stretch as usize).is_some_and(|stretch| stretch.is_taken(from, to))
        };
        let is_taken = is_taken(first, address & LAST, LAST) || is_taken(second, 0, last & LAST);
        if is_taken || !self.cover(from + 1, to - 1) {
            return false;
        }
        self.mark(first, address & LAST, |marks| &mut marks.first);
        self.mark(second, last & LAST, |marks| &mut marks.last);
        true
    }

    /// Removes a block, if it was put in.
    #[inline]
    pub(crate) fn remove(&mut self, address: u64, size: u64) {
        let last = last_byte(address, size);
        let (from, to) = (address >> SHIFT, last >> SHIFT);
        let Some(index) = self.known(from) else { return };
        let Some(stretch) = self.stretches.get_mut(index as usize) else { return };
        if !stretch.clear(address & LAST, |marks| &mut marks.first) {
            return;
        }
        if from == to {
            stretch.clear(last & LAST, |marks| &mut marks.last);
        }
        self.empty += usize::from(stretch.marks == 0);
        if from != to {
            self.remove_end(from, last);
        }
        if self.empty > EMPTY + self.count / 2 {
            self.drop_empty();
        }
    }

    /// Removes what a block has behind its first stretch.
    fn remove_end(&mut self, from: u64, last: u64) {
        self.covered.remove(&(from + 1));
        let second = self.known(last >> SHIFT).and_then(|index| self.stretches.get_mut(index as usize));
        if let Some(stretch) = second
            && stretch.clear(last & LAST, |marks| &mut marks.last)
        {
            self.empty += usize::from(stretch.marks == 0);
        }
    }

    fn mark(&mut self, stretch: u32, byte: u64, of: impl Fn(&mut Marks) -> &mut u64) {
        if let Some(stretch) = self.stretches.get_mut(stretch as usize) {
            self.empty -= usize::from(stretch.marks == 0);
            stretch.mark(byte, of);
        }
    }

    /// Reads the marks at an address, so that they are in the cache; returns some of what they are.
    #[inline]
    pub(crate) fn look_at(&self, address: u64) -> u64 {
        let (region, bit) = in_region(address >> SHIFT);
        let region = self.by_number.get(&region).and_then(|place| self.regions.get(*place as usize));
        let stretch = region.and_then(|region| self.stretches.get(region.get(bit)? as usize));
        let (word, _) = place(address & LAST);
        stretch.and_then(|stretch| stretch.words.get(word)).map_or(0, |marks| marks.first)
    }

    /// Returns the index of a stretch, if it is there.
    #[inline]
    fn known(&mut self, number: u64) -> Option<u32> {
        let (region, bit) = in_region(number);
        let place = match self.recent.get(recent(region)) {
            Some((known, place)) if *known == region => *place,
            _ => self.find(region)?,
        };
        self.regions.get(place as usize)?.get(bit)
    }

    /// Returns the place of a region, and notes it.
    fn find(&mut self, region: u64) -> Option<u32> {
        let place = *self.by_number.get(&region)?;
        self.recent.resize(RECENT, NONE);
        self.recent.get_mut(recent(region)).into_iter().for_each(|note| *note = (region, place));
        Some(place)
    }

    /// Returns the index of a stretch; `None`: it is covered by a block.
    #[inline]
    fn stretch(&mut self, number: u64) -> Option<u32> {
        self.known(number).or_else(|| self.add(number))
    }

    /// Makes a stretch, unless it is covered.
    fn add(&mut self, number: u64) -> Option<u32> {
        if self.covered.range(..=number).next_back().is_some_and(|(_, last)| *last >= number) {
            return None;
        }
        let index = match self.spare.pop() {
            Some(index) => index,
            None => {
                self.stretches.push(Stretch::default());
                // There are fewer than 2^32 blocks, and as many again.
                u32::try_from(self.stretches.len() - 1).ok()?
            }
        };
        let (region, bit) = in_region(number);
        let place = match self.by_number.get(&region) {
            Some(place) => *place,
            None => self.add_region(region)?,
        };
        let region = self.regions.get_mut(place as usize)?;
        self.empty_regions -= usize::from(region.present == 0);
        region.present |= 1 << bit;
        *region.stretches.get_mut(bit as usize)? = index;
        (self.count, self.empty) = (self.count + 1, self.empty + 1);
        Some(index)
    }

    fn add_region(&mut self, number: u64) -> Option<u32> {
        let place = match self.spare_regions.pop() {
            Some(place) => place,
            None => {
                self.regions.push(Region::default());
                u32::try_from(self.regions.len() - 1).ok()?
            }
        };
        self.by_number.insert(number, place);
        self.order.insert(number, place);
        self.empty_regions += 1;
        Some(place)
    }

    /// Covers stretches, if there are any, unless one has marks or is covered; returns whether they are free.
    fn cover(&mut self, from: u64, to: u64) -> bool {
        if from > to {
            return true;
        }
        if self.covered.range(..=to).next_back().is_some_and(|(_, last)| *last >= from) {
            return false;
        }
        let ((first, first_bit), (last, last_bit)) = (in_region(from), in_region(to));
        let mut free = true;
        for (number, place) in self.order.range(first..=last) {
            let after = if *number == first { u64::MAX << first_bit } else { u64::MAX };
            let before = if *number == last { u64::MAX >> (63 - last_bit) } else { u64::MAX };
            let Some(region) = self.regions.get_mut(*place as usize) else { continue };
            let dropped = region.drop_empty(after & before, &self.stretches, &mut self.spare);
            (self.count, self.empty) = (self.count - dropped, self.empty - dropped);
            self.empty_regions += usize::from(dropped > 0 && region.present == 0);
            free = region.present & after & before == 0;
            if !free {
                break;
            }
        }
        self.drop_regions();
        if free {
            self.covered.insert(from, to);
        }
        free
    }

    /// Forgets stretches without marks.
    #[cold]
    fn drop_empty(&mut self) {
        for place in self.order.values() {
            let Some(region) = self.regions.get_mut(*place as usize) else { continue };
            let dropped = region.drop_empty(u64::MAX, &self.stretches, &mut self.spare);
            (self.count, self.empty) = (self.count - dropped, self.empty - dropped);
            self.empty_regions += usize::from(dropped > 0 && region.present == 0);
        }
        self.drop_regions();
    }

    /// Forgets regions without stretches, if there are many.
    fn drop_regions(&mut self) {
        if self.empty_regions <= EMPTY + self.order.len() / 2 {
            return;
        }
        let Self { order, by_number, regions, spare_regions, .. } = self;
        order.retain(|number, place| {
            let is_empty = regions.get(*place as usize).is_some_and(|region| region.present == 0);
            if is_empty {
                by_number.remove(number);
                spare_regions.push(*place);
            }
            !is_empty
        });
        self.empty_regions = 0;
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Regions without stretches are forgotten, and come back with other blocks.
    #[test]
    fn regions_are_forgotten() {
        let (mut extents, count) = (Extents::default(), 5 * EMPTY as u64);
        let forgotten = |extents: &Extents| extents.order.len() < 2 * EMPTY;
        for _ in 0..3 {
            assert!((0..count).all(|region| extents.insert(region << 16, 16)));
            assert!(!extents.insert(8, 16) && !extents.insert(1 << 15, count << 16));
            (0..count).for_each(|region| extents.remove(region << 16, 16));
            assert!(forgotten(&extents), "{}", extents.order.len());
            assert_eq!(extents.by_number.len(), extents.order.len());
            assert!(extents.insert(1 << 15, count << 16) && !extents.insert(1 << 16, 1));
            extents.remove(1 << 15, count << 16);
        }
    }

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
            prop_assert!(extents.covered.is_empty() && extents.regions.iter().all(|region| region.present == 0));
            prop_assert_eq!((extents.count, extents.empty, extents.empty_regions), (0, 0, extents.order.len()));
            prop_assert_eq!(extents.by_number.len(), extents.order.len());
            prop_assert_eq!(extents.spare.len(), extents.stretches.len());
        }
    }
}
