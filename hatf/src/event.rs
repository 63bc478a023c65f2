//! The records of HATF 1.0, as this crate's parts pass them to each other.

use crate::{Attributes, Result};

/// What a record says, but for the fields that nearly all share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A block of `size` bytes begins at `address`.
    Alloc {
        /// Bytes asked for.
        size: u64,
        /// Where the block begins.
        address: u64,
    },
    /// The block at `old` is now at `address`. The new size is in the attributes.
    Realloc {
        /// Where the block was.
        old: u64,
        /// Where it is.
        address: u64,
    },
    /// The block at `address` ends.
    Free {
        /// Where it began.
        address: u64,
    },
    /// A heap begins.
    CreateHeap,
    /// A heap ends, with all blocks in it.
    DestroyHeap,
    /// A thread begins.
    CreateThread,
    /// A thread ends.
    DestroyThread,
}

impl What {
    /// The record's name in `dtds/HATF10.dtd`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Alloc { .. } => "alloc",
            Self::Realloc { .. } => "realloc",
            Self::Free { .. } => "free",
            Self::CreateHeap => "createHeap",
            Self::DestroyHeap => "destroyHeap",
            Self::CreateThread => "createThread",
            Self::DestroyThread => "destroyThread",
        }
    }
}

/// A record. Fields that HATF 1.0 does not give a record (the time of `createHeap`) are 0 when it was
/// read from a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// What happened.
    pub what: What,
    /// Nanoseconds since recording began, for traces of this recorder.
    pub time: u64,
    /// Which thread did it, or which began or ended.
    pub thread: u64,
    /// In which heap.
    pub heap: u64,
    /// More about it.
    pub attributes: &'a [u8],
}

impl Record<'_> {
    /// The attributes as the recorder writes them.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes(self.attributes)
    }
}

/// What stands in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A record.
    Record(Record<'a>),
    /// A comment's bytes.
    Comment(&'a [u8]),
    /// What says how the trace is written: metadata, the start of a group.
    Other,
}

/// Takes records, in order.
pub trait EventSink {
    /// Takes a record.
    ///
    /// # Errors
    /// It could not be kept; no more should be given.
    fn record(&mut self, record: &Record<'_>) -> Result<()>;

    /// Takes a comment.
    ///
    /// # Errors
    /// As for [`EventSink::record`].
    fn comment(&mut self, text: &str) -> Result<()>;
}

/// Gives records, in order.
pub trait EventSource {
    /// What comes next, `None` at the end.
    ///
    /// # Errors
    /// The trace is damaged, or cannot be read; after an error nothing more comes.
    fn next(&mut self) -> Result<Option<Item<'_>>>;
}

/// Gives all of a source to a sink.
///
/// # Errors
/// The first of either side.
pub fn copy(source: &mut dyn EventSource, sink: &mut dyn EventSink) -> Result<()> {
    while let Some(item) = source.next()? {
        match item {
            Item::Record(record) => sink.record(&record)?,
            Item::Comment(text) => sink.comment(&String::from_utf8_lossy(text))?,
            Item::Other => {}
        }
    }
    Ok(())
}

/// Gives each record to two sinks.
pub struct Tee<'s>(pub &'s mut dyn EventSink, pub &'s mut dyn EventSink);

impl EventSink for Tee<'_> {
    fn record(&mut self, record: &Record<'_>) -> Result<()> {
        self.0.record(record)?;
        self.1.record(record)
    }

    fn comment(&mut self, text: &str) -> Result<()> {
        self.0.comment(text)?;
        self.1.comment(text)
    }
}
