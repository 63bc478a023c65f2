//! Heap profiles in the format of `dtds/heapprof.dtd` and in the other [formats](PROFILES) that are read or written.
//!
//! `hatf_lab::profile` computes the heap info blocks of a trace.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::profile::HeapInfo;
//! use hatf_lab::sites::Amount;
//! use hatf_view::profile::{HeapProfile, ProfileContext, ProfileForm, ProfileOptions};
//!
//! let infos = vec![HeapInfo::of_sums(1, Amount { blocks: 2, bytes: 128 }, None)];
//! let contexts = [(1, ProfileContext::Size { exponent: 6, thread: 1 })].into();
//! let profile = HeapProfile { contexts, infos, ..HeapProfile::default() };
//!
//! let create = ProfileForm::of("folded").and_then(|form| form.create).ok_or("not a writable format")?;
//! let mut text = Vec::new();
//! let written = create(&profile, &ProfileOptions::default(), &mut |_| (), &mut text)?;
//! assert_eq!((written, String::from_utf8(text)?.as_str()), (1, "up to 64 bytes, thread 1 128\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
