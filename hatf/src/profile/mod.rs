//! Heap profiles: files of `dtds/heapprof.dtd`, and LLVM's raw profiles as another source of them, and its YAML
//! form as another form.
//!
//! `hatf_lab::profile` makes the heap info blocks of a trace.

mod collect;
mod heap_profile;
mod memprof;
mod names;
mod raw;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use collect::Collect;
pub use heap_profile::{HeapProfile, ProfileContext, merge};
pub use memprof::{CompilerFrames, Memprof};
pub use names::name_frames;
pub use raw::import;
pub use read::read_profile;
pub use write::{ProfileWriter, write_profile};

/// The generated code of `dtds/heapprof.dtd`.
mod format {
    include!(concat!(env!("OUT_DIR"), "/heapprof.rs"));
}
