//! The preloaded recorder of heap events, and the spool that it shares with `hatf record`.
//!
//! Two sides use this crate. `hatf record` creates a [`Spool`] in a file that both sides map, and starts a program with
//! this crate's shared object preloaded. The shared object (feature `preload`) interposes `malloc` and its family in
//! that program, calls the real functions, and writes an event for each call into a chunk that belongs to the calling
//! thread (using a [`Producer`]). `hatf` reads the chunks of each thread using a [`Stream`].
//!
//! Events are stamped by a [`Clock`] that is consistent across all threads. A freeing call is stamped and written
//! before the real function runs; an allocating call is stamped and written after the real function returns. Therefore
//! the end of a block is always written, with an earlier stamp, before its address can be reused, regardless of thread
//! scheduling. `realloc` does both and is written as two events if there is a second thread: see
//! [`Kind::ReallocBegin`].
//!
//! The recorder does not allocate, take a lock or wait, unless the spool is full.
//!
//! # Examples
//!
//! A thread writes an event, and a reader finds it:
//!
//! ```
//! use std::alloc::{Layout, alloc_zeroed};
//! use hatf_record::{CHUNK_BYTES, Clock, Kind, Next, Owner, Producer, Spool, SpoolEvent, Stream, bytes_for};
//!
//! let layout = Layout::from_size_align(bytes_for(1), CHUNK_BYTES)?;
//! // SAFETY: the memory is zeroed, has the required size and alignment, and is never freed.
//! let spool = unsafe { Spool::create(alloc_zeroed(layout), 1) };
//! assert!(spool.make_ready(0));
//! let chunk = spool.take().and_then(|number| spool.chunk(number)).ok_or("no chunk is ready")?;
//!
//! let (producer, stamp) = (Producer::new(), Clock::Monotonic.now());
//! producer.install(&chunk, Owner { thread: 1, process: 7, image: 1, task: 7 }, stamp, 0);
//! let event = SpoolEvent { size: 24, address: 0x1000, ..SpoolEvent::new(Kind::Malloc, 1, stamp) };
//! let (slots, used) = event.to_slots();
//! // SAFETY: the chunk stays mapped.
//! assert!(unsafe { producer.put_slots(stamp, &slots[..used]) });
//!
//! let mut stream = Stream::new(chunk, 1, stamp);
//! assert_eq!(stream.next(&mut Vec::new()), Next::Event(event));
//! assert_eq!(stream.next(&mut Vec::new()), Next::Nothing);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
// The shared object is loaded into other people's programs, so it must not contain anything unused. `panic = "abort"`
// identifies that build; with the feature alone (as under `--all-features`), std stays.
#![cfg_attr(all(feature = "preload", panic = "abort"), no_std)]

#[cfg(any(test, feature = "preload"))]
mod arena;
mod bell;
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

pub use bell::Work;
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

/// The environment variable that contains the path of the first process's spool.
pub const SPOOL_VARIABLE: &str = "HATF_SPOOL";

#[cfg(feature = "hooks")]
mod preload;
#[cfg(feature = "allocator")]
pub use preload::allocator::recording::Recording;

#[cfg(all(feature = "preload", panic = "abort"))]
mod no_std;
