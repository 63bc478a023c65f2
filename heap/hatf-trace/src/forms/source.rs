//! An open trace of any format.

use std::path::Path;

use super::{OpenOptions, open};
use crate::Result;
use crate::event::{EventSink, EventSource, Item, UserMetadata, copy};
use crate::loss::Losses;
use crate::pipeline::EventFeed;

/// A reader of a trace of any format.
///
/// # Examples
///
/// [`open`] and [`read`](super::read) return a `TraceReader`. Any other source can be wrapped in one:
///
/// ```
/// use hatf_trace::forms::{RawSink, RawSource, TraceReader};
///
/// let raw: Vec<u8> = [1_u64, 24, 0x1000, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
/// let mut trace = TraceReader::new(RawSource::<_, 32>::new(std::io::Cursor::new(raw)));
/// let mut sink = RawSink::<_, 64>::new(Vec::new());
/// assert!(trace.give(&mut sink)?.is_empty());
/// assert_eq!(sink.records(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TraceReader(Box<dyn Source>);

/// An [`EventSource`] of unknown type. Each method passes all events, so it is called dynamically only once per trace,
/// and each source has its own loop for each kind of sink.
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
    /// Creates a reader from a source.
    pub fn new(source: impl EventSource + 'static) -> Self {
        Self(Box::new(source))
    }

    /// Opens a trace with default options, like [`open`].
    ///
    /// # Errors
    /// As for [`open`].
    pub fn open(path: &Path) -> Result<Self> {
        open(path, &OpenOptions::default())
    }

    /// Passes all remaining events to a sink. Returns counts of the trace data that events cannot represent.
    ///
    /// # Errors
    /// The trace is corrupt, or the sink failed.
    pub fn give(&mut self, sink: &mut dyn EventSink) -> Result<Losses> {
        self.0.give(sink).map(|()| self.0.losses())
    }

    /// Passes all remaining events to a sink in another thread, like [`give`](Self::give).
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
