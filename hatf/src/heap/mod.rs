//! Traces of `dtds/heap.dtd`: a sink that writes one, and a source that reads one.

mod read;
mod write;

pub use read::HeapReader;
pub use write::{GROUP_RECORDS, HeapOptions, HeapWriter};

use crate::Error;

/// What the build script made of `dtds/heap.dtd`.
pub(crate) mod format {
    include!(concat!(env!("OUT_DIR"), "/heap.rs"));
}

/// The version of the format: of the DTD, and of what its head says about user metadata.
pub const VERSION: u64 = 1;

/// The runtime's error, with the DTD's names put to its numbers.
fn failed(error: metatf::Error) -> Error {
    Error::Trace(metatf::explain(&format::FORMAT, &error).to_string().into())
}
