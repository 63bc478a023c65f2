//! What learns what happens to a heap.

use hatf_trace::Event;
use hatf_trace::event::UserMetadata;

use crate::heap::Heap;
use crate::objects::ObjectEvent;
use crate::{Error, Result};

/// Learns what happens in a trace, in order. Each default does nothing.
///
/// `Option`s and pairs of observers are observers, so that several of them share one pass over a trace.
/// An observer is asked for its result by reference, while events still come, or after the last.
pub trait Observer {
    /// Receives what happened to an object.
    ///
    /// # Errors
    /// No more should be given.
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let _ = event;
        Ok(())
    }

    /// Learns of a record of the trace, after the heap has followed it: of calls, threads, phases, pages, and what else there is.
    ///
    /// # Errors
    /// No more should be given.
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> Result<()> {
        let _ = (record, heap);
        Ok(())
    }

    /// Learns, before the first event, that objects are a sample: one of `s` bytes is in the trace with probability
    /// `1 - exp(-s / mean)`.
    fn sampled(&mut self, mean: u64) {
        let _ = mean;
    }

    /// Learns what the trace says about itself: what a line of it says.
    fn comment(&mut self, text: &str) {
        let _ = text;
    }

    /// Learns what the trace says about itself: what is in its metadata.
    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        let _ = user_metadata;
    }
}

/// Stops after an event, with [`Error::Stopped`]: the objects are then those that were live at it.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    tick: u64,
    time: u64,
    reached: bool,
}

impl Until {
    /// Stops after event `tick`.
    #[must_use]
    pub fn new(tick: u64) -> Self {
        Self { tick, time: 0, reached: false }
    }

    /// Returns the latest time up to it.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Returns whether there was such an event.
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

/// Learns nothing.
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
