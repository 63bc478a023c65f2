//! Heap profiles in the format of `dtds/heapprof.dtd` and in the other [formats](PROFILES) that are read or written.
//!
//! `hatf_lab::profile` computes the heap info blocks of a trace.

mod collect;
mod dhat;
mod folded;
mod form;
mod forms;
mod heap_profile;
mod jemalloc;
mod massif;
mod memprof;
mod names;
mod pprof;
mod raw;
mod read;
mod speedscope;
#[cfg(test)]
mod tests;
mod valgrind_frame;
mod write;

pub use collect::Collect;
pub use form::{CreateProfile, OpenProfile, ProfileForm, ProfileOptions};
pub use forms::{PROFILES, is_profile, open_profiles};
pub use heap_profile::{HeapProfile, ProfileContext, merge};
pub use memprof::{CompilerFrame, CompilerFrames, Memprof};
pub use names::name_frames;
pub use pprof::read_pprof;
pub use raw::import;
pub use read::read_profile;
pub use write::{ProfileWriter, write_profile};

/// Code generated from `dtds/heapprof.dtd`.
mod format {
    include!(concat!(env!("OUT_DIR"), "/heapprof.rs"));
}
