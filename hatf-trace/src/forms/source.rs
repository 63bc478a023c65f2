//! A trace that is open, in whatever form.

use std::path::Path;

use super::{OpenOptions, open};
use crate::Result;
use crate::event::{EventSink, EventSource, Item, UserMetadata, copy};
use crate::loss::Losses;
use crate::pipeline::EventFeed;

/// Reads a trace of any form.
pub struct TraceReader(Box<dyn Source>);

/// An [`EventSource`] whose type is not known. It is called once for all events, so each source has loops of its own for both kinds of sinks.
trait Source: EventSource {
    fn give(&mut self, sink: &mut dyn EventSink) -> Result<()>;
    fn feed(&mut self, feed: &mut EventFeed) -> Result<()>;
}

impl<S: EventSource> Source for S {
    fn give(&mut self, sink: &mut dyn EventSink) -> Result<()> {
        copy(self, sink)
    }

    fn feed(&mut self, feed: &mut EventFeed) -> Result<()> {
        copy(self, feed)
    }
}

impl TraceReader {
    /// Reads from a source.
    pub fn new(source: impl EventSource + 'static) -> Self {
        Self(Box::new(source))
    }

    /// Opens a trace as [`open`] does by default.
    ///
    /// # Errors
    /// As for [`open`].
    pub fn open(path: &Path) -> Result<Self> {
        open(path, &OpenOptions::default())
    }

    /// Gives all that is left to a sink; returns what events could not hold of the trace.
    ///
    /// # Errors
    /// The trace is damaged; the sink's.
    pub fn give(&mut self, sink: &mut dyn EventSink) -> Result<Losses> {
        self.0.give(sink).map(|()| self.0.losses())
    }

    /// As [`give`](Self::give), for a sink in another thread.
    ///
    /// # Errors
    /// As for [`give`](Self::give).
    pub fn feed(&mut self, feed: &mut EventFeed) -> Result<Losses> {
        self.0.feed(feed).map(|()| self.0.losses())
    }
}

impl EventSource for TraceReader {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        self.0.next()
    }

    fn resolution(&self) -> u64 {
        self.0.resolution()
    }

    fn user_metadata(&self) -> UserMetadata {
        self.0.user_metadata()
    }

    fn losses(&self) -> Losses {
        self.0.losses()
    }
}
