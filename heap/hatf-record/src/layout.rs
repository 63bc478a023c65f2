//! The layout of the shared file: a header, the states of the chunks, and the chunks.

use crate::sync::{AtomicU32, AtomicU64};

use crate::event::SLOT_BYTES;

/// The first word of a spool.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HATFSPOL");
/// The version of this layout.
pub const VERSION: u32 = 7;

/// Bytes per chunk. A chunk contains events of one thread.
pub const CHUNK_BYTES: usize = CHUNK_BYTES_WORD as usize;
pub(crate) const CHUNK_BYTES_WORD: u32 = 32 * 1024;
/// Bytes at the start of a chunk that contain no events: its [`ChunkHead`], and space for a cursor that runs past the
/// end of the previous chunk.
pub const CHUNK_HEAD_BYTES: usize = 512;
/// Slots per chunk.
pub const CHUNK_SLOTS: usize = (CHUNK_BYTES - CHUNK_HEAD_BYTES) / SLOT_BYTES;
/// The maximum number of chunks in a spool. They amount to 64 GiB.
pub const CHUNKS_MAX: usize = 1 << 21;

/// A flag added to a Python version whose frame layout is unknown.
pub const PYTHON_UNKNOWN: u32 = 1 << 16;

/// A flag added to the exit status of a process.
pub const EXITED: u32 = 1 << 8;

/// A flag that the kernel sets in [`Header::keeper`] if that thread ends unexpectedly, for example because it is
/// killed: `FUTEX_OWNER_DIED`.
pub const KEEPER_GONE: u32 = 1 << 30;

/// Types in which another process may write any byte at any time. All bytes are in atomics, so every bit pattern is a
/// valid value, and a concurrent write is not a data race.
trait Shared {}
impl Shared for AtomicU32 {}
impl Shared for AtomicU64 {}
impl<T: Shared, const N: usize> Shared for [T; N] {}

/// Declares a type in shared memory. A field that is not [`Shared`] does not compile; padding must be declared as a
/// field.
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
            // The fields fill the type, so the compiler has added no padding.
            assert!(0 $(+ check::<$type>())+ == size_of::<$name>() && size_of::<$name>() == $bytes);
        };
    };
}

