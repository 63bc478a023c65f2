//! Extraction of a part of a trace by record numbers. The live state at the beginning of the part is carried over.

use hatf_lab::HeapTracker;
use serde::Serialize;
use serde_json::json;

use super::carried::{Amount, Carried};
use hatf_trace::event::{Event, EventSink, UserMetadata};
use hatf_trace::{Error, Result};

/// A range of records, numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Records {
    /// The first record.
    pub first: u64,
    /// The last record, or `None` for the last record of the trace.
    pub last: Option<u64>,
}

/// The content of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CutCounts {
    /// The number of records from the trace.
    pub records: u64,
    /// The number of records inserted before the records from the trace. They restore the state at the beginning of the
    /// part: blocks, modules, symbols, threads, phases, and pages.
    pub carried_records: u64,
    /// The number of live blocks among the inserted records.
    pub carried_blocks: u64,
    /// The total size of the inserted blocks in bytes.
    pub carried_bytes: u64,
}

/// A sink that forwards part of a trace.
pub struct Cut<'s> {
    records: Records,
    /// The tracker of the heap up to the first record.
    before: Option<Box<HeapTracker<Carried>>>,
    sink: &'s mut dyn EventSink,
    user_metadata: UserMetadata,
    seen: u64,
    /// The number of heaps of programs that ended before the part.
    heaps: u64,
    is_over: bool,
    counts: CutCounts,
}

impl<'s> Cut<'s> {
    /// Creates a cut that forwards to this sink.
    pub fn new(records: Records, sink: &'s mut dyn EventSink) -> Self {
        let before = HeapTracker::new(Carried::default()).with_sizes_only();
        Self {
            records,
            before: Some(Box::new(before)),
            sink,
            user_metadata: UserMetadata::new(),
            seen: 0,
            heaps: 0,
            is_over: false,
            counts: CutCounts::default(),
        }
    }

    /// Returns whether the last record of the part was forwarded. If so, this sink returned an error only to stop the
    /// reader.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the counts of the part.
    ///
    /// # Errors
    /// Returns an error if the trace does not contain the first record of the part, or the sink failed.
    pub fn finish(mut self) -> Result<CutCounts> {
        let (first, seen) = (self.records.first, self.seen);
        if first > seen.max(1) && self.records.last.is_none_or(|last| last >= first) {
            return Err(Error::Usage(format!("the trace has {seen} records: record {first} does not exist")));
        }
        self.begin()?;
        Ok(self.counts)
    }

    /// Writes the state at the beginning of the part.
    #[cold]
    fn begin(&mut self) -> Result<()> {
        let Some(before) = self.before.take() else { return Ok(()) };
        let (heap, carried) = before.into_parts();
        let restored = carried.restored(heap);
        restored.give(self.sink)?;
        let Amount { blocks, bytes, records, heaps } = restored.amount();
        self.heaps = heaps;
        self.counts =
            CutCounts { carried_records: records, carried_blocks: blocks, carried_bytes: bytes, ..self.counts };
        let Records { first, last } = self.records;
        let to = last.map_or_else(|| "the end".to_owned(), |last| format!("record {last}"));
        let comment = format!(
            "hatf cut: the records above restore the state at the beginning of the part, with {blocks} live blocks of {bytes} bytes; the records from {first} to {to} follow"
        );
        self.sink.comment(comment.as_bytes())?;
        let mut user_metadata = self.user_metadata.clone();
        user_metadata.insert(
            "cut".to_owned(),
            json!({"first_record": first, "last_record": last, "carried_records": records, "carried_blocks": blocks, "carried_bytes": bytes}),
        );
        self.sink.user_metadata(&user_metadata)
    }

    /// Stops reading by returning an error.
    #[cold]
    fn end(&mut self) -> Result<()> {
        self.begin()?;
        self.is_over = true;
        Err(hatf_lab::Error::Stopped.into())
    }
}

impl EventSink for Cut<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.seen += 1;
        if self.records.last.is_some_and(|last| self.seen > last) {
            return self.end();
        }
        if self.seen < self.records.first {
            return self.before.as_mut().map_or(Ok(()), |before| before.event(event));
        }
        if self.before.is_some() {
            self.begin()?;
        }
        self.counts.records += 1;
        self.sink.event(&Event { heap: event.heap.saturating_sub(self.heaps), ..*event })
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        if self.before.is_some() && self.records.first > 1 { Ok(()) } else { self.sink.comment(text) }
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        if self.seen > 0 || !self.user_metadata.is_empty() {
            return Ok(());
        }
        self.user_metadata.clone_from(user_metadata);
        // Remove the number of events, because it counts all events of the input trace.
        self.user_metadata.remove("events");
        if let Some(before) = &mut self.before {
            before.user_metadata(user_metadata)?;
        }
        self.sink.user_metadata(&self.user_metadata)
    }
}
