//! Finds blocks by address and detects overlaps between blocks of any size in one or two steps.
//!
//! Bitmaps over 1 KiB stretches of addresses mark the first and the last byte of each block. Blocks in the bitmaps
//! never overlap, so the two kinds of marks alternate, and the mark that follows a byte determines whether the byte is
//! in a block. Stretches that a block covers completely are stored as ranges instead. Slots are stored next to the
//! marks, one per 16 addresses. A block has a slot only if it begins at the first of these addresses, because
//! allocators align blocks this way. Neighbouring blocks of the heap are therefore neighbours in memory, unlike in a
//! hash table, and one cache line contains all data of a block. The bitmaps are found through 64 KiB regions. There are
//! few regions, so a lookup seldom misses the cache.

use std::collections::BTreeMap;

use crate::address::{ADDRESS_SPACE, AddressMap};

/// Binary logarithm of the number of addresses in a stretch.
const SHIFT: u32 = 10;
/// Offset of the last byte in a stretch.
const LAST: u64 = (1 << SHIFT) - 1;
/// Words in a bitmap.
const WORDS: usize = (1 << SHIFT) / 64;
/// Binary logarithm of the number of stretches in a region.
const REGION: u32 = 6;
/// The number of empty stretches (without marks) that are kept in addition to half of the nonempty ones. The same limit
/// applies to empty regions (without stretches).
const EMPTY: usize = 1024;

/// Addresses per slot. A block that begins at any but the first of these addresses has no slot here.
const GRAIN: u64 = 16;
/// The slot of a freed block whose address has not been reused.
const ENDED: u32 = u32::MAX;
/// The slot entry of an address at which no block begins and no free is remembered.
const VACANT: u32 = u32::MAX - 1;
/// The upper bound of slots, exclusive.
pub(crate) const MOST_SLOTS: u32 = VACANT;

/// The maximum number of cached region lookups.
const RECENT: usize = 1 << 12;
/// The marker of an unused cache entry.
const NONE: (u64, u32) = (u64::MAX, 0);

/// Returns the last byte of a block. An empty block ends at its own address, and sizes are capped at 2^47 bytes.
#[must_use]
pub(crate) fn last_byte(address: u64, size: u64) -> u64 {
    address.saturating_add(size.clamp(1, ADDRESS_SPACE) - 1)
}

/// The bytes covered by blocks. Memory is bounded by the maximum number of simultaneous blocks.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    by_number: AddressMap<u32>,
    /// Recently used regions, indexed by the low bits of the region number. Consecutive events mostly fall into the
    /// same few regions.
    recent: Vec<(u64, u32)>,
    /// The mapping of `by_number`, ordered by region number.
    order: BTreeMap<u64, u32>,
    regions: Vec<Region>,
    spare_regions: Vec<u32>,
    stretches: Vec<Stretch>,
    /// The number of marks in each stretch. The numbers are stored separately, because the stretches do not fit into
    /// the cache.
    marks: Vec<u16>,
    spare: Vec<u32>,
    /// The number of stretches, and the number of stretches without marks.
    count: usize,
    empty: usize,
    /// The number of regions without stretches.
    empty_regions: usize,
    /// Ranges of stretches that a block covers completely, as first and last stretch. These stretches have no bitmaps.
    covered: BTreeMap<u64, u64>,
}

/// Adjacent stretches.
#[derive(Clone, Debug)]
struct Region {
    /// One bit per existing stretch.
    present: u64,
    /// The indices of the stretches.
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

    /// Drops the stretches in `bits` that have no marks. Returns the number of dropped stretches.
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

/// The marks in a stretch.
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

    /// Returns the slot of the block that begins at a byte, or [`ENDED`] or [`VACANT`] if no block begins there.
    #[inline]
    fn slot(&self, byte: u64) -> u32 {
        let (word, _) = place(byte);
        let marks = grain(byte).zip(self.words.get(word));
        marks.and_then(|(grain, marks)| marks.slots.get(grain)).copied().unwrap_or(VACANT)
    }

