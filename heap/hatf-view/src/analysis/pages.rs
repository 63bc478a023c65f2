//! Memory pages of a program, according to its requests and to the kernel.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Grown, Timeline};
use hatf_trace::event::{Pages, Resident};

/// The assumed page size in bytes.
const PAGE: u64 = 4096;
/// The `mmap` flag for pages that belong to no file (`MAP_ANONYMOUS`).
const OF_NO_FILE: u64 = 0x20;

/// The pages of a program over time, in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct PagesReport {
    /// The number of calls to each function.
    pub calls: PageCalls,
    /// Anonymous pages that calls in the trace mapped and did not unmap, plus the memory below the program break.
    pub held: Level,
    /// The number of kernel samples on which the following fields are based.
    pub samples: u64,
    /// Resident pages.
    pub resident: Level,
    /// Resident pages that belong only to the program and not to files or shared memory.
    pub private: Level,
    /// Writable private pages, resident or not, and stacks.
    pub data: Level,
    /// Growth and its cause. `None` if there are too few kernel samples or if some blocks are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grown: Option<Grown>,
    /// Resident private pages over time.
    pub timeline: Timeline,
}

/// Calls for pages, by function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageCalls {
    /// `mmap`.
    pub mmap: u64,
    /// `munmap`.
    pub munmap: u64,
    /// `mremap`.
    pub mremap: u64,
    /// Moves of the program break.
    pub brk: u64,
    /// `madvise`.
    pub madvise: u64,
}

/// A number of bytes that rises and falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Level {
    /// The maximum.
    pub peak: u64,
    /// The time at which the maximum was first reached.
    pub time: u64,
    /// The last value.
    pub end: u64,
}

impl Level {
    fn note(&mut self, bytes: u64, time: u64) {
        self.end = bytes;
        if bytes > self.peak {
            (self.peak, self.time) = (bytes, time);
        }
    }
}

/// Tracks the pages of a program.
///
/// # Examples
///
/// ```
/// use hatf_trace::event::Pages;
/// use hatf_view::analysis::PageFollower;
///
/// let (start, anonymous) = (0x10_0000, 0x22);
/// let mut pages = PageFollower::default();
/// assert!(pages.report().is_none());
/// pages.call(&Pages::Map { start, length: 8192, protection: 3, flags: anonymous }, 10);
/// pages.call(&Pages::Unmap { start, length: 4096 }, 20);
///
/// let report = pages.report().ok_or("no page events")?;
/// assert_eq!((report.calls.mmap, report.calls.munmap), (1, 1));
/// assert_eq!((report.held.peak, report.held.end), (8192, 4096));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Following {
    found: Option<Box<Found>>,
}

#[derive(Clone, Debug, Default)]
struct Found {
    calls: PageCalls,
    held: Level,
    samples: u64,
    resident: Level,
    private: Level,
    data: Level,
    timeline: Timeline,
    /// The ranges of mapped pages, as end (exclusive) by start.
    ranges: BTreeMap<u64, u64>,
    /// The total bytes of these ranges.
    bytes: u64,
    /// The first and the current program break. The break is 0 until the C library queries it.
    program_break: Option<(u64, u64)>,
}

impl Following {
    /// Handles the replacement of the program by another one, which starts without pages.
    pub fn image(&mut self) {
        if let Some(found) = &mut self.found {
            found.ranges.clear();
            (found.bytes, found.program_break) = (0, None);
        }
    }

    /// Handles a call for pages.
    pub fn call(&mut self, pages: &Pages, time: u64) {
        let found = self.found.get_or_insert_default();
        found.call(pages);
        let (first, last) = found.program_break.unwrap_or_default();
        let held = found.bytes.saturating_add(last.saturating_sub(first));
        found.held.note(held, time);
    }

    /// Handles a kernel sample.
    pub fn resident(&mut self, resident: &Resident, time: u64) {
        let found = self.found.get_or_insert_default();
        found.samples += 1;
        found.resident.note(resident.resident, time);
        found.private.note(resident.private(), time);
        found.data.note(resident.data, time);
        found.timeline.note(time, resident.private());
    }

    /// Returns the report, or `None` if the trace has no page events.
    #[must_use]
    pub fn report(&self) -> Option<PagesReport> {
        let Found { calls, held, samples, resident, private, data, ref timeline, .. } = **self.found.as_ref()?;
        let timeline = timeline.clone();
        Some(PagesReport { calls, held, samples, resident, private, data, grown: None, timeline })
    }
}

