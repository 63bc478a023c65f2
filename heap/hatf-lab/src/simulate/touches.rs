//! Cache lines and pages that a program touches, given the addresses chosen by an allocator.
//!
//! A program is assumed to fill each object once, so an allocation touches all of its bytes. A free touches the first
//! byte, where allocators keep their free lists. A realloc that moves an object copies it first. Traces do not contain
//! other accesses.

use hashbrown::HashMap;
use serde::Serialize;

use super::ratio::ratio;
use crate::allocator::PAGE;

/// Bytes per cache line.
const LINE: u64 = 64;
/// The number of events per window. Each line and page counts once per window.
const WINDOW: usize = 1000;
/// Entries of the simulated TLBs, which match the first and second level of current CPUs.
const ENTRIES: [usize; 2] = [64, 1536];

/// Counts of touched cache lines and pages.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Touched {
    /// Distinct 64-byte lines per 1,000 events, counted for each window separately.
    pub lines: Option<f64>,
    /// Distinct 4 KiB pages per 1,000 events.
    pub pages: Option<f64>,
    /// Misses of TLBs that evict the least recently used page.
    pub tlbs: Vec<Tlb>,
}

/// Misses of a TLB.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Tlb {
    /// The number of entries, with one page each.
    pub entries: usize,
    /// The number of bytes covered by the entries.
    pub reach: u64,
    /// The number of touched pages without an entry.
    pub misses: u64,
    /// Misses per 1,000 events.
    pub misses_of_1000: Option<f64>,
}

/// A counter of the cache lines and pages that events touch.
#[derive(Debug)]
pub(super) struct Touches {
    events: u64,
    /// Byte ranges touched in this window, with exclusive ends. They may overlap.
    window: Vec<(u64, u64)>,
    in_window: usize,
    lines: u64,
    pages: u64,
    tlbs: Vec<Recent>,
}

impl Touches {
    pub(super) fn new() -> Self {
        let tlbs = ENTRIES.iter().map(|entries| Recent::new(*entries)).collect();
        Self { events: 0, window: Vec::with_capacity(WINDOW), in_window: 0, lines: 0, pages: 0, tlbs }
    }

    /// Records an event that touches the given ranges, if any. Each range contains at least one byte.
    pub(super) fn note(&mut self, ranges: impl IntoIterator<Item = (u64, u64)>) {
        self.events += 1;
        self.in_window += 1;
        for (start, size) in ranges {
            let end = start.saturating_add(size.max(1));
            self.window.push((start, end));
            self.tlbs.iter_mut().for_each(|tlb| tlb.touch(start / PAGE, (end - 1) / PAGE));
        }
        if self.in_window == WINDOW {
            self.end_window();
        }
    }

    fn end_window(&mut self) {
        self.window.sort_unstable();
        self.lines += distinct(&self.window, LINE);
        self.pages += distinct(&self.window, PAGE);
        self.window.clear();
        self.in_window = 0;
    }

    pub(super) fn finish(mut self) -> Touched {
        self.end_window();
        let of_1000 = |sum: u64| ratio(u128::from(sum) * 1000, self.events.into());
        let tlb = |tlb: &Recent| Tlb {
            entries: tlb.entries,
            reach: tlb.entries as u64 * PAGE,
            misses: tlb.misses,
            misses_of_1000: of_1000(tlb.misses),
        };
        Touched { lines: of_1000(self.lines), pages: of_1000(self.pages), tlbs: self.tlbs.iter().map(tlb).collect() }
    }
}

/// Returns the number of units of `unit` bytes that the sorted ranges intersect.
fn distinct(sorted: &[(u64, u64)], unit: u64) -> u64 {
    let (mut sum, mut next) = (0, 0);
    for (start, end) in sorted {
        let first = (start / unit).max(next);
        let after = (end - 1) / unit + 1;
        sum += after.saturating_sub(first);
        next = next.max(after);
    }
    sum
}

/// The most recently touched pages, up to a maximum number, as a list from the most to the least recent.
#[derive(Debug)]
struct Recent {
    entries: usize,
    misses: u64,
    places: HashMap<u64, usize>,
    /// Pages, each with the indices of the pages touched next after it and last before it. The first entry is a
    /// sentinel that closes the circular list.
    list: Vec<(u64, usize, usize)>,
}

impl Recent {
    fn new(entries: usize) -> Self {
        Self { entries, misses: 0, places: HashMap::with_capacity(entries + 1), list: vec![(0, 0, 0)] }
    }

    /// Touches the pages from `first` to `last`.
    fn touch(&mut self, first: u64, last: u64) {
        let entries = self.entries as u64;
        // After this many pages, all pages from before this call have been evicted.
        let exact = last.min(first.saturating_add(entries - 1));
        for page in first..=exact {
            self.one(page);
        }
        let rest = last - exact;
        if rest > 0 {
            for page in (exact + 1).max(last.saturating_sub(entries - 1))..=last {
                self.one(page);
            }
            // The skipped pages were misses as well.
            self.misses += rest.saturating_sub(entries);
        }
    }

