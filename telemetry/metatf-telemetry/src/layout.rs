//! The bytes of a buffers file, which are shared by every process that maps it (`dev/internals/telemetry.md`).
//!
//! ```
//! use metatf_telemetry::layout::{MAGIC, head_of};
//!
//! assert_eq!(MAGIC.to_le_bytes(), *b"MTFTELE1");
//! // This is the head of event 3, which contains two words, at byte 16 of a ring. A head stores its position in words.
//! assert_eq!(head_of(3, 2, 16), 3 | 2 << 16 | 2 << 32);
//! // At another position, the same event has another head, so a reader can detect overwritten events.
//! assert_ne!(head_of(3, 2, 24), head_of(3, 2, 16));
//! ```

use crate::sync::{AtomicU32, AtomicU64};

/// `MTFTELE1`, which is written last, so a file that contains it has a complete header.
pub const MAGIC: u64 = u64::from_le_bytes(*b"MTFTELE1");
/// `MTFTELC1`, which marks a buffers file of the header for C. The buffers contain chunks of the trace ([`ChunkHead`]).
pub const MAGIC_CHUNKS: u64 = u64::from_le_bytes(*b"MTFTELC1");
/// Version of the layout.
pub const VERSION: u32 = 3;
/// The value of [`Header::byte_order`], by which a reader recognizes the byte order of the file.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// Offset of the strings, which are the DTD, the table, the name of the DTD, and the path of the trace.
pub const TEXTS_AT: u64 = 8192;
/// Size in bytes of the head of a ring, which precedes its events.
pub const RING_HEAD_BYTES: u64 = 4096;
/// Number of blocks in a ring. No event crosses the end of a block.
pub const BLOCKS: u64 = 16;
/// Minimum size of a ring's events in bytes.
pub const RING_LEAST: u64 = 64 << 10;
/// Maximum size of a ring's events in bytes, at which the length of a block in words still fits in the head of an
/// event.
pub const RING_MOST: u64 = 8 << 20;
/// Size in bytes of the events of a small ring, which stores the rare events of a thread.
pub const RARE_BYTES: u64 = RING_LEAST;
/// Maximum number of rings of each size.
pub const RINGS_MOST: u32 = 4096;
/// Size in bytes of the interned strings.
pub const STRINGS_BYTES: u64 = 256 << 10;
/// Maximum total size of the strings in bytes.
pub const TEXTS_MOST: u64 = 16 << 20;

/// The number of an event that fills the end of a block.
pub const PAD: u16 = 0xffff;
/// The number of an event that reports dropped events. Its two words are the count and a stamp.
pub const DROPPED: u16 = 0xfffe;
/// The number of an event that is not in the DTD. It starts with a word that contains the lengths of its name and its
/// bytes, and a stamp.
pub const NOTE: u16 = 0xfffd;
/// The number of an event that identifies the thread of the following events. Its three words contain the thread ID and
/// the name. Every block starts with such an event, and so does a thread that takes over the ring of an ended thread.
pub const THREAD: u16 = 0xfffc;
/// Maximum number of events in a DTD.
pub const EVENTS_MOST: usize = 0xff00;

/// The first pages of a buffers file.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// [`BYTE_ORDER`].
    pub byte_order: AtomicU32,
    /// Size of the file in bytes.
    pub bytes: AtomicU64,
    /// Offset of the rings.
    pub rings_at: AtomicU64,
    /// Size of a ring's events in bytes, a power of two.
    pub ring_bytes: AtomicU64,
    /// Number of rings.
    pub rings: AtomicU32,
    /// Number of the clock used for stamps.
    pub clock: AtomicU32,
    /// Size of the DTD in bytes.
    pub dtd_bytes: AtomicU32,
    /// Size of the table in bytes.
    pub table_bytes: AtomicU32,
    /// Size of the DTD's name in bytes.
    pub name_bytes: AtomicU32,
    /// Size of the trace's path in bytes.
    pub trace_bytes: AtomicU32,
    /// The process ID.
    pub process: AtomicU32,
    /// Number of the policy.
    pub policy: AtomicU32,
    /// The control word requested by another process.
    pub wanted: AtomicU64,
    /// Number that changes with each request in `wanted`.
    pub wanted_count: AtomicU32,
    /// Number of small rings, which follow the rings of `ring_bytes`.
    pub rare_rings: AtomicU32,
    /// The current control word.
    pub control: AtomicU64,
    /// Stamp of the start.
    pub start_stamp: AtomicU64,
    /// `CLOCK_MONOTONIC` at the start.
    pub start_nanoseconds: AtomicU64,
    /// Nanoseconds since 1970 at the start.
    pub start_wall: AtomicU64,
    /// Nanoseconds per unit of the clock, times 2^32.
    pub rate: AtomicU64,
    /// Number of events dropped because no ring was free.
    pub refused: AtomicU64,
    /// Number of the last batch in the trace.
    pub batch: AtomicU64,
    /// Number of the batch being written. It is set after the ends of that batch in the rings.
    pub preparing: AtomicU64,
    /// The last batch in the trace and the next one, indexed by the lowest bit of their numbers.
    pub batches: [Batch; 2],
    /// Offset of the interned strings; 0 if the buffers contain no strings.
    pub strings_at: AtomicU64,
    /// Size of the strings in bytes, up to the last complete entry.
    pub strings: AtomicU64,
    /// Number of strings for which there was no room.
    pub strings_refused: AtomicU64,
    /// Size in bytes of the strings in the trace after the last batch and after the next one, indexed like `batches`.
    pub batch_strings: [AtomicU64; 2],
}

