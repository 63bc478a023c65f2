//! Heap profiles: files of `dtds/heapprof.dtd`, and LLVM's raw profiles as another source of them.
//!
//! `hatf_lab::profile` makes the heap info blocks of a trace.

mod collect;
mod heap_profile;
mod json;
mod raw;
mod read;
#[cfg(test)]
mod tests;
mod text;
mod write;

pub use collect::Collect;
pub use heap_profile::{HeapProfile, ProfileContext, merge};
pub use json::profile_json;
pub use raw::{RawProfiles, import};
pub use read::read_profile;
pub use text::{ProfileTable, advice_text, profile_text};
pub use write::{ProfileWriter, write_profile};

/// The generated code of `dtds/heapprof.dtd`.
mod format {
    include!(concat!(env!("OUT_DIR"), "/heapprof.rs"));
}