    fn one(&mut self, page: u64) {
        let place = match self.places.get(&page) {
            Some(&place) => {
                self.unlink(place);
                place
            }
            None => {
                self.misses += 1;
                let place = if self.places.len() < self.entries {
                    self.list.push((page, 0, 0));
                    self.list.len() - 1
                } else {
                    let oldest = self.list.first().map_or(0, |(_, after, _)| *after);
                    self.unlink(oldest);
                    if let Some(entry) = self.list.get_mut(oldest) {
                        self.places.remove(&entry.0);
                        entry.0 = page;
                    }
                    oldest
                };
                self.places.insert(page, place);
                place
            }
        };
        self.link(place);
    }

    fn unlink(&mut self, place: usize) {
        let Some(&(_, after, before)) = self.list.get(place) else { return };
        if let Some(entry) = self.list.get_mut(after) {
            entry.2 = before;
        }
        if let Some(entry) = self.list.get_mut(before) {
            entry.1 = after;
        }
    }

    /// Makes a page the most recently touched one.
    fn link(&mut self, place: usize) {
        let newest = self.list.first().map_or(0, |(.., before)| *before);
        if let Some(entry) = self.list.get_mut(place) {
            (entry.1, entry.2) = (0, newest);
        }
        if let Some(entry) = self.list.get_mut(newest) {
            entry.1 = place;
        }
        if let Some(entry) = self.list.first_mut() {
            entry.2 = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Computes the same counts with sets and a queue.
    fn naive(events: &[Option<(u64, u64)>], entries: usize) -> (u64, u64, u64) {
        let (mut lines, mut pages, mut misses) = (0, 0, 0);
        for window in events.chunks(WINDOW) {
            let units = |unit: u64| {
                let all =
                    window.iter().flatten().flat_map(|(start, size)| start / unit..=(start + size.max(&1) - 1) / unit);
                all.collect::<BTreeSet<u64>>().len() as u64
            };
            lines += units(LINE);
            pages += units(PAGE);
        }
        let mut queue = VecDeque::new();
        for (start, size) in events.iter().flatten() {
            for page in start / PAGE..=(start + size.max(&1) - 1) / PAGE {
                match queue.iter().position(|there| *there == page) {
                    Some(place) => drop(queue.remove(place)),
                    None => {
                        misses += 1;
                        if queue.len() == entries {
                            queue.pop_front();
                        }
                    }
                }
                queue.push_back(page);
            }
        }
        (lines, pages, misses)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn as_by_sets_and_a_queue(
            events in vec(
                proptest::option::weighted(0.9, (0..200_000_u64, prop_oneof![20 => 0..200_u64, 1 => 0..900_000_u64])),
                0..1300,
            ),
        ) {
            let mut touches = Touches::new();
            events.iter().for_each(|event| touches.note(*event));
            touches.end_window();
            let (lines, pages, misses) = naive(&events, ENTRIES[0]);
            prop_assert_eq!((touches.lines, touches.pages, touches.tlbs[0].misses), (lines, pages, misses));
        }
    }

    #[test]
    fn by_hand() {
        let mut touches = Touches::new();
        [Some((0, 65)), Some((64, 1)), None, Some((4096, 0))].into_iter().for_each(|event| touches.note(event));
        let touched = touches.finish();
        assert_eq!((touched.lines, touched.pages), (Some(750.0), Some(500.0)));
        assert_eq!((touched.tlbs[1].reach, touched.tlbs[1].misses), (6 << 20, 2));
        assert_eq!(Touches::new().finish().lines, None);
    }

    /// A realloc that moves the object copies the old block, which shares no line with the new one.
    #[test]
    fn a_realloc_copies() {
        use crate::HeapTracker;
        use crate::allocator::by_name;
        use crate::simulate::Simulation;
        use hatf_trace::{Event, EventSink as _};
        let lines = |moves: bool| {
            let mut tracker = HeapTracker::new(Simulation::new("bsd", by_name("bsd").unwrap()).with_touches());
            let mut give = |event: Event<'_>| tracker.event(&event).unwrap();
            give(Event::malloc(1 << 20, 2000));
            // The window ends here.
            for _ in 0..WINDOW / 2 {
                give(Event::malloc(1, 1));
                give(Event::free(1));
            }
            if moves {
                give(Event::realloc(1 << 20, 2 << 20, 3000));
            } else {
                give(Event::free(1 << 20));
                give(Event::malloc(2 << 20, 3000));
            }
            tracker.into_parts().1.finish().unwrap().touched.unwrap().lines.unwrap()
        };
        // 2,000 bytes after an 8-byte header are in 32 lines, one of which a free touches.
        let events = 2.0 + (WINDOW + 1) as f64;
        assert_eq!(((lines(true) - lines(false)) * events / 1000.0).round(), 31.0);
    }
}
