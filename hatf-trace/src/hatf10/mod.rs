//! Traces of HATF 1.0 in Meta-TF, `dtds/HATF10.dtd`: a sink that writes one, and a source that reads one.
//!
//! HATF 1.0 has fewer calls than C. Values that its records have no field for go into their attributes, as text:
//!
//! | event | record | attributes |
//! | --- | --- | --- |
//! | malloc | alloc | none |
//! | calloc, memalign and the like | alloc | `calloc count=4`, `memalign align=64` |
//! | realloc, reallocarray | realloc (old, new) | `size=100`, `reallocarray count=4 size=100` |
//! | the same, of no block | alloc | `realloc` |
//! | the same, to size 0 and no block | free | `realloc` |
//! | a realloc whose old block another thread gets before it returns | free, and later alloc | `realloc begin`, `realloc end` |
//! | free | free | none |
//! | a call that failed, a mark, a phase, lost events | a comment | |
//! | a program image begins | createHeap, the image's number | `time=7 process=42 path=/bin/sh` |
//! | it ends, or execs another | destroyHeap | `exit=0 time=9`, `signal=9 ..`, `exec ..` |
//! | a thread begins, ends | createThread, destroyThread | `time=7 by=1`, `time=9` |
//!
//! The native form ([`crate::hatf1`]) has a size in reallocs, and times everywhere: there these attributes are left out.
//! Attributes of traces of other origin are passed on as they are.

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

/// The generated code of `dtds/HATF10.dtd`.
mod format {
    include!(concat!(env!("OUT_DIR"), "/hatf10.rs"));
}

/// The kind of a record of HATF 1.0, with the fields that not all records share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A block of `size` bytes begins at `address`.
    Alloc {
        /// Bytes asked for.
        size: u64,
        /// Where the block begins.
        address: u64,
    },
    /// The block at `old` is now at `address`. In the native form either may be 0.
    Realloc {
        /// Where the block was.
        old: u64,
        /// Where it is.
        address: u64,
        /// Bytes asked for. In Meta-TF it stands in the attributes.
        size: u64,
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

/// A record of HATF 1.0. Fields that Meta-TF's form does not give a record (the time of `createHeap`) are 0 when it was
/// read from such a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its kind.
    pub kind: RecordKind,
    /// Nanoseconds since recording began, for traces of this recorder.
    pub time: u64,
    /// Which thread did it, or which began or ended.
    pub thread: u64,
    /// In which heap.
    pub heap: u64,
    /// Text that belongs to it.
    pub attributes: &'a [u8],
}

/// The two forms of HATF 1.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `dtds/HATF10.dtd`.
    MetaTf,
    /// The native form.
    Native,
}

/// Converts an error of the runtime, with the DTD's names for its numbers.
fn failed(error: metatf::Error) -> Error {
    Error::Trace(metatf::explain(&format::FORMAT, &error).to_string().into())
}
