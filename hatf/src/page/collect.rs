//! What a page needs of a trace, collected as it is read.

use std::collections::BTreeMap;

use hatf_lab::moments::Moments;
use hatf_lab::sites::Amount;
use hatf_lab::{Cause, Change, Heap, ObjectEvent, Observer};

use crate::event::{Event, EventKind};

/// Marks that are shown; there may be a million of them.
const MOST_MARKS: usize = 200;
/// Threads that are shown.
const MOST_THREADS: usize = 32;

/// A place in the trace that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) time: u64,
    pub(super) tick: u64,
}

/// Collects what a page shows beside the report.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    pub(super) moments: Moments,
    pub(super) marks: Vec<Named>,
    /// Blocks by the power of two above their size, and the power of ten above their lifetime in nanoseconds.
    pub(super) lifetimes: BTreeMap<(u8, u8), Amount>,
    /// Blocks by the thread that allocated them, and the one that freed them.
    pub(super) threads: BTreeMap<(u64, u64), Amount>,
    last: (u64, u64),
    of_last: Amount,
}

impl Collected {
    /// Starts with nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    fn freed(&mut self, event: &ObjectEvent) {
        let object = &event.object;
        let lifetime = event.time.saturating_sub(object.time);
        let life = lifetime.checked_ilog10().map_or(0, |log| small(log + 1));
        self.lifetimes.entry((power(object.size), life)).or_default().add_block(object.size);
        let threads = (object.thread, event.thread);
        if threads != self.last {
            self.note_threads();
            self.last = threads;
        }
        self.of_last.add_block(object.size);
    }

    /// Counts what the last pair of threads did, unless there are too many.
    #[cold]
    fn note_threads(&mut self) {
        let noted = std::mem::take(&mut self.of_last);
        if noted.blocks == 0 {
            return;
        }
        let full = self.threads.len() >= MOST_THREADS * MOST_THREADS;
        let of = if full && !self.threads.contains_key(&self.last) { (u64::MAX, u64::MAX) } else { self.last };
        self.threads.entry(of).or_default().sum(noted);
    }

    /// Returns bytes by threads.
    pub(super) fn by_threads(&self) -> BTreeMap<(u64, u64), Amount> {
        let mut this = self.clone();
        this.note_threads();
        this.threads
    }
}

impl Observer for Collected {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> hatf_lab::Result<()> {
        if event.change == Change::Freed && matches!(event.cause, Cause::Call | Cause::Realloc) {
            self.freed(event);
        }
        self.moments.event(event)
    }

    fn sampled(&mut self, mean: u64) {
        self.moments.sampled(mean);
    }

    /// Marks are moments of their own.
    fn record(&mut self, event: &Event<'_>, heap: &Heap) -> hatf_lab::Result<()> {
        let name = match event.kind {
            EventKind::Mark { name } | EventKind::PhaseBegin { name } => String::from_utf8_lossy(name).into_owned(),
            EventKind::PhaseEnd { name } => format!("end of {}", String::from_utf8_lossy(name)),
            _ => return Ok(()),
        };
        self.moments.cut();
        if self.marks.len() < MOST_MARKS {
            self.marks.push(Named { name, time: event.time, tick: heap.objects.tick() });
        }
        Ok(())
    }
}

/// Returns how many bits a number has: a power of two above it.
fn power(number: u64) -> u8 {
    small(u64::BITS - number.leading_zeros())
}

/// Exponents of numbers are small.
fn small(exponent: u32) -> u8 {
    u8::try_from(exponent).unwrap_or(u8::MAX)
}
