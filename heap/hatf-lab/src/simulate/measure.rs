//! Measures a simulation after every event.

use super::outcome::{Fragmentation, Outcome};
use super::ratio::ratio;
use crate::allocator::{Act, Acts};
use crate::curve::Curve;
use crate::objects::Change;

/// Live bytes and memory at one point in time. Memory is the heap or, for an allocator that reserves address space, the
/// held pages.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    live: u64,
    memory: u64,
}

impl Moment {
    fn ratio(self) -> Option<f64> {
        ratio(self.memory.into(), self.live.into())
    }
}

/// Sums and peaks of the measurements.
#[derive(Debug, Default)]
pub(super) struct Measure {
    events: u64,
    objects: u64,
    of_pages: bool,
    now: Moment,
    heap_now: u64,
    most_heap: u64,
    live: u128,
    heap: u128,
    held: u128,
    most_held: u64,
    /// The sum of memory / live over the events after which some bytes were live.
    ratios: f64,
    with_live: u64,
    /// The first point at which live bytes were at their maximum. `most_memory` is the same for memory.
    most_live: Moment,
    most_memory: Moment,
    curve: Curve<3>,
}

impl Measure {
    /// Creates an empty measurement. If `of_pages` is set, ratios refer to held pages.
    pub(super) fn new(of_pages: bool) -> Self {
        Self { of_pages, ..Self::default() }
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    #[inline]
    pub(super) fn note(&mut self, change: Change, size: u64, heap: u64, held: u64) {
        self.events += 1;
        match change {
            Change::Allocated => {
                self.objects += 1;
                self.now.live += size;
            }
            Change::Freed => self.now.live -= size,
        }
        self.now.memory = if self.of_pages { held } else { heap };
        self.heap_now = heap;
        self.most_heap = self.most_heap.max(heap);
        let Moment { live, .. } = self.now;
        self.live += u128::from(live);
        self.heap += u128::from(heap);
        self.held += u128::from(held);
        self.most_held = self.most_held.max(held);
        if let Some(ratio) = self.now.ratio() {
            self.ratios += ratio;
            self.with_live += 1;
        }
        if live > self.most_live.live {
            self.most_live = self.now;
        }
        if self.now.memory > self.most_memory.memory {
            self.most_memory = self.now;
        }
        self.curve.note([live, heap, held]);
    }

    #[expect(clippy::cast_precision_loss, reason = "the mean is for display")]
    pub(super) fn finish(self, name: String, allocator: String, acts: Acts, refused: u64) -> Outcome {
        let fragmentation = Fragmentation {
            mean: (self.with_live > 0).then(|| self.ratios / self.with_live as f64),
            at_most_live: self.most_live.ratio(),
            at_most_heap: self.most_memory.ratio(),
            most_heap_to_most_live: ratio(self.most_memory.memory.into(), self.most_live.live.into()),
        };
        Outcome {
            name,
            allocator,
            events: self.events,
            objects: self.objects,
            heap: self.heap_now,
            most_heap: self.most_heap,
            most_held: self.most_held,
            mean_held: self.held.checked_div(self.events.into()).and_then(|mean| mean.try_into().ok()).unwrap_or(0),
            most_live: self.most_live.live,
            live_sum: self.live,
            heap_sum: self.heap,
            ratios_of_pages_held: self.of_pages,
            memory_efficiency: ratio(self.live, if self.of_pages { self.held } else { self.heap }),
            fragmentation,
            steps: ratio(acts.of(Act::Examined).into(), self.objects.into()),
            ops: ratio(acts.weighted(&Acts::weights()), self.objects.into()),
            weights: Acts::weights(),
            acts,
            refused,
            touched: None,
            curves: self.curve.curves(["live bytes", "heap", "pages held"]),
        }
    }
}