    /// Clears the mark of a first byte, which must be set.
    #[inline]
    fn clear_first(&mut self, byte: u64) {
        let (word, bit) = place(byte);
        let Some(marks) = self.words.get_mut(word) else { return };
        marks.first &= !(1 << bit);
        if let Some(place) = grain(byte).and_then(|grain| marks.slots.get_mut(grain)) {
            *place = ENDED;
        }
    }

    /// Clears the first last-byte mark at or after `from`. Returns whether there was such a mark.
    #[inline]
    fn clear_last(&mut self, from: u64) -> bool {
        let (word, bit) = place(from);
        let mut mask = u64::MAX << bit;
        for marks in self.words.get_mut(word..).unwrap_or_default() {
            let here = marks.last & mask;
            if here != 0 {
                // Clear the lowest set bit.
                marks.last ^= here & here.wrapping_neg();
                return true;
            }
            mask = u64::MAX;
        }
        false
    }

    /// Returns whether any byte from `from` to `to` is in a block.
    #[inline]
    fn is_taken(&self, from: u64, to: u64) -> bool {
        let (word, bit) = place(from);
        let mut mask = u64::MAX << bit;
        for (at, marks) in (word..).zip(self.words.get(word..).unwrap_or_default()) {
            let here = (marks.first | marks.last) & mask;
            if here != 0 {
                let bit = here.trailing_zeros();
                // If the next mark is the end of a block and is after `to`, the block began before `from`.
                return at as u64 * 64 + u64::from(bit) <= to || marks.first >> bit & 1 == 0;
            }
            mask = u64::MAX;
        }
        // There is no mark after `from`, so check for a block that extends past the stretch.
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

/// Returns the number of a stretch's region and the stretch's bit in that region.
#[inline]
fn in_region(stretch: u64) -> (u64, u32) {
    (stretch >> REGION, (stretch & ((1 << REGION) - 1)) as u32)
}

/// Returns the cache index of a region.
#[inline]
fn recent(region: u64) -> usize {
    let [low, high, ..] = region.to_le_bytes();
    usize::from(u16::from_le_bytes([low, high])) % RECENT
}

/// Returns the index, within its bitmap word, of the slot for a block that begins at this byte. Returns `None` if such
/// a block has no slot.
#[inline]
fn grain(byte: u64) -> Option<usize> {
    byte.is_multiple_of(GRAIN).then_some((byte % 64 / GRAIN) as usize)
}

/// Returns the word and bit of a byte in its stretch.
#[inline]
fn place(byte: u64) -> (usize, u32) {
    ((byte / 64) as usize, (byte % 64) as u32)
}

impl Extents {
    /// Inserts a block unless it overlaps another block. Returns whether the block was inserted.
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

    /// Inserts a block that spans several stretches.
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

    /// Returns the slot of the block that begins at an address, if that block is stored with a slot.
    #[inline]
    pub(crate) fn slot(&self, address: u64) -> Option<u32> {
        Some(self.stretch_at(address)?.slot(address & LAST)).filter(|slot| *slot < MOST_SLOTS)
    }

    /// Returns whether a block at this address is stored with a slot.
    #[inline]
    pub(crate) fn has_slot(address: u64) -> bool {
        grain(address).is_some()
    }

    /// Returns whether a block with a slot was freed at an address that has not been reused. Old frees may have been
    /// evicted.
    pub(crate) fn was_freed(&self, address: u64) -> bool {
        self.stretch_at(address).is_some_and(|stretch| stretch.slot(address & LAST) == ENDED)
    }

    /// Returns the address and slot of each block that has a slot, ordered by address.
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

    /// Removes the block that begins at an address and returns its slot, if the block has a slot. `size` returns the
    /// size with which the block was inserted.
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

    /// Removes a block without a slot. Does nothing if the block was not inserted.
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

    /// Removes the parts of a block after its first stretch.
    fn remove_end(&mut self, from: u64, last: u64) {
        if last >> SHIFT > from + 1 {
            self.covered.remove(&(from + 1));
        }
        let Some(index) = self.known(last >> SHIFT) else { return };
        if self.stretches.get_mut(index as usize).is_some_and(|stretch| stretch.clear_last(last & LAST)) {
            self.unmark(index, 1);
        }
    }

    /// Counts marks added to a stretch.
    #[inline]
    fn mark(&mut self, stretch: u32, marks: u16) {
        let Some(count) = self.marks.get_mut(stretch as usize) else { return };
        self.empty -= usize::from(*count == 0);
        *count += marks;
    }

    /// Counts marks removed from a stretch.
    #[inline]
    fn unmark(&mut self, stretch: u32, marks: u16) {
        let Some(count) = self.marks.get_mut(stretch as usize) else { return };
        *count -= marks;
        self.empty += usize::from(*count == 0);
    }

    /// Returns the index of the stretch of an address, and part of the marks in this stretch. Reading the marks
    /// prefetches them without waiting for their values.
    #[inline]
    pub(crate) fn touch(&mut self, address: u64) -> Option<(u32, u64)> {
        let index = self.known(address >> SHIFT)?;
        let (word, _) = place(address & LAST);
        Some((index, self.stretches.get(index as usize)?.words.get(word)?.first))
    }

    /// Returns the slot entry of an address in a stretch. The entry is not a valid slot if the block was freed or if no
    /// block begins at the address.
    #[inline]
    pub(crate) fn slot_in(&self, index: u32, address: u64) -> u32 {
        self.stretches.get(index as usize).map_or(VACANT, |stretch| stretch.slot(address & LAST))
    }

    /// Returns the stretch that contains an address, if it exists.
    #[inline]
    fn stretch_at(&self, address: u64) -> Option<&Stretch> {
        let (region, bit) = in_region(address >> SHIFT);
        let region = self.regions.get(*self.by_number.get(&region)? as usize)?;
        self.stretches.get(region.get(bit)? as usize)
    }

    /// Returns the index of a stretch, if it exists.
    #[inline]
    fn known(&mut self, number: u64) -> Option<u32> {
        let (region, bit) = in_region(number);
        let place = match self.recent.get(recent(region)) {
            Some((known, place)) if *known == region => *place,
            _ => self.find(region)?,
        };
        self.regions.get(place as usize)?.get(bit)
    }

    /// Finds the index of a region and caches it.
    fn find(&mut self, region: u64) -> Option<u32> {
        let place = *self.by_number.get(&region)?;
        self.recent.resize(RECENT, NONE);
        self.recent.get_mut(recent(region)).into_iter().for_each(|note| *note = (region, place));
        Some(place)
    }

    /// Returns the index of a stretch, creating the stretch if necessary. Returns `None` if a block covers the stretch.
    #[inline]
    fn stretch(&mut self, number: u64) -> Option<u32> {
        self.known(number).or_else(|| self.add(number))
    }

    /// Creates a stretch unless a block covers it.
    fn add(&mut self, number: u64) -> Option<u32> {
        if self.covered.range(..=number).next_back().is_some_and(|(_, last)| *last >= number) {
            return None;
        }
        let index = match self.spare.pop() {
            Some(index) => {
                // Discard the frees that the old stretch remembered: they belong to other addresses.
                *self.stretches.get_mut(index as usize)? = Stretch::default();
                index
            }
            None => {
                self.stretches.push(Stretch::default());
                self.marks.push(0);
                // There are fewer than 2^32 blocks, and at most two stretches per block.
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

    /// Covers the stretches from `from` to `to` unless one of them has marks or is already covered. Returns whether all
    /// of them were free.
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

    /// Drops stretches without marks.
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

    /// Drops regions without stretches, if there are many.
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

    /// Regions without stretches are dropped, and are created again when blocks need them.
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
        /// Compares the extents with a list of blocks.
        #[test]
        fn blocks_overlap_as_by_a_list(
            calls in prop::collection::vec((0..3_usize, 0..6000_usize, 0..9_usize, 0..60_u64), 1..400),
            base in prop_oneof![Just(0), Just(u64::MAX - 6000), 0..1_u64 << 47],
        ) {
            let (mut extents, mut blocks) = (Extents::default(), Vec::<(u64, u64, u32)>::new());
            let remove = |extents: &mut Extents, (address, size, slot): (u64, u64, u32)| {
                let is_slotted = address % GRAIN == 0;
                prop_assert_eq!(extents.slot(address), is_slotted.then_some(slot));
                // Removing a block that is not stored changes nothing.
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
