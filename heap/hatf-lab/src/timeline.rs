//! The heap over time in a bounded number of rows, and the exact peak.
//!
//! There are at most 512 rows for equal intervals of time (of ticks if the trace has no timestamps), plus one row for
//! the peak. Each row describes the state at the end of its interval. In a sample, the values are estimates for all
//! blocks.

use hatf_trace::event::Resident;
use hatf_trace::{Event, EventKind};

use crate::Result;
use crate::heap::Heap;
use crate::objects::{Change, ObjectEvent};
use crate::observer::Observer;
use crate::site_counts::{Amount, Weight};
use crate::stretches::{Stretches, Summary};

/// A snapshot of the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The time in nanoseconds.
    pub time: u64,
    /// The last tick before the snapshot.
    pub tick: u64,
    /// The live blocks. Blocks that a program never freed stay live after its exit until another program follows.
    pub live: Amount,
    /// The maximum number of live bytes since the previous row.
    pub most: u64,
    /// The total amount allocated so far.
    pub allocated: Amount,
    /// The total amount that has ended so far.
    pub ended: Amount,
    /// The last resident memory that the kernel reported, if any.
    pub resident: Option<Resident>,
    /// Whether the number of live bytes first reached its maximum at this point.
    pub is_peak: bool,
}

impl Summary for Snapshot {
    #[inline]
    fn add(&mut self, next: Self) {
        *self = Self { most: self.most.max(next.most), ..next };
    }

    fn unchanged(before: Option<Self>) -> Self {
        before.map_or_else(Self::default, |before| Self { most: before.live.bytes, ..before })
    }
}

/// An [`Observer`] that builds the timeline.
///
/// The [crate's example](crate#examples) finds the peak of a trace.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    by_time: Stretches<Snapshot>,
    by_tick: Stretches<Snapshot>,
    now: Snapshot,
    peak: Snapshot,
    weight: Weight,
}

impl Timeline {
    /// Creates an observer without rows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the rows in order.
    #[must_use]
    pub fn rows(&self) -> Vec<Snapshot> {
        let whole = |snapshot: Snapshot| Snapshot {
            live: self.weight.whole(snapshot.live),
            allocated: self.weight.whole(snapshot.allocated),
            ended: self.weight.whole(snapshot.ended),
            ..snapshot
        };
        let stretches = if self.now.time > 0 { &self.by_time } else { &self.by_tick };
        let mut rows: Vec<_> = stretches.points.iter().copied().filter(|row| row.tick > 0).collect();
        // Stretches without events repeat the previous row.
        rows.dedup_by_key(|row| (row.tick, row.time, row.resident, row.live));
        if self.peak.tick > 0 {
            let at = rows.partition_point(|row| row.tick < self.peak.tick);
            match rows.get_mut(at) {
                Some(row) if row.tick == self.peak.tick && row.live == self.peak.live => row.is_peak = true,
                _ => rows.insert(at, Snapshot { is_peak: true, most: self.peak.live.bytes, ..self.peak }),
            }
        }
        rows.into_iter().map(whole).collect()
    }

    /// Records the current state.
    #[inline]
    fn note(&mut self) {
        self.now.most = self.now.live.bytes;
        if self.now.live.bytes > self.peak.live.bytes {
            self.peak = self.now;
        }
        self.by_time.note(self.now.time, self.now);
        self.by_tick.note(self.now.tick, self.now);
    }
}

impl Observer for Timeline {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let amount = self.weight.amount(event.object.size);
        self.now.time = self.now.time.max(event.time);
        self.now.tick = event.tick;
        match event.change {
            Change::Allocated => {
                self.now.live.sum(amount);
                self.now.allocated.sum(amount);
            }
            Change::Freed => {
                self.now.live.remove(amount);
                self.now.ended.sum(amount);
            }
        }
        self.note();
        Ok(())
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, _: &Heap) -> Result<()> {
        match record.kind {
            EventKind::Resident(resident) => self.now.resident = Some(resident),
            EventKind::Exit { .. } | EventKind::Killed { .. } | EventKind::Image { .. } => {}
            _ => return Ok(()),
        }
        self.now.time = self.now.time.max(record.time);
        self.note();
        Ok(())
    }

    fn sampled(&mut self, mean: u64) {
        self.weight = Weight::sampled(mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeapTracker;
    use hatf_trace::EventSink as _;

    fn rows(events: impl IntoIterator<Item = Event<'static>>) -> Vec<Snapshot> {
        let mut tracker = HeapTracker::new(Timeline::new());
        events.into_iter().for_each(|event| tracker.event(&event).unwrap());
        tracker.observer().rows()
    }

    #[test]
    fn the_peak_is_exact_and_rows_are_few() {
        let event = |n: u64| Event { time: n * 1000, ..Event::malloc(n * 64 + 64, if n == 777 { 5000 } else { 1 }) };
        let all = (0..100_000).flat_map(|n| [event(n), Event { time: n * 1000 + 1, ..Event::free(n * 64 + 64) }]);
        for timed in [true, false] {
            let rows = rows(all.clone().map(|event| Event { time: if timed { event.time } else { 0 }, ..event }));
            assert!(rows.len() <= 513, "{}", rows.len());
            let peaks: Vec<_> = rows.iter().filter(|row| row.is_peak).collect();
            assert_eq!(peaks.len(), 1);
            assert_eq!((peaks[0].tick, peaks[0].live, peaks[0].most), (1555, Amount { blocks: 1, bytes: 5000 }, 5000));
            assert_eq!(rows.iter().map(|row| row.most).max(), Some(5000));
            let last = rows.last().unwrap();
            assert_eq!(
                (last.tick, last.live.blocks, last.allocated.blocks, last.ended.blocks),
                (200_000, 0, 100_000, 100_000)
            );
            assert!(rows.is_sorted_by_key(|row| (row.tick, row.time)));
        }
    }

    /// The last row of a program shows the blocks that it never freed. The next program starts without them.
    #[test]
    fn programs_end() {
        let exit = Event { time: 20, ..Event::new(EventKind::Exit { status: 0 }) };
        let image = Event { time: 30, ..Event::new(EventKind::Image { process: 1, path: b"" }) };
        let first = [Event { time: 10, ..Event::malloc(64, 7) }, exit];
        let last = *rows(first).last().unwrap();
        assert_eq!((last.time, last.live, last.ended.blocks), (20, Amount { blocks: 1, bytes: 7 }, 0));
        let rows = rows(first.into_iter().chain([image, Event { time: 40, ..Event::malloc(64, 2) }]));
        let last = rows.last().unwrap();
        assert_eq!((last.live.bytes, last.allocated.bytes, last.ended.bytes), (2, 9, 7));
        assert_eq!(rows.iter().filter(|row| row.is_peak).map(|row| row.live.bytes).collect::<Vec<_>>(), [7]);
    }
}
