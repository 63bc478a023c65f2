//! Finds blocks by their addresses, and those that overlap, whatever their sizes, in a step or two each.
//!
//! The first and the last byte of each block are marked, in bitmaps of 1 KiB of addresses. No block in the bitmaps overlaps another, so marks
//! alternate, and the next mark tells whether a byte is in a block. What a block covers whole of such stretches is a range beside them.
//! The slots of blocks stand beside their marks, one for each 16 addresses, at whose first a block may begin: allocators place blocks so. What
//! is near in the heap is near here, too, where a table by hash has it anywhere, and one line of the cache has all of a block.
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

/// Addresses that have one slot: a block that begins at another than the first of them has none here.
const GRAIN: u64 = 16;
/// The slot of what was freed, and where no other block has begun.
const ENDED: u32 = u32::MAX;
/// The slot of what has no block, and had none that is remembered.
const VACANT: u32 = u32::MAX - 1;
/// Slots are below this.
pub(crate) const MOST_SLOTS: u32 = VACANT;

/// Regions that were asked for last, at most; and what stands for no region.
const RECENT: usize = 1 << 12;
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
    /// How many marks each of these has, beside them: stretches are more than the cache holds.
    marks: Vec<u16>,
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
    fn drop_empty(&mut self, bits: u64, marks: &[u16], spare: &mut Vec<u32>) -> usize {
        let (mut left, before) = (self.present & bits, spare.len());
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            let is_empty = |index: &u32| marks.get(*index as usize) == Some(&0);
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
#[repr(align(64))]
struct Stretch {
    words: [Marks; WORDS],
}

/// The marks of 64 addresses, and the slots of blocks that begin there.
#[derive(Clone, Copy, Debug)]
struct Marks {
    first: u64,
    last: u64,
    slots: [u32; (64 / GRAIN) as usize],
}

impl Default for Marks {
    fn default() -> Self {
        Self { first: 0, last: 0, slots: [VACANT; 4] }
    }
}

impl Stretch {
    /// Marks the first byte of a block.
    #[inline]
    fn begin(&mut self, byte: u64, slot: u32) {
        let (word, bit) = place(byte);
        let Some(marks) = self.words.get_mut(word) else { return };
        marks.first |= 1 << bit;
        if let Some(place) = grain(byte).and_then(|grain| marks.slots.get_mut(grain)) {
            *place = slot;
        }
    }

    /// Marks the last byte of a block.
    #[inline]
    fn end(&mut self, byte: u64) {
        let (word, bit) = place(byte);
        self.words.get_mut(word).into_iter().for_each(|marks| marks.last |= 1 << bit);
    }

    /// Returns whether a block begins at a byte.
    #[inline]
    fn begins(&self, byte: u64) -> bool {
        let (word, bit) = place(byte);
        self.words.get(word).is_some_and(|marks| marks.first >> bit & 1 == 1)
    }

    /// Returns the slot of the block that begins at a byte, or what stands in its place.
    #[inline]
    fn slot(&self, byte: u64) -> u32 {
        let (word, _) = place(byte);
        let marks = grain(byte).zip(self.words.get(word));
        marks.and_then(|(grain, marks)| marks.slots.get(grain)).copied().unwrap_or(VACANT)
    }

    /// Takes away the mark of a first byte, which is there.
    #[inline]
    fn clear_first(&mut self, byte: u64) {
        let (word, bit) = place(byte);
        let Some(marks) = self.words.get_mut(word) else { return };
        marks.first &= !(1 << bit);
        if let Some(place) = grain(byte).and_then(|grain| marks.slots.get_mut(grain)) {
            *place = ENDED;
        }
    }

    /// Takes away the first mark of a last byte from here on; returns whether there was one.
    #[inline]
    fn clear_last(&mut self, from: u64) -> bool {
        let (word, bit) = place(from);
        let mut mask = u64::MAX << bit;
        for marks in self.words.get_mut(word..).unwrap_or_default() {
            let here = marks.last & mask;
            if here != 0 {
                // The lowest bit of what is there.
                marks.last ^= here & here.wrapping_neg();
                return true;
            }
            mask = u64::MAX;
        }
        false
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
    let [low, high, ..] = region.to_le_bytes();
    usize::from(u16::from_le_bytes([low, high])) % RECENT
}

/// Returns the place of a byte's slot in its word, if one that begins there has one.
#[inline]
fn grain(byte: u64) -> Option<usize> {
    byte.is_multiple_of(GRAIN).then_some((byte % 64 / GRAIN) as usize)
}

/// Returns the word and the bit of a byte of a stretch.
#[inline]
fn place(byte: u64) -> (usize, u32) {
    ((byte / 64) as usize, (byte % 64) as u32)
}

impl Extents {
    /// Puts a block in, unless it overlaps one; returns whether it is in.
    #[inline]
    pub(crate) fn insert(&mut self, address: u64, size: u64, slot: u32) -> bool {
        let last = last_byte(address, size);
        let (from, to) = (address >> SHIFT, last >> SHIFT);
        if from != to {
            return self.insert_long(address, last, slot);
        }
        let Some(index) = self.stretch(from) else { return false };
        let Some(stretch) = self.stretches.get_mut(index as usize) else { return false };
        if stretch.is_taken(address & LAST, last & LAST) {
            return false;
        }
        stretch.begin(address & LAST, slot);
        stretch.end(last & LAST);
        self.mark(index, 2);
        true
    }

    /// Puts a block in that lies in several stretches.
    fn insert_long(&mut self, address: u64, last: u64, slot: u32) -> bool {
        let (from, to) = (address >> SHIFT, last >> SHIFT);
        let (Some(first), Some(second)) = (self.stretch(from), self.stretch(to)) else { return false };
        let is_taken = |stretch: u32, from, to| {
            self.stretches.get(stretch as usize).is_some_and(|stretch| stretch.is_taken(from, to))
        };
        let is_taken = is_taken(first, address & LAST, LAST) || is_taken(second, 0, last & LAST);
        if is_taken || !self.cover(from + 1, to - 1) {
            return false;
        }
        self.stretches.get_mut(first as usize).into_iter().for_each(|stretch| stretch.begin(address & LAST, slot));
        self.stretches.get_mut(second as usize).into_iter().for_each(|stretch| stretch.end(last & LAST));
        self.mark(first, 1);
        self.mark(second, 1);
        true
    }

    /// Returns the slot of the block that begins at an address, if it is in with one.
    #[inline]
    pub(crate) fn slot(&self, address: u64) -> Option<u32> {
        Some(self.stretch_at(address)?.slot(address & LAST)).filter(|slot| *slot < MOST_SLOTS)
    }

    /// Returns whether a block that begins at an address has a slot, if it is in.
    #[inline]
    pub(crate) fn has_slot(address: u64) -> bool {
        grain(address).is_some()
    }

    /// Returns whether a block with a slot was freed at an address, and no other began there. Old ones may be forgotten.
    pub(crate) fn was_freed(&self, address: u64) -> bool {
        self.stretch_at(address).is_some_and(|stretch| stretch.slot(address & LAST) == ENDED)
    }

    /// Returns the addresses and slots of the blocks that have slots, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        let regions =
            self.order.iter().filter_map(|(number, place)| Some((*number, self.regions.get(*place as usize)?)));
        let stretches = regions.flat_map(|(number, region)| {
            (0..1 << REGION).filter_map(move |bit| Some((number << REGION | u64::from(bit), region.get(bit)?)))
        });
        let stretches =
            stretches.filter_map(|(number, index)| Some((number << SHIFT, self.stretches.get(index as usize)?)));
        let slots = stretches.flat_map(|(start, stretch)| {
            let slots = stretch.words.iter().flat_map(|marks| marks.slots);
            (0..).map(move |grain| start | (grain * GRAIN)).zip(slots)
        });
        slots.filter(|(_, slot)| *slot < MOST_SLOTS)
    }

    /// Removes the block that begins at an address, and returns its slot, if it is in with one. `size` gives the size that it was put in
    /// with.
    #[inline]
    pub(crate) fn take(&mut self, address: u64, size: impl FnOnce(u32) -> u64) -> Option<u32> {
        let index = self.known(address >> SHIFT)?;
        let slot = self.slot_in(index, address);
        if slot >= MOST_SLOTS {
            return None;
        }
        self.clear(index, address, || size(slot));
        Some(slot)
    }

    /// Removes a block that has no slot, if it was put in.
    pub(crate) fn remove(&mut self, address: u64, size: u64) {
        let Some(index) = self.known(address >> SHIFT).filter(|_| grain(address).is_none()) else { return };
        if self.stretches.get(index as usize).is_some_and(|stretch| stretch.begins(address & LAST)) {
            self.clear(index, address, || size);
        }
    }

    /// Removes a block that begins in a stretch.
    #[inline]
    fn clear(&mut self, index: u32, address: u64, size: impl FnOnce() -> u64) {
        let Some(stretch) = self.stretches.get_mut(index as usize) else { return };
        stretch.clear_first(address & LAST);
        if stretch.clear_last(address & LAST) {
            self.unmark(index, 2);
        } else {
            self.unmark(index, 1);
            self.remove_end(address >> SHIFT, last_byte(address, size()));
        }
        if self.empty > EMPTY + self.count / 2 {
            self.drop_empty();
        }
    }

    /// Removes what a block has behind its first stretch.
    fn remove_end(&mut self, from: u64, last: u64) {
        if last >> SHIFT > from + 1 {
            self.covered.remove(&(from + 1));
        }
        let Some(index) = self.known(last >> SHIFT) else { return };
        if self.stretches.get_mut(index as usize).is_some_and(|stretch| stretch.clear_last(last & LAST)) {
            self.unmark(index, 1);
        }
    }

    /// Counts marks that a stretch was given.
    #[inline]
    fn mark(&mut self, stretch: u32, marks: u16) {
        let Some(count) = self.marks.get_mut(stretch as usize) else { return };
        self.empty -= usize::from(*count == 0);
        *count += marks;
    }

    /// Counts marks that were taken from a stretch.
    #[inline]
    fn unmark(&mut self, stretch: u32, marks: u16) {
        let Some(count) = self.marks.get_mut(stretch as usize) else { return };
        *count -= marks;
        self.empty += usize::from(*count == 0);
    }

    /// Returns where the marks of an address are, and a part of them: so they are read, and nothing waits for what they are.
    #[inline]
    pub(crate) fn touch(&mut self, address: u64) -> Option<(u32, u64)> {
        let index = self.known(address >> SHIFT)?;
        let (word, _) = place(address & LAST);
        Some((index, self.stretches.get(index as usize)?.words.get(word)?.first))
    }

    /// Returns the slot that stands for an address in a stretch: no slot of a block where it was freed, or is free.
    #[inline]
    pub(crate) fn slot_in(&self, index: u32, address: u64) -> u32 {
        self.stretches.get(index as usize).map_or(VACANT, |stretch| stretch.slot(address & LAST))
    }

    /// Returns the stretch of an address, if it is there.
    #[inline]
    fn stretch_at(&self, address: u64) -> Option<&Stretch> {
        let (region, bit) = in_region(address >> SHIFT);
        let region = self.regions.get(*self.by_number.get(&region)? as usize)?;
        self.stretches.get(region.get(bit)? as usize)
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
            Some(index) => {
                // What was freed there before is not what was freed here.
                *self.stretches.get_mut(index as usize)? = Stretch::default();
                index
            }
            None => {
                self.stretches.push(Stretch::default());
                self.marks.push(0);
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
            let dropped = region.drop_empty(after & before, &self.marks, &mut self.spare);
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
            let dropped = region.drop_empty(u64::MAX, &self.marks, &mut self.spare);
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
            assert!((0..count).all(|region| extents.insert(region << 16, 16, 7)));
            assert!(!extents.insert(8, 16, 7) && !extents.insert(1 << 15, count << 16, 7));
            assert!((0..count).all(|region| extents.take(region << 16, |_| 16) == Some(7)));
            assert!(forgotten(&extents), "{}", extents.order.len());
            assert_eq!(extents.by_number.len(), extents.order.len());
            assert!(extents.insert(1 << 15, count << 16, 7) && !extents.insert(1 << 16, 1, 7));
            extents.take(1 << 15, |_| count << 16);
        }
    }

    proptest! {
        /// Compared with a list of blocks.
        #[test]
        fn blocks_overlap_as_by_a_list(
            calls in prop::collection::vec((0..3_usize, 0..6000_usize, 0..9_usize, 0..60_u64), 1..400),
            base in prop_oneof![Just(0), Just(u64::MAX - 6000), 0..1_u64 << 47],
        ) {
            let (mut extents, mut blocks) = (Extents::default(), Vec::<(u64, u64, u32)>::new());
            let remove = |extents: &mut Extents, (address, size, slot): (u64, u64, u32)| {
                let is_slotted = address % GRAIN == 0;
                prop_assert_eq!(extents.slot(address), is_slotted.then_some(slot));
                // One that is not in changes nothing.
                for slot in [Some(slot), None] {
                    prop_assert_eq!(extents.take(address, |_| size), slot.filter(|_| is_slotted));
                    extents.remove(address, size);
                }
                prop_assert_eq!(extents.was_freed(address), is_slotted);
                Ok(())
            };
            for (slot, (what, at, class, size)) in (0..).zip(calls) {
                if what == 0 && !blocks.is_empty() {
                    remove(&mut extents, blocks.swap_remove(at % blocks.len()))?;
                    continue;
                }
                let (address, size) = (base + at as u64, size * [1, 1, 1, 1, 1, 10, 40, 100, 1 << 40][class]);
                let last = last_byte(address, size);
                let is_free = blocks.iter().all(|&(other, size, _)| last < other || last_byte(other, size) < address);
                prop_assert_eq!(extents.insert(address, size, slot), is_free, "{} bytes at {}", size, address);
                if is_free {
                    blocks.push((address, size, slot));
                }
                let slotted = blocks.iter().filter(|block| block.0 % GRAIN == 0).map(|block| (block.0, block.2));
                prop_assert_eq!(extents.iter().collect::<BTreeMap<_, _>>(), slotted.collect());
            }
            for block in blocks {
                remove(&mut extents, block)?;
            }
            extents.drop_empty();
            prop_assert!(extents.covered.is_empty() && extents.regions.iter().all(|region| region.present == 0));
            prop_assert_eq!((extents.count, extents.empty, extents.empty_regions), (0, 0, extents.order.len()));
            prop_assert_eq!(extents.by_number.len(), extents.order.len());
            prop_assert_eq!(extents.spare.len(), extents.stretches.len());
        }
    }
}
