//! What pairing finds: spans that ended, and what was at a moment.

use super::kinds::Origin;
use super::tree::Node;
use super::values::Values;
use std::sync::Arc;

/// What came to an end, or what was at a moment.
#[derive(Debug)]
pub enum Found {
    /// A span that has ended.
    Span(Span),
    /// A span whose end is not in the trace: its number came again, what was around it ended, or the trace did. It ends where it begins.
    Open(Span),
    /// A thread's time in a span that has a number.
    Part(Span),
    /// A record that is not part of a span.
    Event(Instant),
    /// One end of an arrow between two spans.
    Flow {
        /// The number of the arrow.
        number: u64,
        /// It is the first end.
        is_first: bool,
        /// The process.
        process: u64,
        /// The thread.
        thread: u64,
        /// Nanoseconds.
        time: u64,
    },
    /// A thread has this name.
    Thread {
        /// The process.
        process: u64,
        /// The thread.
        thread: u64,
        /// Its name.
        name: String,
    },
}

/// A span.
#[derive(Debug)]
pub struct Span {
    /// What it is called: the string that it names, or what the DTD calls it.
    pub name: Arc<str>,
    /// Where in the program it comes from.
    pub origin: Option<Arc<Origin>>,
    /// When it began, in nanoseconds.
    pub begin: u64,
    /// When it ended, in nanoseconds.
    pub end: u64,
    /// The process; 1 where the DTD tells none apart.
    pub process: u64,
    /// The thread that began it, or was in it last.
    pub thread: u64,
    /// Its number, if spans have some. Numbers may come again.
    pub number: Option<u64>,
    /// The kind of span that the number counts, if each kind is numbered separately.
    pub kind: Option<Arc<str>>,
    /// The number of the record that it began with, as it was [taken](super::Pairs::take).
    pub record: u64,
    /// The span that it lies in.
    pub above: Option<Above>,
    /// The nanoseconds in which a thread was in it, if it was ever entered.
    pub busy: Option<u64>,
    /// Those in which no span right below it was open.
    pub own: u64,
    /// Its line in the [tree](super::Pairs::tree).
    pub node: Node,
    /// The values of its fields: those of its first record, those added to it, and those of its last record.
    pub values: Values,
    /// The spans around it, the outermost first, if they are wanted.
    pub around: Vec<Around>,
}

/// A record that is not part of a span.
#[derive(Debug)]
pub struct Instant {
    /// What it is called.
    pub name: Arc<str>,
    /// Where in the program it comes from.
    pub origin: Option<Arc<Origin>>,
    /// When it was, in nanoseconds.
    pub time: u64,
    /// The process; 1 where the DTD tells none apart.
    pub process: u64,
    /// The thread.
    pub thread: u64,
    /// The number of the record.
    pub record: u64,
    /// The span that it lies in.
    pub above: Option<Above>,
    /// The values of its fields.
    pub values: Values,
    /// It is of the kind that has values behind it.
    pub is_event: bool,
    /// The spans around it, the outermost first, if they are wanted.
    pub around: Vec<Around>,
}

/// The span that something lies in.
#[derive(Clone, Debug)]
pub struct Above {
    /// Its number, if spans have some.
    pub number: Option<u64>,
    /// The number of the record that it began with, and its name; `None`: it was not open.
    pub begun: Option<(u64, Arc<str>)>,
}

/// A span around something.
#[derive(Clone, Debug)]
pub struct Around {
    /// What it is called.
    pub name: Arc<str>,
    /// The values of its fields so far.
    pub values: Values,
}

impl Span {
    /// Returns how long it took.
    #[must_use]
    pub fn nanoseconds(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}
