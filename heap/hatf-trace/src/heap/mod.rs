//! Traces of `dtds/heap.dtd`: a sink that writes them and a source that reads them.
//!
//! # Examples
//!
//! ```
//! use hatf_trace::heap::{HeapOptions, HeapReader, HeapWriter};
//! use hatf_trace::{Event, EventSink, EventSource, Item};
//! use metatf::container::Reader;
//!
//! let mut trace: Vec<u8> = Vec::new();
//! let mut writer = HeapWriter::new(&mut trace, &HeapOptions::default())?;
//! writer.event(&Event::malloc(0x1000, 24))?;
//! writer.event(&Event { time: 5_000, ..Event::free(0x1000) })?;
//! assert!(writer.finish()?.is_empty());
//!
//! let mut reader = HeapReader::of(Reader::from_slice(&trace)?)?;
//! assert_eq!(reader.next()?, Some(Item::Event(Event::malloc(0x1000, 24))));
//! assert_eq!(reader.next()?, Some(Item::Event(Event { time: 5_000, ..Event::free(0x1000) })));
//! assert_eq!(reader.next()?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decode;
mod read;
mod write;

pub(crate) use decode::{Decoded, decode, from_fields};
pub use read::HeapReader;
pub use write::{GROUP_RECORDS, HeapOptions, HeapWriter};

use crate::Error;

/// Code generated from `dtds/heap.dtd`.
pub(crate) mod format {
    include!(concat!(env!("OUT_DIR"), "/heap.rs"));
}

/// The version of the format, which covers the DTD and the user metadata described in its head.
pub const VERSION: u64 = 1;

/// Maximum number of stack frames that a reader or a writer remembers, which occupy 64 MiB. A writer that exceeds this
/// number forgets its stacks and writes them again when they recur.
const MOST_FRAMES: usize = if cfg!(test) { 1 << 10 } else { 1 << 23 };

/// Converts a runtime error.
fn failed(error: metatf::Error) -> Error {
    Error::in_trace(&format::FORMAT, &error)
}
