//! What lies in the shared file: a header, the states of the chunks, then the chunks.

use crate::sync::{AtomicU32, AtomicU64};

use crate::event::SLOT_BYTES;

/// The first word of a spool.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HATFSPOL");
/// The version of this layout.
pub const VERSION: u32 = 6;

/// Bytes of a chunk: events of one thread.
pub const CHUNK_BYTES: usize = CHUNK_BYTES_WORD as usize;
pub(crate) const CHUNK_BYTES_WORD: u32 = 32 * 1024;
/// Bytes at the beginning of a chunk that hold no events: its [`ChunkHead`], and room for a cursor that runs over the end of
/// the chunk before.
pub const CHUNK_HEAD_BYTES: usize = 512;
/// Slots of a chunk.
pub const CHUNK_SLOTS: usize = (CHUNK_BYTES - CHUNK_HEAD_BYTES) / SLOT_BYTES;
/// The most chunks that a spool may have: 64 GiB.
pub const CHUNKS_MAX: usize = 1 << 21;

/// Set beside a version of Python whose frames are not known.
pub const PYTHON_UNKNOWN: u32 = 1 << 16;

/// Added to the status with which a process ends.
pub const EXITED: u32 = 1 << 8;

/// Set in [`Header::keeper`] by the kernel where that thread has ended without more ado, as by a kill: `FUTEX_OWNER_DIED`.
pub const KEEPER_GONE: u32 = 1 << 30;

