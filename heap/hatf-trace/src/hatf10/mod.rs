//! HATF 1.0 traces in Meta-TF (`dtds/HATF10.dtd`): a sink that writes them and a source that reads them.
//!
//! HATF 1.0 distinguishes fewer calls than C. Values without a field in its records are stored as text in the
//! attributes:
//!
//! | event | record | attributes |
//! | --- | --- | --- |
//! | malloc | alloc | none |
//! | calloc, memalign and the like | alloc | `calloc count=4`, `memalign align=64` |
//! | realloc, reallocarray | realloc (old, new) | `size=100`, `reallocarray count=4 size=100` |
//! | the same, without an old block | alloc | `realloc` |
//! | the same, to size 0 and without a new block | free | `realloc` |
//! | a realloc whose old block is reused by another thread before the realloc returns | free, and later alloc | `realloc begin`, `realloc end` |
//! | free | free | none |
//! | a call that failed, a mark, a phase, lost events | a comment | |
//! | a program image begins | createHeap, the image's number | `time=7 process=42 path=/bin/sh` |
//! | a program image ends or executes another program | destroyHeap | `exit=0 time=9`, `signal=9 ..`, `exec ..` |
//! | a thread begins or ends | createThread, destroyThread | `time=7 by=1`, `time=9` |
//!
//! The native format ([`crate::hatf1`]) stores the size of reallocs and the time of every record, so it omits these
//! attributes. Attributes of traces from other sources are passed on unchanged.
//!
//! # Examples
//!
//! ```
//! use hatf_trace::hatf10::{Hatf10Reader, Hatf10Writer};
//! use hatf_trace::{Event, EventSink, EventSource, Item};
//! use metatf::container::{Reader, WriteOptions};
//!
//! let mut trace: Vec<u8> = Vec::new();
//! let mut writer = Hatf10Writer::new(&mut trace, &WriteOptions::default())?;
//! writer.event(&Event::malloc(0x1000, 24))?;
//! writer.event(&Event::realloc(0x1000, 0x2000, 100))?;
//! assert!(writer.finish()?.is_empty());
//!
//! let mut reader = Hatf10Reader::of(Reader::from_slice(&trace)?)?;
//! assert_eq!(reader.next()?, Some(Item::Event(Event::malloc(0x1000, 24))));
//! assert_eq!(reader.next()?, Some(Item::Event(Event::realloc(0x1000, 0x2000, 100))));
//! assert_eq!(reader.next()?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attributes;
mod decode;
mod encode;
mod read;
mod write;

pub use attributes::Attributes;
pub use decode::{decode, is_exec};
pub use encode::{Encoded, Encoder};
pub use read::Hatf10Reader;
pub use write::Hatf10Writer;

use crate::Error;

/// Code generated from `dtds/HATF10.dtd`.
mod format {
    include!(concat!(env!("OUT_DIR"), "/hatf10.rs"));
}

/// The kind of a HATF 1.0 record, with the fields specific to that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A block of `size` bytes was allocated at `address`.
    Alloc {
        /// The requested size in bytes.
        size: u64,
        /// The address of the block.
        address: u64,
    },
    /// The block at `old` is now at `address`. In the native format, either may be 0.
    Realloc {
        /// The old address of the block.
        old: u64,
        /// The new address of the block.
        address: u64,
        /// The requested size in bytes. In Meta-TF, it is stored in the attributes.
        size: u64,
    },
    /// The block at `address` was freed.
    Free {
        /// The address of the block.
        address: u64,
    },
    /// A heap was created.
    CreateHeap,
    /// A heap was destroyed with all blocks in it.
    DestroyHeap,
    /// A thread started.
    CreateThread,
    /// A thread ended.
    DestroyThread,
}

/// A HATF 1.0 record. Fields that the Meta-TF version lacks, such as the time of `createHeap`, are 0 if the record was
/// read from a Meta-TF trace.
///
/// # Examples
///
/// In Meta-TF, the attributes of a realloc contain its size:
///
/// ```
/// use hatf_trace::Event;
/// use hatf_trace::event::UNKNOWN_SIZE;
/// use hatf_trace::hatf10::{Dialect, Record, RecordKind, decode};
///
/// let kind = RecordKind::Realloc { old: 0x1000, address: 0x2000, size: UNKNOWN_SIZE };
/// let record = Record { kind, time: 0, thread: 1, heap: 0, attributes: b"size=100" };
/// let event = decode(&record, Dialect::MetaTf, &mut Vec::new());
/// assert_eq!(event, Event::realloc(0x1000, 0x2000, 100));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The kind of the record.
    pub kind: RecordKind,
    /// Nanoseconds since recording began, for traces of this recorder.
    pub time: u64,
    /// The thread that caused the event, or that started or ended.
    pub thread: u64,
    /// The heap of the event.
    pub heap: u64,
    /// Additional text about the event.
    pub attributes: &'a [u8],
}

/// The two formats of HATF 1.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `dtds/HATF10.dtd`.
    MetaTf,
    /// The native format.
    Native,
}

/// Converts a runtime error.
fn failed(error: metatf::Error) -> Error {
    Error::in_trace(&format::FORMAT, &error)
}
