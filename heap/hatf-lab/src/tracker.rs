//! Follows the heap of a trace on behalf of observers.

use hatf_trace::event::{Call, UserMetadata, has_sizes_only};
use hatf_trace::{Event, EventKind, EventSink, Result};

use crate::heap::{Heap, SizesOnly};
use crate::observer::Observer;

/// An [`EventSink`] that follows the heap and notifies an observer.
///
/// The [crate's example](crate#examples) combines two observers.
///
/// # Examples
///
/// A tracker without an observer follows only the heap:
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_trace::{Event, EventSink};
///
/// let mut tracker = HeapTracker::new(());
/// tracker.event(&Event::malloc(0x1000, 24))?;
/// tracker.event(&Event::realloc(0x1000, 0x2000, 100))?;
/// let heap = tracker.heap();
/// assert_eq!((heap.objects.live_count(), heap.objects.live_bytes()), (1, 100));
/// // The realloc counts as a free and a malloc.
/// assert_eq!(heap.totals().events, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HeapTracker<O> {
    heap: Heap,
    observer: O,
}

impl<O: Observer> HeapTracker<O> {
    /// Creates a tracker with an empty heap.
    pub fn new(observer: O) -> Self {
        Self { heap: Heap::default(), observer }
    }

    /// Also accepts traces recorded with `--sizes-only`. Each of their objects ends immediately after its allocation.
    #[must_use]
    pub fn with_sizes_only(mut self) -> Self {
        self.heap.sizes = SizesOnly::Taken;
        self
    }

    /// Returns the heap.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Returns the observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Returns a mutable reference to the observer.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Returns the heap and the observer.
    pub fn into_parts(self) -> (Heap, O) {
        (self.heap, self.observer)
    }

    /// Applies a record to the heap.
    #[inline]
    fn follow(&mut self, event: &Event<'_>) -> crate::Result<()> {
        let Self { heap: Heap { objects, stacks, sizes, .. }, observer } = self;
        let give = &mut |event: &_| observer.event(event);
        match event.kind {
            EventKind::Call(ref call) | EventKind::ReallocEnd(ref call) if call.address != 0 => {
                let site = stacks.number(event.stack);
                stacks.note_size(site, call.size);
                objects.follow(event, site, give)
            }
            EventKind::Call(ref call) if *sizes == SizesOnly::Here => {
                let kind = EventKind::Call(Call { address: NOWHERE, old: 0, ..*call });
                let site = stacks.number(event.stack);
                stacks.note_size(site, call.size);
                objects.follow(&Event { kind, ..*event }, site, give)?;
                objects.follow(&Event { kind: EventKind::Free { address: NOWHERE }, ..*event }, 0, give)
            }
            EventKind::Call(_) | EventKind::Free { .. } => objects.follow(event, 0, give),
            EventKind::Failed(_) => objects.follow(event, stacks.number(event.stack), give),
            ref kind => {
                stacks.note(kind);
                objects.follow(event, 0, give)
            }
        }
    }
}

impl<O: Observer> EventSink for HeapTracker<O> {
    #[inline]
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.follow(event)?;
        Ok(self.observer.record(event, &self.heap)?)
    }

    fn coming(&mut self, addresses: &[u64]) {
        self.heap.objects.look_ahead(addresses);
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.observer.comment(&String::from_utf8_lossy(text));
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        if has_sizes_only(user_metadata) {
            if self.heap.sizes == SizesOnly::Refused {
                return Err(ends_are_not_known());
            }
            self.heap.sizes = SizesOnly::Here;
        }
        if let Some(mean) = sampling(user_metadata) {
            self.heap.sampling = Some(mean);
            self.observer.sampled(mean);
        }
        self.observer.user_metadata(user_metadata);
        Ok(())
    }
}

/// Returns the mean number of bytes between two recorded blocks, if the trace is a sample.
#[must_use]
pub fn sampling(user_metadata: &UserMetadata) -> Option<u64> {
    user_metadata.get("sampling")?.get("bytes")?.as_u64()
}

/// A placeholder for an unknown block address.
const NOWHERE: u64 = 1;

/// Returns the error for an operation that a sizes-only trace does not support.
#[must_use]
pub fn ends_are_not_known() -> hatf_trace::Error {
    let why = "the trace was recorded with --sizes-only, so it does not show when blocks end";
    hatf_trace::Error::Trace(format!("{why} (hatf report and hatf sites still work)").into())
}
