//! The results of pairing: finished spans and events.

use super::kinds::Origin;
use super::tree::Node;
use super::values::Values;
use std::sync::Arc;

/// A finished span, an event, or other information found in a trace.
#[derive(Debug)]
pub enum Found {
    /// A span that has ended.
    Span(Span),
    /// A span whose end is missing from the trace. Such a span counts as open until its number is reused, the enclosing
    /// span ends, or the trace ends. Its end time is set to its start time.
    Open(Span),
    /// A period that a thread spent in a numbered span.
    Part(Span),
    /// A record that is not part of a span.
    Event(Instant),
    /// One end of an arrow between two spans.
    Flow {
        /// The number of the arrow.
        number: u64,
        /// Whether this is the start of the arrow.
        is_first: bool,
        /// The process.
        process: u64,
        /// The thread.
        thread: u64,
        /// The time in nanoseconds.
        time: u64,
    },
    /// The name of a thread.
    Thread {
        /// The process.
        process: u64,
        /// The thread.
        thread: u64,
        /// The name.
        name: String,
    },
}

/// A span.
#[derive(Debug)]
pub struct Span {
    /// The name: the string that the record refers to, or the name in the DTD.
    pub name: Arc<str>,
    /// The origin in the program.
    pub origin: Option<Arc<Origin>>,
    /// The start time in nanoseconds.
    pub begin: u64,
    /// The end time in nanoseconds.
    pub end: u64,
    /// The process; 1 if the DTD does not identify processes.
    pub process: u64,
    /// The thread that began the span or, if threads enter the span, the last thread that entered it.
    pub thread: u64,
    /// The span's number, if spans are numbered. Numbers may be reused.
    pub number: Option<u64>,
    /// The kind of span, if each kind is numbered separately.
    pub kind: Option<Arc<str>>,
    /// The number of the span's first record, as passed to [`take`](super::Pairs::take).
    pub record: u64,
    /// The enclosing span.
    pub above: Option<Above>,
    /// The nanoseconds that threads spent in the span, if any thread entered it.
    pub busy: Option<u64>,
    /// The nanoseconds in which no direct child span was open.
    pub own: u64,
    /// The span's line in the [tree](super::Pairs::tree).
    pub node: Node,
    /// The values of the fields: first the values of the first record, then values added later, then the values of the
    /// last record.
    pub values: Values,
    /// The enclosing spans, outermost first, if requested.
    pub around: Vec<Around>,
}

/// A record that is not part of a span.
#[derive(Debug)]
pub struct Instant {
    /// The name.
    pub name: Arc<str>,
    /// The origin in the program.
    pub origin: Option<Arc<Origin>>,
    /// The time in nanoseconds.
    pub time: u64,
    /// The process; 1 if the DTD does not identify processes.
    pub process: u64,
    /// The thread.
    pub thread: u64,
    /// The number of the record.
    pub record: u64,
    /// The enclosing span.
    pub above: Option<Above>,
    /// The values of the fields.
    pub values: Values,
    /// Whether records of this kind are followed by records with values.
    pub is_event: bool,
    /// The enclosing spans, outermost first, if requested.
    pub around: Vec<Around>,
}

/// The span that encloses a span or an event.
#[derive(Clone, Debug)]
pub struct Above {
    /// The span's number, if spans are numbered.
    pub number: Option<u64>,
    /// The number of the span's first record, and the span's name; `None` if the span was not open.
    pub begun: Option<(u64, Arc<str>)>,
}

/// An enclosing span with its values.
#[derive(Clone, Debug)]
pub struct Around {
    /// The name.
    pub name: Arc<str>,
    /// The values of the fields so far.
    pub values: Values,
}

impl Span {
    /// Returns the duration.
    #[must_use]
    pub fn nanoseconds(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}
