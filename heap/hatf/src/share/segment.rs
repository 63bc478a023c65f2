//! The live state with which the next segment of a recording begins.

use hatf_lab::HeapTracker;
use hatf_trace::Result;
use hatf_trace::event::{Event, EventSink, UserMetadata};

use super::carried::{Carried, Restored};

/// A sink that follows the live state of a recording whose trace consists of segments. Memory is bounded by the live
/// state and by the distinct stacks of the current segment.
///
/// # Examples
///
/// ```
/// use hatf::share::LiveState;
/// use hatf_trace::{Event, EventSink};
///
/// let mut state = LiveState::default();
/// for event in [Event::malloc(0x1000, 24), Event::malloc(0x2000, 8), Event::free(0x1000)] {
///     state.event(&event)?;
/// }
/// let start = state.start_segment()?;
/// assert_eq!((start.blocks(), start.bytes()), (1, 8));
/// # Ok::<(), hatf_trace::Error>(())
/// ```
pub struct LiveState {
    tracker: Box<HeapTracker<Carried>>,
    user_metadata: UserMetadata,
}

/// The records that restore the live state at the start of a segment.
pub struct SegmentStart(Restored);

impl Default for LiveState {
    fn default() -> Self {
        Self { tracker: tracker(), user_metadata: UserMetadata::new() }
    }
}

fn tracker() -> Box<HeapTracker<Carried>> {
    Box::new(HeapTracker::new(Carried::default()).with_sizes_only())
}

impl LiveState {
    /// Starts a segment and returns the records that restore the state. From then on, the state is that of a reader who
    /// has read only these records, and the heaps of later events must be lower by [`SegmentStart::heaps`].
    ///
    /// # Errors
    /// Returns an error if the state is inconsistent.
    pub fn start_segment(&mut self) -> Result<SegmentStart> {
        let (heap, carried) = std::mem::replace(&mut self.tracker, tracker()).into_parts();
        let start = SegmentStart(carried.restored(heap));
        self.tracker.user_metadata(&self.user_metadata)?;
        start.give(&mut *self.tracker)?;
        Ok(start)
    }
}

impl EventSink for LiveState {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.tracker.event(event)
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.user_metadata.extend(user_metadata.clone());
        self.tracker.user_metadata(user_metadata)
    }
}

impl SegmentStart {
    /// Passes the records to a sink.
    ///
    /// # Errors
    /// Returns an error if the sink failed.
    pub fn give(&self, sink: &mut dyn EventSink) -> Result<()> {
        self.0.give(sink)
    }

    /// Returns the number of records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.0.amount().records
    }

    /// Returns the number of live blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.0.amount().blocks
    }

    /// Returns the total size of the live blocks in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.amount().bytes
    }

    /// Returns the number of heaps of programs that ended before this segment.
    #[must_use]
    pub fn heaps(&self) -> u64 {
        self.0.amount().heaps
    }
}