impl Found {
    fn call(&mut self, pages: &Pages) {
        match *pages {
            Pages::Map { start, length, flags, .. } => {
                self.calls.mmap += 1;
                // The new mapping replaces existing pages.
                self.remove(start, length);
                if flags & OF_NO_FILE != 0 {
                    self.insert(start, length);
                }
            }
            Pages::Unmap { start, length } => {
                self.calls.munmap += 1;
                self.remove(start, length);
            }
            Pages::Remap { from, from_length, start, length } => {
                self.calls.mremap += 1;
                let were_held = self.remove(from, from_length) > 0;
                self.remove(start, length);
                if were_held {
                    self.insert(start, length);
                }
            }
            Pages::Break { end } => {
                self.calls.brk += u64::from(self.program_break.is_some());
                let first = self.program_break.map_or(0, |(first, _)| first);
                let first = if first == 0 { end } else { first };
                self.program_break = Some((first, end));
            }
            Pages::Advise { .. } => self.calls.madvise += 1,
        }
    }

    /// Adds pages, none of which may be present.
    fn insert(&mut self, start: u64, length: u64) {
        let (start, end) = whole(start, length);
        if start < end {
            self.ranges.insert(start, end);
            self.bytes = self.bytes.saturating_add(end - start);
        }
    }

    /// Removes pages. Returns the bytes of the pages that were present.
    fn remove(&mut self, start: u64, length: u64) -> u64 {
        let (start, end) = whole(start, length);
        let mut removed = 0_u64;
        while let Some((&from, &to)) = self.ranges.range(..end).next_back().filter(|(_, to)| **to > start) {
            self.ranges.remove(&from);
            if from < start {
                self.ranges.insert(from, start);
            }
            if to > end {
                self.ranges.insert(end, to);
            }
            removed = removed.saturating_add(to.min(end) - from.max(start));
        }
        self.bytes = self.bytes.saturating_sub(removed);
        removed
    }
}

/// Returns the start and the end of the pages that contain these bytes.
fn whole(start: u64, length: u64) -> (u64, u64) {
    let end = start.saturating_add(length);
    (start / PAGE * PAGE, end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the ranges with a set of pages.
    #[test]
    fn ranges_are_sets_of_pages() {
        let (mut found, mut set) = (Found::default(), std::collections::BTreeSet::new());
        let mut random = 1_u64;
        let mut next = |bound: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % bound
        };
        for _ in 0..5000 {
            let (start, pages, other, more) = (next(60), next(9), next(60), next(9));
            let (at, length) = (start * PAGE, pages * PAGE);
            let call = match next(4) {
                0 => {
                    set.extend(start..start + pages);
                    Pages::Map { start: at, length, protection: 3, flags: OF_NO_FILE }
                }
                1 => {
                    set.retain(|page| !(start..start + pages).contains(page));
                    Pages::Map { start: at, length, protection: 1, flags: 2 }
                }
                2 => {
                    set.retain(|page| !(start..start + pages).contains(page));
                    Pages::Unmap { start: at, length }
                }
                _ => {
                    let held = set.range(start..start + pages).next().is_some();
                    set.retain(|page| !(start..start + pages).contains(page) && !(other..other + more).contains(page));
                    if held {
                        set.extend(other..other + more);
                    }
                    Pages::Remap { from: at, from_length: length, start: other * PAGE, length: more * PAGE }
                }
            };
            found.call(&call);
            assert_eq!(found.bytes, set.len() as u64 * PAGE, "{call:?}");
        }
    }

    #[test]
    fn what_is_held_over_time() {
        let mut following = Following::default();
        assert!(Following::default().report().is_none());
        // The break remains 0 until the allocator or other code queries it.
        following.call(&Pages::Break { end: 0 }, 0);
        following.call(&Pages::Break { end: 0x10_0000 }, 1);
        following.call(&Pages::Break { end: 0x12_1000 }, 2);
        following.call(&Pages::Map { start: 0x7000_0000, length: 5000, protection: 3, flags: 0x22 }, 3);
        following.call(&Pages::Unmap { start: 0x7000_1000, length: 1 }, 4);
        following.call(&Pages::Advise { start: 0, length: u64::MAX, advice: 4 }, 5);
        following.resident(&Resident { resident: 30, shared: 10, data: 7, mapped: 99 }, 6);
        following.resident(&Resident { resident: 25, shared: 20, data: 9, mapped: 99 }, 7);
        let report = following.report().unwrap();
        assert_eq!(report.calls, PageCalls { mmap: 1, munmap: 1, mremap: 0, brk: 2, madvise: 1 });
        assert_eq!(report.held, Level { peak: 0x2_1000 + 8192, time: 3, end: 0x2_1000 + 4096 });
        assert_eq!(report.resident, Level { peak: 30, time: 6, end: 25 });
        assert_eq!(report.private, Level { peak: 20, time: 6, end: 5 });
        assert_eq!((report.data, report.samples), (Level { peak: 9, time: 7, end: 9 }, 2));
    }
}
