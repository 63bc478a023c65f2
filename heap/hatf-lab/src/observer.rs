//! Observers of the events in a heap.

use hatf_trace::Event;
use hatf_trace::event::UserMetadata;

use crate::heap::Heap;
use crate::objects::ObjectEvent;
use crate::{Error, Result};

/// An observer of a trace, which receives events and records in order. The default methods do nothing.
///
/// `Option`s and pairs of observers are observers, so several observers can share one pass over a trace. Results are
/// read by reference, so they are also available while events still arrive.
///
/// # Examples
///
/// A closure observes changes to objects:
///
/// ```
/// use hatf_lab::{HeapTracker, ObjectEvent, Result};
/// use hatf_trace::{Event, EventSink};
///
/// let mut largest = 0_u64;
/// let mut tracker = HeapTracker::new(|event: &ObjectEvent| -> Result<()> {
///     largest = largest.max(event.object.size);
///     Ok(())
/// });
/// tracker.event(&Event::malloc(0x1000, 24))?;
/// tracker.event(&Event::malloc(0x2000, 100))?;
/// assert_eq!(largest, 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Observer {
    /// Receives a change to an object.
    ///
    /// # Errors
    /// After an error, no more events should be delivered.
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let _ = event;
        Ok(())
    }

    /// Receives a record of the trace (a call, thread, phase, page request or other record) after the heap has
    /// processed it.
    ///
    /// # Errors
    /// After an error, no more records should be delivered.
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> Result<()> {
        let _ = (record, heap);
        Ok(())
    }

    /// Receives the sampling rate before the first event, if the trace is a sample. An object of `s` bytes is in the
    /// trace with probability `1 - exp(-s / mean)`.
    fn sampled(&mut self, mean: u64) {
        let _ = mean;
    }

    /// Receives a comment line of the trace.
    fn comment(&mut self, text: &str) {
        let _ = text;
    }

    /// Receives the user metadata of the trace.
    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        let _ = user_metadata;
    }
}

/// An observer that stops after a given event by returning [`Error::Stopped`]. The heap then contains the objects live
/// at that event.
///
/// # Examples
///
/// ```
/// use hatf_lab::{HeapTracker, Until};
/// use hatf_trace::{Event, EventSink};
///
/// let mut tracker = HeapTracker::new(Until::new(2));
/// let events = [Event::malloc(0x1000, 24), Event::malloc(0x2000, 100), Event::free(0x1000)];
/// let stopped = events.iter().try_for_each(|event| tracker.event(event));
/// assert_eq!((stopped.is_err(), tracker.observer().reached()), (true, true));
/// assert_eq!(tracker.heap().objects.live_bytes(), 124);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Until {
    tick: u64,
    time: u64,
    reached: bool,
}

impl Until {
    /// Creates an observer that stops after event `tick`.
    #[must_use]
    pub fn new(tick: u64) -> Self {
        Self { tick, time: 0, reached: false }
    }

    /// Returns the latest timestamp up to the event.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Returns whether the event was reached.
    #[must_use]
    pub fn reached(&self) -> bool {
        self.reached
    }
}

impl Observer for Until {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.time = self.time.max(event.time);
        self.reached = event.tick >= self.tick;
        if self.reached { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// An observer that ignores everything.
impl Observer for () {}

impl<F: FnMut(&ObjectEvent) -> Result<()>> Observer for F {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self(event)
    }
}

impl<O: Observer> Observer for Option<O> {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.as_mut().map_or(Ok(()), |observer| observer.event(event))
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> Result<()> {
        self.as_mut().map_or(Ok(()), |observer| observer.record(record, heap))
    }

    fn sampled(&mut self, mean: u64) {
        self.iter_mut().for_each(|observer| observer.sampled(mean));
    }

    fn comment(&mut self, text: &str) {
        self.iter_mut().for_each(|observer| observer.comment(text));
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.iter_mut().for_each(|observer| observer.user_metadata(user_metadata));
    }
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.0.event(event)?;
        self.1.event(event)
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> Result<()> {
        self.0.record(record, heap)?;
        self.1.record(record, heap)
    }

    fn sampled(&mut self, mean: u64) {
        self.0.sampled(mean);
        self.1.sampled(mean);
    }

    fn comment(&mut self, text: &str) {
        self.0.comment(text);
        self.1.comment(text);
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.0.user_metadata(user_metadata);
        self.1.user_metadata(user_metadata);
    }
}
