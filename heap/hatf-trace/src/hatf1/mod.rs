//! HATF 1.0 in its native format (spec 6, appendix A of the paper): a big-endian stream of records with its own
//! metadata and without a header. It is not Meta-TF; `dtds/HATF10.dtd` defines the same records in Meta-TF.
//!
//! [`Reader`] reads any byte stream and buffers at most a few records. [`Writer`] begins in the format's start state
//! and writes metadata whenever a value does not fit into its field.
//!
//! # Examples
//!
//! ```
//! use hatf_trace::hatf1::{Item, Kind, Reader, Record, Writer};
//!
//! let alloc = Record { size: 24, address: 0x1000, ..Record::new(Kind::Alloc) };
//! let mut writer = Writer::new(Vec::new());
//! writer.comment(b"grep")?;
//! writer.record(&alloc)?;
//! let stream = writer.finish()?;
//!
//! let mut reader = Reader::new(&stream[..]);
//! assert_eq!(reader.next()?, Some(Item::Comment(b"grep")));
//! assert_eq!(reader.next()?, Some(Item::Record(alloc)));
//! assert_eq!(reader.next()?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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

/// The kind of a record; the discriminant is its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A block of `size` bytes was allocated at `address`.
    Alloc = 0,
    /// The block at `address` was freed.
    Free = 1,
    /// A realloc resized the block in place.
    ReallocNoAlloc = 2,
    /// A realloc moved the block.
    ReallocAllocFree = 3,
    /// A realloc without an old block allocated a block.
    ReallocAlloc = 4,
    /// A realloc to size 0 freed the block.
    ReallocFree = 5,
    /// A heap was created.
    CreateHeap = 6,
    /// A heap was destroyed.
    DestroyHeap = 7,
    /// A thread started.
    CreateThread = 8,
    /// A thread ended.
    DestroyThread = 9,
}

impl Kind {
    /// All kinds, by tag.
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

    /// Returns the name of the record in the specification.
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

    /// Returns the numbers that follow the tag, in order. The attributes follow the numbers.
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

    /// Returns whether the record is one of the four reallocs.
    #[must_use]
    pub fn is_realloc(self) -> bool {
        matches!(self, Self::ReallocNoAlloc | Self::ReallocAllocFree | Self::ReallocAlloc | Self::ReallocFree)
    }
}

/// A number in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The number in [`Record::size`].
    Size,
    /// The number in [`Record::old_address`].
    OldAddress,
    /// The number in [`Record::address`].
    Address,
    /// The number in [`Record::thread`].
    Thread,
    /// The number in [`Record::heap`].
    Heap,
    /// The number in [`Record::time`].
    Time,
}

impl Part {
    /// Returns the field that determines the width and interpretation of this number.
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

/// A record. Numbers that records of its kind do not contain are 0.
///
/// # Examples
///
/// ```
/// use hatf_trace::hatf1::{Kind, Record};
///
/// let kind = Kind::ReallocAllocFree;
/// let moved = Record { size: 100, old_address: 0x1000, address: 0x2000, thread: 1, ..Record::new(kind) };
/// // The numbers in the order in which the stream contains them.
/// let numbers: Vec<_> = kind.numbers().iter().map(|part| moved.number(*part)).collect();
/// assert_eq!(numbers, [100, 0x1000, 0x2000, 1, 0, 0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The kind of the record.
    pub kind: Kind,
    /// The requested size in bytes.
    pub size: u64,
    /// The old address of the block, for reallocs only.
    pub old_address: u64,
    /// The address of the block; for reallocs, the new address.
    pub address: u64,
    /// The thread.
    pub thread: u64,
    /// The heap.
    pub heap: u64,
    /// The time; the format does not define its unit.
    pub time: u64,
    /// Additional data about the event.
    pub attributes: &'a [u8],
}

impl Record<'_> {
    /// Returns a record with all numbers 0 and no attributes.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self { kind, size: 0, old_address: 0, address: 0, thread: 0, heap: 0, time: 0, attributes: &[] }
    }

    /// Returns one of the record's numbers.
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

    /// Returns a mutable reference to one of the record's numbers.
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
    /// The bytes of a comment.
    Comment(&'a [u8]),
    /// A metadata record, which the reader has already applied.
    Metadata(Field, Change),
}

/// The tag of a comment.
const COMMENT: u8 = 10;
/// The tag of a metadata record.
const METADATA: u8 = 11;

#[cfg(test)]
mod tests;
