//! HATF 1.0 in its native form (spec 6, the paper's appendix A): a stream of records without a header, big-endian, with
//! metadata of its own. It is not Meta-TF; the same records in Meta-TF are `dtds/HATF10.dtd`.
//!
//! [`Reader`] takes any byte stream and holds at most a few records of it. [`Writer`] begins with the format's start
//! state and writes the metadata that a value needs where it does not fit.

mod error;
mod field;
mod read;
mod state;
mod write;

pub use error::{Error, ErrorKind, Result};
pub use field::Field;
pub use read::Reader;
pub use state::{Change, Interpretation, Width};
pub use write::Writer;

/// The kind of a record; the number is its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A block of `size` bytes begins at `address`.
    Alloc = 0,
    /// The block at `address` ends.
    Free = 1,
    /// A realloc that changed the block where it is.
    ReallocNoAlloc = 2,
    /// A realloc that moved the block.
    ReallocAllocFree = 3,
    /// A realloc that allocated only: of no block.
    ReallocAlloc = 4,
    /// A realloc that freed only: to size 0.
    ReallocFree = 5,
    /// A heap begins.
    CreateHeap = 6,
    /// A heap ends.
    DestroyHeap = 7,
    /// A thread begins.
    CreateThread = 8,
    /// A thread ends.
    DestroyThread = 9,
}

impl Kind {
    /// All of them, by tag.
    pub const ALL: [Self; 10] = [
        Self::Alloc,
        Self::Free,
        Self::ReallocNoAlloc,
        Self::ReallocAllocFree,
        Self::ReallocAlloc,
        Self::ReallocFree,
        Self::CreateHeap,
        Self::DestroyHeap,
        Self::CreateThread,
        Self::DestroyThread,
    ];

    /// Returns the record's name in the specification.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::Free => "free",
            Self::ReallocNoAlloc => "realloc_no_alloc",
            Self::ReallocAllocFree => "realloc_alloc_free",
            Self::ReallocAlloc => "realloc_alloc",
            Self::ReallocFree => "realloc_free",
            Self::CreateHeap => "create_heap",
            Self::DestroyHeap => "destroy_heap",
            Self::CreateThread => "create_thread",
            Self::DestroyThread => "destroy_thread",
        }
    }

    /// Returns the numbers that follow the tag, in order; the attributes come behind them.
    #[must_use]
    pub fn numbers(self) -> &'static [Part] {
        use Part::{Address, Heap, OldAddress, Size, Thread, Time};
        match self {
            Self::Alloc => &[Size, Address, Thread, Heap, Time],
            Self::Free => &[Address, Thread, Heap, Time],
            Self::ReallocNoAlloc | Self::ReallocAllocFree | Self::ReallocAlloc | Self::ReallocFree => {
                &[Size, OldAddress, Address, Thread, Heap, Time]
            }
            Self::CreateHeap | Self::DestroyHeap => &[Heap, Thread, Time],
            Self::CreateThread | Self::DestroyThread => &[Thread, Time],
        }
    }

    /// Returns whether it is one of the four reallocs.
    #[must_use]
    pub fn is_realloc(self) -> bool {
        matches!(self, Self::ReallocNoAlloc | Self::ReallocAllocFree | Self::ReallocAlloc | Self::ReallocFree)
    }
}

/// A number in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// [`Record::size`].
    Size,
    /// [`Record::old_address`].
    OldAddress,
    /// [`Record::address`].
    Address,
    /// [`Record::thread`].
    Thread,
    /// [`Record::heap`].
    Heap,
    /// [`Record::time`].
    Time,
}

impl Part {
    /// Returns the field whose width and interpretation it has.
    #[must_use]
    pub fn field(self) -> Field {
        match self {
            Self::Size => Field::Size,
            Self::OldAddress | Self::Address => Field::Address,
            Self::Thread => Field::Thread,
            Self::Heap => Field::Heap,
            Self::Time => Field::Time,
        }
    }
}

/// A record. Numbers that its kind does not have are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Bytes asked for.
    pub size: u64,
    /// Where the block was; of reallocs.
    pub old_address: u64,
    /// Where the block is; of reallocs the new address.
    pub address: u64,
    /// Which thread.
    pub thread: u64,
    /// Which heap.
    pub heap: u64,
    /// When; the format gives it no unit.
    pub time: u64,
    /// More about it.
    pub attributes: &'a [u8],
}

impl Record<'_> {
    /// Makes a record with all numbers 0 and no attributes.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self { kind, size: 0, old_address: 0, address: 0, thread: 0, heap: 0, time: 0, attributes: &[] }
    }

    /// Returns one of its numbers.
    #[must_use]
    pub fn number(&self, part: Part) -> u64 {
        match part {
            Part::Size => self.size,
            Part::OldAddress => self.old_address,
            Part::Address => self.address,
            Part::Thread => self.thread,
            Part::Heap => self.heap,
            Part::Time => self.time,
        }
    }

    /// Returns one of its numbers, to be set.
    pub fn number_mut(&mut self, part: Part) -> &mut u64 {
        match part {
            Part::Size => &mut self.size,
            Part::OldAddress => &mut self.old_address,
            Part::Address => &mut self.address,
            Part::Thread => &mut self.thread,
            Part::Heap => &mut self.heap,
            Part::Time => &mut self.time,
        }
    }
}

/// An item of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A record.
    Record(Record<'a>),
    /// A comment's bytes.
    Comment(&'a [u8]),
    /// A metadata record, which the reader has applied.
    Metadata(Field, Change),
}

/// The tag of a comment.
const COMMENT: u8 = 10;
/// The tag of a metadata record.
const METADATA: u8 = 11;

#[cfg(test)]
mod tests;
