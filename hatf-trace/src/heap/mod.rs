//! Traces of `dtds/heap.dtd`: a sink that writes one, and a source that reads one.

mod decode;
mod read;
mod write;

pub(crate) use decode::{Decoded, decode, from_fields};
pub use read::HeapReader;
pub use write::{GROUP_RECORDS, HeapOptions, HeapWriter};

use crate::Error;

/// The generated code of `dtds/heap.dtd`.
pub(crate) mod format {
    include!(concat!(env!("OUT_DIR"), "/heap.rs"));
}

/// The version of the format: of the DTD, and of the user metadata that its head describes.
pub const VERSION: u64 = 1;

/// Frames of stacks that a reader or a writer keeps at most: 64 MiB of them. A writer that has met more writes a stack again which it
/// does not know any more.
const MOST_FRAMES: usize = if cfg!(test) { 1 << 10 } else { 1 << 23 };

/// Converts an error of the runtime, with the DTD's names for its numbers.
fn failed(error: metatf::Error) -> Error {
    Error::Trace(metatf::explain(&format::FORMAT, &error).to_string().into())
}