/// Types of which another process may write any byte at any time: all bytes are in atomics, so that every bit pattern is a
/// value, and a concurrent write is not a data race.
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
    /// What both sides share. Groups that different sides write stand on cache lines of their own.
    pub struct Header (512 bytes) {
        pub(crate) magic: AtomicU64,
        pub(crate) version: AtomicU32,
        pub(crate) chunk_bytes: AtomicU32,
        pub(crate) chunks: AtomicU64,
        /// `CLOCK_MONOTONIC` in nanoseconds when recording of the process began.
        pub start: AtomicU64,
        /// The process of `hatf record`; 0: there is none, and the process made its spool itself.
        pub recorder: AtomicU32,
        /// Not 0: nobody reads any more.
        pub closed: AtomicU32,
        /// The number of a [`crate::Clock`], by which events are stamped.
        pub clock: AtomicU32,
        /// The number of a [`crate::WhenFull`].
        pub when_full: AtomicU32,
        /// Milliseconds that a full spool may hold a thread up.
        pub patience: AtomicU64,
        /// In the first process's spool: how many others are recorded at once, at most.
        pub follow: AtomicU32,
        /// Chunks of each of their spools.
        pub follow_chunks: AtomicU32,
        /// The most frames of a stack; 0: there are no stacks.
        pub stack_depth: AtomicU32,
        /// Bits of [`crate::Conditions`] that every image of the process begins with.
        pub extras: AtomicU32,
        /// Of blocks one is recorded for this many bytes, on average; 0: all are.
        pub sample: AtomicU64,
        /// The bits of [`crate::Conditions`].
        pub(crate) conditions: AtomicU32,
        /// Not 0: recording is to be off.
        pub off: AtomicU32,
        /// The signal that turns recording off and on; 0: none.
        pub toggle_signal: AtomicU32,
        /// The signal that asks for a trace of what is kept; 0: none.
        pub dump_signal: AtomicU32,
        /// Where only the last part is kept: the stamp before which events are missing; 0: none are.
        pub horizon: AtomicU64,
        /// In a spool that the first process made itself: when that began, in the kernel's ticks since boot.
        pub began: AtomicU64,
        /// Events that the trace has for certain: those that were flushed.
        pub in_trace: AtomicU64,
        /// The stamp of the last of them.
        pub in_trace_until: AtomicU64,
        /// The recorded process, 0 before it has loaded the recorder.
        pub process: AtomicU32,
        /// Program images that the recorded process loaded.
        pub images: AtomicU32,
        /// Processes that the recorded one forked, or is about to fork.
        pub forks: AtomicU32,
        /// Other processes that loaded the recorder.
        pub other_processes: AtomicU32,
        /// The number the last thread got, less 1: the main thread needs no counting.
        pub threads: AtomicU32,
        /// Chunks, from the first, that the program has mapped, if those are not all.
        pub mapped: AtomicU32,
        /// Events that the program had to drop.
        pub dropped: AtomicU64,
        /// Times that a thread found no chunk.
        pub waits: AtomicU64,
        /// Program images that could not be recorded, though they loaded the recorder.
        pub refused: AtomicU32,
        /// The number of a [`crate::Stop`]: why recording ended before the program did.
        pub stopped: AtomicU32,
        /// The process that made this one, where that is not `hatf record`.
        pub parent: AtomicU32,
        /// The number of this process among those recorded; 0: the first, 1: the one recorded next, ...
        pub number: AtomicU32,
        /// The status with which the process ended, plus [`EXITED`]; 0 where it has not said so.
        pub exit: AtomicU32,
        /// In the first process's spool: further processes that were numbered.
        pub numbers: AtomicU32,
        /// In the first process's spool: further spools that were made.
        pub spools: AtomicU32,
        /// In the first process's spool: further processes that are recorded now.
        pub followed: AtomicU32,
        /// In the first process's spool: processes that could not be followed, or would have been too many.
        pub not_followed: AtomicU32,
        /// In the first process's spool: forked processes that are recorded or have found that they are not to be.
        pub answered: AtomicU32,
        /// Not 0: stacks were asked for, and there are none: no room for their table, or no way to find them.
        pub stackless: AtomicU32,
        /// How often the process asked for a trace of what is kept.
        pub dumps: AtomicU32,
        /// Of Python, where its frames were asked for: the major version and the minor, and [`PYTHON_UNKNOWN`] if they are not known; 0: there is none.
        pub python: AtomicU32,
        /// MiB that a process's table of stacks may take.
        pub stack_room: AtomicU32,
        /// Functions of an allocator in the program whose calls are recorded at their entries.
        pub linked: AtomicU32,
        /// Not 0: the process becomes another program, which has not loaded the recorder yet.
        pub becomes: AtomicU32,
        /// In the first process's spool: why processes could not be followed, as bits by the numbers of [`crate::NotFollowed`].
        pub not_followed_why: AtomicU32,
        _before_next: [AtomicU32; 5],
        /// Chunks looked at so far, by those who wanted one.
        pub(crate) next: AtomicU64,
        _before_ready: [AtomicU64; 15],
        /// Chunks that are ready.
        pub(crate) ready: AtomicU32,
        /// Threads that wait because none is.
        pub waiting: AtomicU32,
        /// The futex that they wait on: goes up when chunks became ready while somebody waited.
        pub wakeups: AtomicU32,
        /// The thread of `hatf record` that makes chunks ready, and [`KEEPER_GONE`] if it is gone: the kernel says so. 0: no thread yet, or no longer.
        pub keeper: AtomicU32,
        _end: [AtomicU64; 14],
    }
}

shared! {
    /// The beginning of a chunk. Zero until a thread has it.
    pub struct ChunkHead (64 bytes) {
        /// The thread, and above it the number of the chunk among the thread's, from 0. Written last.
        pub owner: AtomicU64,
        /// A stamp before the first event.
        pub stamp: AtomicU64,
        /// `CLOCK_MONOTONIC` in nanoseconds at that stamp.
        pub nanoseconds: AtomicU64,
        /// The process, and above it the number of its image, from 1.
        pub image: AtomicU64,
        /// The system's number of the thread.
        pub task: AtomicU64,
        /// Written by the reader when it begins to read: events of the thread and the image in chunks before this, plus 1.
        pub before: AtomicU64,
        _end: [AtomicU64; 2],
    }
}

shared! {
    /// A slot in shared memory.
    pub(crate) struct SharedSlot (16 bytes) {
        pub(crate) words: [AtomicU64; 2],
    }
}
