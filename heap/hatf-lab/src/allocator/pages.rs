//! The pages held by a simulated heap, which are the pages that were touched and not returned.

use std::collections::BTreeMap;

use super::PAGE;

/// Words per leaf. A leaf contains one bit per page and therefore covers 128 MiB.
const WORDS: usize = 512;
/// Pages per leaf.
const LEAF: u64 = 64 * WORDS as u64;

/// A set of pages. Its memory is bounded by the number of calls, regardless of their arguments, because a range larger
/// than a leaf is a single map entry.
#[derive(Debug, Default)]
pub(super) struct Pages {
    leaves: Vec<Option<Box<[u64; WORDS]>>>,
    /// Ranges of held pages, from the first page to the page after the last one. The bits of these pages are clear.
    ranges: BTreeMap<u64, u64>,
    count: u64,
}

impl Pages {
    /// Returns the bytes of all pages in the set.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.count * PAGE
    }

    /// Adds the pages of `size` bytes at `address`, which are at least one page.
    #[inline]
    pub(super) fn touch(&mut self, address: u64, size: u64) {
        let (first, last) = (address / PAGE, (address + size.max(1) - 1) / PAGE);
        let held = first == last && self.bit(first);
        if !held {
            self.add(first, last + 1);
        }
    }

    #[inline]
    fn bit(&self, page: u64) -> bool {
        let word = self.leaf(page / LEAF).and_then(|leaf| leaf.get(place(page))).copied().unwrap_or(0);
        word >> (page % 64) & 1 == 1
    }

    #[inline]
    fn leaf(&self, leaf: u64) -> Option<&[u64; WORDS]> {
        self.leaves.get(usize::try_from(leaf).ok()?)?.as_deref()
    }

    fn add(&mut self, first: u64, end: u64) {
        if end - first > LEAF {
            self.remove(first, end);
            self.ranges.insert(first, end);
            self.count += end - first;
            return;
        }
        for page in first..end {
            let within = |(_, end): (&u64, &u64)| page < *end;
            if self.ranges.is_empty() || !self.ranges.range(..=page).next_back().is_some_and(within) {
                self.set(page);
            }
        }
    }

    fn set(&mut self, page: u64) {
        let Ok(leaf) = usize::try_from(page / LEAF) else { return };
        if leaf >= self.leaves.len() {
            self.leaves.resize_with(leaf + 1, || None);
        }
        let Some(leaf) = self.leaves.get_mut(leaf) else { return };
        let leaf = leaf.get_or_insert_with(|| Box::new([0; WORDS]));
        if let Some(word) = leaf.get_mut(place(page)) {
            self.count += 1 - (*word >> (page % 64) & 1);
            *word |= 1 << (page % 64);
        }
    }

    /// Removes the pages that a range covers completely. Returns the number of removed pages.
    pub(super) fn release(&mut self, address: u64, size: u64) -> u64 {
        let (first, end) = (address.div_ceil(PAGE), (address + size) / PAGE);
        let before = self.count;
        if first < end {
            self.remove(first, end);
        }
        before - self.count
    }

    fn remove(&mut self, first: u64, end: u64) {
        self.remove_ranges(first, end);
        let leaves = self.leaves.len() as u64 * LEAF;
        let mut page = first;
        while page < end.min(leaves) {
            let (leaf, stop) = (page / LEAF, ((page / LEAF + 1) * LEAF).min(end));
            if let Some(Some(leaf)) = usize::try_from(leaf).ok().and_then(|leaf| self.leaves.get_mut(leaf)) {
                while page < stop {
                    let (bit, next) = (page % 64, (page / 64 * 64 + 64).min(stop));
                    let mask = u64::MAX << bit & u64::MAX >> ((64 - next % 64) % 64);
                    if let Some(word) = leaf.get_mut(place(page)) {
                        self.count -= u64::from((*word & mask).count_ones());
                        *word &= !mask;
                    }
                    page = next;
                }
            }
            page = stop;
        }
    }

    fn remove_ranges(&mut self, first: u64, end: u64) {
        while let Some((&from, &to)) = self.ranges.range(..end).next_back().filter(|(_, to)| **to > first) {
            self.ranges.remove(&from);
            self.count -= to.min(end) - from.max(first);
            if from < first {
                self.ranges.insert(from, first);
            }
            if to > end {
                self.ranges.insert(end, to);
            }
        }
    }

    /// Checks that the count matches the bits and ranges.
    pub(super) fn check(&self) -> Result<(), String> {
        let words = self.leaves.iter().flatten().flat_map(|leaf| leaf.iter());
        let sum = words.map(|word| u64::from(word.count_ones())).sum::<u64>();
        let sum = sum + self.ranges.iter().map(|(from, to)| to - from).sum::<u64>();
        if sum == self.count { Ok(()) } else { Err(format!("{sum} pages are held, but {} were counted", self.count)) }
    }
}

/// Returns the word of a page in its leaf.
#[inline]
fn place(page: u64) -> usize {
    (page / 64 % WORDS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_and_go() {
        let mut pages = Pages::default();
        pages.touch(100, 5000);
        pages.touch(4096, 0);
        assert_eq!(pages.bytes(), 2 * PAGE);
        // Only complete pages are returned.
        assert_eq!((pages.release(1, 8191), pages.bytes()), (1, PAGE));
        pages.touch(0, 1 << 46);
        pages.touch(1 << 45, 1 << 20);
        assert_eq!(pages.bytes(), 1 << 46);
        assert_eq!(pages.release(1 << 45, 1 << 30), 1 << 18);
        pages.touch(1 << 45, 1);
        pages.touch((1 << 45) - 1, 2);
        assert_eq!(pages.bytes(), (1 << 46) - (1 << 30) + PAGE);
        pages.check().unwrap();
        pages.release(0, 1 << 47);
        assert_eq!(pages.bytes(), 0);
    }
}
