//! What lies in the shared memory: a page that begins with the header, then the slots.

use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::event::Words;

/// The first word of a ring.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HATFRING");
/// The version of this layout.
pub const VERSION: u32 = 1;
/// Where the slots begin.
pub(crate) const HEADER_BYTES: usize = 4096;
/// Bytes of a slot.
pub(crate) const SLOT_BYTES: u32 = 64;

/// Types of which another process may write any byte at any time: all bytes are in atomics, so that every bit pattern is a
/// value, and a concurrent write is no data race.
trait Shared {}
impl Shared for AtomicU32 {}
impl Shared for AtomicU64 {}
impl<T: Shared, const N: usize> Shared for [T; N] {}

/// Declares a type of the shared memory. A field that is not [`Shared`] does not compile; padding has to be a field.
macro_rules! shared {
    ($(#[$attribute:meta])* $visible:vis struct $name:ident ($bytes:literal bytes) {
        $($(#[$doc:meta])* $field_visible:vis $field:ident: $type:ty,)+
    }) => {
        $(#[$attribute])*
        #[repr(C)]
        #[derive(Debug, Default)]
        $visible struct $name {
            $($(#[$doc])* $field_visible $field: $type,)+
        }

        const _: () = {
            const fn check<T: Shared>() -> usize {
                size_of::<T>()
            }
            // The fields fill the type: the compiler has added no padding.
            assert!(0 $(+ check::<$type>())+ == size_of::<$name>() && size_of::<$name>() == $bytes);
        };
    };
}

shared! {
    /// The words before the slots. Groups that different sides write stand on cache lines of their own.
    pub struct Header (512 bytes) {
        pub(crate) magic: AtomicU64,
        pub(crate) version: AtomicU32,
        pub(crate) slot_bytes: AtomicU32,
        pub(crate) slots: AtomicU64,
        /// `CLOCK_MONOTONIC` in nanoseconds when recording began.
        pub start: AtomicU64,
        /// The process of `hatf record`.
        pub parent: AtomicU32,
        /// Not 0: nobody reads any more.
        pub closed: AtomicU32,
        _before_program: [AtomicU64; 11],
        /// The recorded process, 0 before it has loaded the recorder.
        pub process: AtomicU32,
        /// Program images that the recorded process loaded.
        pub images: AtomicU32,
        /// Processes that the recorded one forked.
        pub forks: AtomicU32,
        /// Other processes that loaded the recorder.
        pub other_processes: AtomicU32,
        /// The number the last thread got, less 1: the main thread needs no counting.
        pub threads: AtomicU32,
        _before_dropped: AtomicU32,
        /// Events that a producer had to drop.
        pub dropped: AtomicU64,
        /// Times that a producer found the ring full.
        pub waits: AtomicU64,
        _before_tail: [AtomicU64; 11],
        /// Tickets drawn so far.
        pub(crate) tail: AtomicU64,
        _before_head: [AtomicU64; 15],
        /// Tickets consumed so far.
        pub(crate) head: AtomicU64,
        /// Producers that wait because the ring is full.
        pub waiting: AtomicU32,
        /// The futex that they wait on: goes up when slots became free while somebody waited.
        pub wakeups: AtomicU32,
        _end: [AtomicU64; 14],
    }
}

shared! {
    /// One slot: its state, and the event.
    pub(crate) struct Slot (64 bytes) {
        pub(crate) state: AtomicU64,
        pub(crate) words: [AtomicU64; size_of::<Words>() / 8],
    }
}