/// Information about a batch, stored in the header. The end of the batch in each ring is stored in that ring.
#[repr(C)]
pub struct Batch {
    /// Stamp of the point in time used to convert the stamps of the batch to nanoseconds.
    pub stamp: AtomicU64,
    /// `CLOCK_MONOTONIC` at that time.
    pub nanoseconds: AtomicU64,
    /// The stamp in the clock record at the end of the batch, which relates the stamp to `sync_wall`; 0 if the batch
    /// has no clock record.
    pub sync_stamp: AtomicU64,
    /// The nanoseconds since 1970 in the clock record; see `sync_stamp`.
    pub sync_wall: AtomicU64,
    /// Number of data records of each section in the trace, including this batch.
    pub records: [AtomicU64; 256],
}

/// The first page of a ring. The process itself trusts only the `head` on this page, and only within the current block
/// of its thread.
#[repr(C)]
pub struct RingHead {
    /// Position of the next event. All events before it are complete.
    pub head: AtomicU64,
    /// Position before which events may be overwritten.
    pub oldest: AtomicU64,
    /// Number of events dropped so far.
    pub dropped: AtomicU64,
    /// Number of dropped events that an event in the ring or a record has already reported.
    pub reported: AtomicU64,
    /// ID of the thread that owns or last owned the ring.
    pub thread: AtomicU32,
    /// Padding that aligns the next fields.
    pub reserved: AtomicU32,
    /// The thread's name.
    pub name: [AtomicU64; 2],
    /// The ends of the last batch in the trace and of the next one, indexed by the lowest bit of their numbers.
    pub ends: [AtomicU64; 2],
}

/// The first page of a buffer of the header for C, followed by its chunk. The header for C declares the same structure.
#[repr(C)]
pub struct ChunkHead {
    /// Number of the emitter; 0 if the buffer is free.
    pub thread: AtomicU32,
    /// Number of the chunk's section.
    pub section: AtomicU32,
    /// End of the events in the chunk; 0 if the chunk contains no events.
    pub end: AtomicU32,
    /// Number of chunks started.
    pub chunks: AtomicU32,
    /// While the chunk is being written, the length of the trace including the chunk.
    pub sent: AtomicU64,
}

const _: () = assert!(size_of::<Header>() <= 8192 && size_of::<RingHead>() <= 4096);

/// Encodes the head of an event, which consists of its number, its length in words, and its position.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "the place is the low half")]
#[must_use]
pub const fn head_of(event: u16, words: u16, position: u64) -> u64 {
    event as u64 | (words as u64) << 16 | ((position >> 3) as u32 as u64) << 32
}

/// Decodes the head of an event. Returns its number and its length in words if the head belongs to this position.
#[allow(clippy::cast_possible_truncation, reason = "these are parts of it")]
pub(crate) const fn of_head(head: u64, position: u64) -> Option<(u16, u16)> {
    let (event, words) = (head as u16, (head >> 16) as u16);
    if head_of(event, words, position) == head { Some((event, words)) } else { None }
}

/// Returns the offset of a ring and the size of its events in bytes. The small rings follow `rings` rings of
/// `ring_bytes`.
pub(crate) fn ring_at(rings_at: u64, ring_bytes: u64, rings: u32, index: u32) -> (u64, u64) {
    let small = index.saturating_sub(rings);
    let all = |bytes: u64, count: u32| RING_HEAD_BYTES.saturating_add(bytes).saturating_mul(u64::from(count));
    let at = rings_at.saturating_add(all(ring_bytes, index.min(rings))).saturating_add(all(RARE_BYTES, small));
    (at, if index < rings { ring_bytes } else { RARE_BYTES })
}
