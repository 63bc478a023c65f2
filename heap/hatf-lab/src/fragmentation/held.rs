//! Pages held over time.

use std::cmp::Ordering;

use serde::Serialize;

use super::{PAGES, extent};
use crate::Result;
use crate::address::AddressMap;
use crate::curve::{Curve, Curves};
use crate::kept::Point;
use crate::objects::{Change, Object, ObjectEvent};
use crate::observer::Observer;

/// An observer that counts the held pages after every event, for each page size.
///
/// Memory is bounded by the number of live blocks, because pages strictly inside a block are counted but not listed.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::fragmentation::Held;
/// use hatf_trace::{Event, EventSink};
///
/// let mut tracker = HeapTracker::new(Held::new());
/// tracker.event(&Event::malloc(0x1000, 8_192))?;
/// tracker.event(&Event::malloc(0x3000, 24))?;
/// tracker.event(&Event::free(0x1000))?;
/// let report = tracker.observer().report();
/// let peak = report.peaks[0];
/// assert_eq!((peak.page, peak.pages, peak.tick), (4_096, 3, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Held {
    sizes: [Counts; PAGES.len()],
    live: u64,
    curve: Curve<4>,
    last: Moments,
    peaks: [Peak; PAGES.len()],
    worst: [Peak; PAGES.len()],
    sparsest: [Peak; PAGES.len()],
}

/// A point in a trace, in events and nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    tick: u64,
    time: u64,
}

/// The first event at which a measure reached its maximum. The measure is the number of held pages, their wasted bytes,
/// or the number of held pages per live byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Peak {
    /// Bytes per page.
    pub page: u64,
    /// The number of the event, or 0 if there was no such event.
    pub tick: u64,
    /// The time in nanoseconds since the start.
    pub time: u64,
    /// The number of held pages.
    pub pages: u64,
    /// The number of bytes live at that point.
    pub live: u64,
}

impl Peak {
    /// Returns the bytes of held pages that no live block requested.
    #[must_use]
    pub fn wasted(&self) -> u64 {
        self.pages.saturating_mul(self.page).saturating_sub(self.live)
    }
}

impl Peak {
    /// Returns whether this point has more held pages per live byte than `than`. Only points with many held pages
    /// count: if the numbers of pages round down to different powers of two, the point with more pages counts as
    /// sparser.
    #[inline]
    fn is_sparser(&self, than: &Self) -> bool {
        let many = |pages: u64| pages.checked_ilog2();
        let product = |pages: u64, live: u64| u128::from(pages) * u128::from(live.max(1));
        match many(self.pages).cmp(&many(than.pages)) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => product(self.pages, than.live) > product(than.pages, self.live),
        }
    }
}

/// Held pages over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HeldReport {
    /// The number of the last event.
    pub tick: u64,
    /// The time of the last event in nanoseconds.
    pub time: u64,
    /// The peak for each page size.
    pub peaks: Vec<Peak>,
    /// The point with the most wasted bytes for each page size.
    pub worst: Vec<Peak>,
    /// The point with the most held pages per live byte for each page size. Only points count whose number of held
    /// pages is at least the largest power of two up to the maximum number of held pages.
    pub sparsest: Vec<Peak>,
    /// Curves of live bytes and bytes in held pages over events.
    pub curves: Curves,
}

impl HeldReport {
    /// Returns the last event, or the event at which the most pages of this size are held (`Peak`), the most bytes are
    /// wasted on held pages (`Worst`), or the most pages are held per live byte (`Sparsest`). Returns `None` for all
    /// other points.
    #[must_use]
    pub fn tick_of(&self, point: &Point, page: u64) -> Option<u64> {
        let peaks = match point {
            Point::End => return Some(self.tick),
            Point::Peak => &self.peaks,
            Point::Worst => &self.worst,
            Point::Sparsest => &self.sparsest,
            _ => return None,
        };
        Some(peaks.iter().find(|peak| peak.page == page).map_or(0, |peak| peak.tick))
    }
}

/// The held pages of one size.
#[derive(Debug)]
struct Counts {
    shift: u32,
    /// The number of blocks that begin or end on each page.
    blocks: AddressMap<u32>,
    /// The number of pages strictly inside blocks. No other block is on these pages.
    inner: u64,
}

impl Counts {
    fn held(&self) -> u64 {
        self.blocks.len() as u64 + self.inner
    }

    #[inline]
    fn add(&mut self, (first, last): (u64, u64)) {
        let (first, last) = (first >> self.shift, last >> self.shift);
        *self.blocks.entry(first).or_default() += 1;
        if last > first {
            *self.blocks.entry(last).or_default() += 1;
            self.inner += last - first - 1;
        }
    }

    #[inline]
    fn remove(&mut self, (first, last): (u64, u64)) {
        let (first, last) = (first >> self.shift, last >> self.shift);
        self.leave(first);
        if last > first {
            self.leave(last);
            self.inner -= last - first - 1;
        }
    }

    #[inline]
    fn leave(&mut self, page: u64) {
        if let std::collections::hash_map::Entry::Occupied(mut count) = self.blocks.entry(page) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Default for Held {
    fn default() -> Self {
        Self {
            sizes: PAGES.map(|page| Counts { shift: page.trailing_zeros(), blocks: AddressMap::default(), inner: 0 }),
            live: 0,
            curve: Curve::default(),
            last: Moments::default(),
            peaks: PAGES.map(|page| Peak { page, ..Peak::default() }),
            worst: PAGES.map(|page| Peak { page, ..Peak::default() }),
            sparsest: PAGES.map(|page| Peak { page, ..Peak::default() }),
        }
    }
}

impl Held {
    /// Creates an observer without held pages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the held pages over time.
    #[must_use]
    pub fn report(&self) -> HeldReport {
        let Moments { tick, time } = self.last;
        let names = ["live bytes", "4 KiB pages held", "64 KiB pages held", "2 MiB pages held"];
        let [peaks, worst, sparsest] = [self.peaks, self.worst, self.sparsest].map(Vec::from);
        HeldReport { tick, time, peaks, worst, sparsest, curves: self.curve.curves(names) }
    }

    fn change(&mut self, change: Change, object: &Object) {
        let extent = extent(object);
        match change {
            Change::Allocated => {
                self.live = self.live.saturating_add(object.size);
                self.sizes.iter_mut().for_each(|counts| counts.add(extent));
            }
            Change::Freed => {
                self.live = self.live.saturating_sub(object.size);
                self.sizes.iter_mut().for_each(|counts| counts.remove(extent));
            }
        }
    }
}

impl Observer for Held {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.change(event.change, &event.object);
        self.last = Moments { tick: event.tick, time: self.last.time.max(event.time) };
        let Moments { tick, time } = self.last;
        let mut values = [self.live; PAGES.len() + 1];
        let marks = self.peaks.iter_mut().zip(&mut self.worst).zip(&mut self.sparsest);
        for ((counts, ((peak, worst), sparsest)), value) in self.sizes.iter().zip(marks).zip(values.iter_mut().skip(1))
        {
            let pages = counts.held();
            *value = pages.saturating_mul(peak.page);
            let now = Peak { page: peak.page, tick, time, pages, live: self.live };
            if pages > peak.pages {
                *peak = now;
            }
            if now.wasted() > worst.wasted() {
                *worst = now;
            }
            if now.is_sparser(sparsest) {
                *sparsest = now;
            }
        }
        self.curve.note(values);
        Ok(())
    }
}