shared! {
    /// The data shared by the recorded program and `hatf`. Groups of fields written by different sides are on separate
    /// cache lines.
    pub struct Header (512 bytes) {
        pub(crate) magic: AtomicU64,
        pub(crate) version: AtomicU32,
        pub(crate) chunk_bytes: AtomicU32,
        pub(crate) chunks: AtomicU64,
        /// The time in `CLOCK_MONOTONIC` nanoseconds when recording of the process began.
        pub start: AtomicU64,
        /// The process ID of `hatf record`, or 0 if there is none because the process created its own spool.
        pub recorder: AtomicU32,
        /// Nonzero if the reader is gone.
        pub closed: AtomicU32,
        /// The number of the [`crate::Clock`] that stamps events.
        pub clock: AtomicU32,
        /// The number of a [`crate::WhenFull`].
        pub when_full: AtomicU32,
        /// The maximum time in milliseconds that a full spool may block a thread.
        pub patience: AtomicU64,
        /// The maximum number of further processes recorded simultaneously. Used only in the first process's spool.
        pub follow: AtomicU32,
        /// The number of chunks in the spool of each further process.
        pub follow_chunks: AtomicU32,
        /// The maximum number of frames in a stack, or 0 if no stacks are recorded.
        pub stack_depth: AtomicU32,
        /// The bits of [`crate::Conditions`] with which every image of the process starts.
        pub extras: AtomicU32,
        /// The mean number of bytes per recorded block, or 0 if all blocks are recorded.
        pub sample: AtomicU64,
        /// The bits of [`crate::Conditions`].
        pub(crate) conditions: AtomicU32,
        /// Nonzero if recording should be off.
        pub off: AtomicU32,
        /// The signal that toggles recording, or 0 if there is none.
        pub toggle_signal: AtomicU32,
        /// The signal that requests a trace of the retained events, or 0 if there is none.
        pub dump_signal: AtomicU32,
        /// The stamp before which events are missing if only the last part is retained, or 0 if no events are missing.
        pub horizon: AtomicU64,
        /// The start time of the process in kernel ticks since boot, if the first process created this spool itself.
        pub began: AtomicU64,
        /// The number of events guaranteed to be in the trace, because they were flushed.
        pub in_trace: AtomicU64,
        /// The stamp of the last event counted in `in_trace`.
        pub in_trace_until: AtomicU64,
        /// The recorded process, or 0 before it has loaded the recorder.
        pub process: AtomicU32,
        /// The number of program images loaded by the recorded process.
        pub images: AtomicU32,
        /// The number of processes that the recorded process has forked or is about to fork.
        pub forks: AtomicU32,
        /// The number of other processes that loaded the recorder.
        pub other_processes: AtomicU32,
        /// The number of numbered threads, not counting the main thread.
        pub threads: AtomicU32,
        /// The number of leading chunks that the program has mapped, if it has not mapped all of them.
        pub mapped: AtomicU32,
        /// The number of events that the program had to drop.
        pub dropped: AtomicU64,
        /// The number of times that a thread found no ready chunk.
        pub waits: AtomicU64,
        /// The number of program images that loaded the recorder but could not be recorded.
        pub refused: AtomicU32,
        /// The number of a [`crate::Stop`], which is the reason why recording ended before the program.
        pub stopped: AtomicU32,
        /// The parent of this process, unless it is `hatf record`.
        pub parent: AtomicU32,
        /// The 0-based number of this process among the recorded processes.
        pub number: AtomicU32,
        /// The exit status of the process plus [`EXITED`], or 0 if the process has not reported it.
        pub exit: AtomicU32,
        /// The number of further processes that received a number. Used only in the first process's spool.
        pub numbers: AtomicU32,
        /// The number of further spools created. Used only in the first process's spool.
        pub spools: AtomicU32,
        /// The number of further processes being recorded now. Used only in the first process's spool.
        pub followed: AtomicU32,
        /// The number of processes that could not be followed, or that would have exceeded the limit. Used only in the
        /// first process's spool.
        pub not_followed: AtomicU32,
        /// The number of forked processes that are being recorded or have determined that they should not be recorded.
        /// Used only in the first process's spool.
        pub answered: AtomicU32,
        /// Nonzero if stacks were requested but are not recorded, because there is no room for the stack table or no
        /// way to walk stacks.
        pub stackless: AtomicU32,
        /// The number of times that the process requested a trace of the retained events.
        pub dumps: AtomicU32,
        /// The major and minor version of Python, if its frames were requested, plus [`PYTHON_UNKNOWN`] if their layout
        /// is unknown. 0 if the process has no Python.
        pub python: AtomicU32,
        /// The maximum size of a process's stack table in MiB.
        pub stack_room: AtomicU32,
        /// The number of functions of the last program image's statically linked allocator whose calls are recorded at
        /// function entry.
        pub linked: AtomicU32,
        /// Nonzero after an `exec` begins, until the new program loads the recorder.
        pub becomes: AtomicU32,
        /// In the first process's spool: the reasons why processes could not be followed, as bits numbered by
        /// [`crate::NotFollowed`].
        pub not_followed_why: AtomicU32,
        /// The number of program images that have such functions.
        pub linked_images: AtomicU32,
        /// Whether a program image asks `hatf` for a plan: see [`crate::linked`].
        pub plans: AtomicU32,
        /// The number of plans for which the process has asked.
        pub(crate) plans_asked: AtomicU32,
        /// The number of the last plan for which the process has asked and that `hatf` has written.
        pub(crate) plans_given: AtomicU32,
        _before_next: [AtomicU32; 1],
        /// The number of chunks examined so far by threads looking for a ready chunk.
        pub(crate) next: AtomicU64,
        _before_ready: [AtomicU64; 15],
        /// The number of ready chunks.
        pub(crate) ready: AtomicU32,
        /// The number of threads waiting for a ready chunk.
        pub waiting: AtomicU32,
        /// The futex on which threads wait for a ready chunk. It is incremented when chunks become ready while threads
        /// are waiting.
        pub wakeups: AtomicU32,
        /// The thread of `hatf record` that makes chunks ready, with [`KEEPER_GONE`] set by the kernel if that thread
        /// is gone; 0 if there is no such thread yet or any more.
        pub keeper: AtomicU32,
        /// The bells for each kind of [`crate::Work`].
        pub(crate) bells: [AtomicU32; 3],
        /// Nonzero if the process must not make the system call that rings a bell.
        pub(crate) silent: AtomicU32,
        _end: [AtomicU32; 24],
    }
}

shared! {
    /// The head of a chunk. It is zero until a thread takes the chunk.
    pub struct ChunkHead (64 bytes) {
        /// The thread number and, in the bits above it, the 0-based index of the chunk among the thread's chunks.
        /// Written last.
        pub owner: AtomicU64,
        /// A stamp before the first event.
        pub stamp: AtomicU64,
        /// The `CLOCK_MONOTONIC` time in nanoseconds that corresponds to `stamp`.
        pub nanoseconds: AtomicU64,
        /// The process ID and, in the bits above it, the 1-based number of the program image.
        pub image: AtomicU64,
        /// The thread ID in the system.
        pub task: AtomicU64,
        /// Written by the reader when it begins to read: 1 plus the number of events of the same thread and image in
        /// earlier chunks.
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
