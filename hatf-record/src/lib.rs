//! The preloaded recorder of heap events, and the spool it shares with `hatf record`.
//!
//! Two sides use this crate. `hatf record` makes a [`Spool`] in a file that both map, and starts a program with
//! the shared object of this crate preloaded. The shared object (feature `preload`) stands in front of `malloc` and its family in
//! that program, calls the real functions, and writes an event for each call into a chunk that its thread has for itself (by a
//! [`Producer`]). `hatf` reads the chunks of each thread by a [`Stream`].
//!
//! Events are stamped by a [`Clock`] that all threads see alike: a call that frees is stamped and written
//! before the real function runs, a call that allocates after it returned. So whatever the threads do, the end of a block is
//! written before its address can be given out again, and has the earlier stamp. `realloc` does
//! both, and is two events where a second thread exists: see [`Kind::ReallocBegin`].
//!
//! Nothing here allocates, takes a lock or waits, except where the spool is full.
// The shared object goes into other people's programs: it takes nothing along that it does not use.
// `panic = "abort"` marks that build; with the feature alone (as under `--all-features`) std stays.
#![cfg_attr(all(feature = "preload", panic = "abort"), no_std)]

#[cfg(any(test, feature = "preload"))]
mod arena;
mod clock;
mod conditions;
mod event;
mod layout;
pub mod linked;
mod local_atomic;
#[cfg(all(loom, test))]
mod models;
pub mod names;
mod producer;
mod reasons;
mod spool;
mod stack_table;
#[cfg(not(all(feature = "preload", panic = "abort")))]
mod stream;
mod sync;

pub use clock::{Clock, nanoseconds};
pub use conditions::Conditions;
pub use event::{
    About, Flags, Head, Kind, NUMBERS_MAX, PYTHON_FRAMES, SLOT_BYTES, SLOTS_MAX, Slot, SpoolEvent, TEXT_BYTES,
    TEXT_MAX, accesses_of_word, accesses_word, is_narrow, narrow, stamp_slot, text_slots,
};
pub use layout::{
    CHUNK_BYTES, CHUNK_HEAD_BYTES, CHUNK_SLOTS, CHUNKS_MAX, ChunkHead, EXITED, Header, KEEPER_GONE, MAGIC,
    PYTHON_UNKNOWN, VERSION,
};
pub use producer::{Owner, Producer};
pub use reasons::{Answer, NotFollowed, Stop, WhenFull};
pub use spool::{Chunk, Spool, bytes_for, offset_of};
pub use stack_table::{STACKS_MAGIC, StackTable, stacks_bytes, stacks_first_bytes, stacks_head};
#[cfg(not(all(feature = "preload", panic = "abort")))]
pub use stream::{Next, Plain, Stream};

/// The environment variable that holds the path of the first process's spool.
pub const SPOOL_VARIABLE: &str = "HATF_SPOOL";

#[cfg(feature = "hooks")]
mod preload;
#[cfg(feature = "allocator")]
pub use preload::allocator::recording::Recording;

#[cfg(all(feature = "preload", panic = "abort"))]
mod no_std;
