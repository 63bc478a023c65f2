//! The bytes of a buffers file: what every process that maps it sees (`docs/internals/telemetry.md`).

use crate::sync::{AtomicU32, AtomicU64};

/// `MTFTELE1`, which is written last: a file that has it has a whole header.
pub const MAGIC: u64 = u64::from_le_bytes(*b"MTFTELE1");
/// `MTFTELC1`: the header stands before buffers of the header for C, which hold chunks of the trace ([`ChunkHead`]).
pub const MAGIC_CHUNKS: u64 = u64::from_le_bytes(*b"MTFTELC1");
/// Version of the layout.
pub const VERSION: u32 = 3;
/// What tells the byte order.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// Where the texts begin: the DTD, the table, the DTD's name, the trace's path.
pub const TEXTS_AT: u64 = 8192;
/// Bytes of a ring before its events.
pub const RING_HEAD_BYTES: u64 = 4096;
/// Blocks of a ring. No event crosses the end of one.
pub const BLOCKS: u64 = 16;
/// Least bytes of a ring's events.
pub const RING_LEAST: u64 = 64 << 10;
/// Most bytes of a ring's events: a block's length in words fits the head of an event.
pub const RING_MOST: u64 = 8 << 20;
/// Bytes of the events of a small ring, which has the rare events of a thread.
pub const RARE_BYTES: u64 = RING_LEAST;
/// Most rings of each length.
pub const RINGS_MOST: u32 = 4096;
/// Bytes of the strings that events name by numbers.
pub const STRINGS_BYTES: u64 = 256 << 10;
/// Most bytes of all texts.
pub const TEXTS_MOST: u64 = 16 << 20;

/// The number of an event that fills a block's end.
pub const PAD: u16 = 0xffff;
/// The number of an event that says how many were dropped: two words, the count and a stamp.
pub const DROPPED: u16 = 0xfffe;
/// The number of an event outside of the DTD: a word with the lengths of its name and its bytes, and a stamp.
pub const NOTE: u16 = 0xfffd;
/// The number of an event that says whose the events behind it are: three words, the thread's number and its name. Each block begins with
/// one, and so does each thread in the ring of one that has ended.
pub const THREAD: u16 = 0xfffc;
/// Most events of a DTD.
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
    /// Bytes of the file.
    pub bytes: AtomicU64,
    /// Where the rings begin.
    pub rings_at: AtomicU64,
    /// Bytes of a ring's events, a power of two.
    pub ring_bytes: AtomicU64,
    /// How many rings there are.
    pub rings: AtomicU32,
    /// Number of the clock of stamps.
    pub clock: AtomicU32,
    /// Bytes of the DTD.
    pub dtd_bytes: AtomicU32,
    /// Bytes of the table.
    pub table_bytes: AtomicU32,
    /// Bytes of the DTD's name.
    pub name_bytes: AtomicU32,
    /// Bytes of the trace's path.
    pub trace_bytes: AtomicU32,
    /// The process.
    pub process: AtomicU32,
    /// Number of the policy.
    pub policy: AtomicU32,
    /// The control word that another process asks for.
    pub wanted: AtomicU64,
    /// How often it did.
    pub wanted_count: AtomicU32,
    /// How many small rings stand behind the others.
    pub rare_rings: AtomicU32,
    /// The control word as it is.
    pub control: AtomicU64,
    /// Stamp of the start.
    pub start_stamp: AtomicU64,
    /// `CLOCK_MONOTONIC` of the start.
    pub start_nanoseconds: AtomicU64,
    /// Nanoseconds since 1970, of the start.
    pub start_wall: AtomicU64,
    /// Nanoseconds of a step of the clock, times 2^32.
    pub rate: AtomicU64,
    /// Events that found no ring.
    pub refused: AtomicU64,
    /// Number of the last batch that is in the trace.
    pub batch: AtomicU64,
    /// Number of the batch that is being written, once its ends are set.
    pub preparing: AtomicU64,
    /// Of this batch and the next, by their numbers' last bit.
    pub batches: [Batch; 2],
    /// Where the strings are that events name by numbers; 0: there are none.
    pub strings_at: AtomicU64,
    /// Bytes of the strings: whole entries.
    pub strings: AtomicU64,
    /// Strings that found no room.
    pub strings_refused: AtomicU64,
    /// Bytes of the strings that are in the trace with this batch and with the next, by their numbers' last bit.
    pub batch_strings: [AtomicU64; 2],
}

/// What the header knows of a batch, except where it ends in each ring.
#[repr(C)]
pub struct Batch {
    /// Stamp of the moment by which its stamps become nanoseconds.
    pub stamp: AtomicU64,
    /// `CLOCK_MONOTONIC` of that moment.
    pub nanoseconds: AtomicU64,
    /// The stamp and the nanoseconds since 1970 of the record of both clocks with which the batch ends; 0 where it has none.
    pub sync_stamp: AtomicU64,
    /// See `sync_stamp`.
    pub sync_wall: AtomicU64,
    /// Data records of each section in the trace, with this batch.
    pub records: [AtomicU64; 256],
}

/// The first page of a ring. The process itself believes no more of it than the head, within the block that its thread is in.
#[repr(C)]
pub struct RingHead {
    /// Where the next event goes. All before is whole.
    pub head: AtomicU64,
    /// Before this, events are overwritten.
    pub oldest: AtomicU64,
    /// Events dropped so far.
    pub dropped: AtomicU64,
    /// How many of these an event in the ring, or a record, has named.
    pub reported: AtomicU64,
    /// The number of the thread that has it, or had it last.
    pub thread: AtomicU32,
    /// Keeps the next fields aligned.
    pub reserved: AtomicU32,
    /// The thread's name.
    pub name: [AtomicU64; 2],
    /// Where the last batch that is in the trace and the next one end, by their numbers' last bit.
    pub ends: [AtomicU64; 2],
}

/// The first page of a buffer of the header for C; its chunk begins behind it. That header has the same.
#[repr(C)]
pub struct ChunkHead {
    /// The number of its emitter; 0: nobody has it.
    pub thread: AtomicU32,
    /// Number of the section that the chunk is of.
    pub section: AtomicU32,
    /// Where the events of the chunk end; 0: there are none.
    pub end: AtomicU32,
    /// How many chunks were begun.
    pub chunks: AtomicU32,
    /// While the chunk is written: bytes of the trace, once it is in there.
    pub sent: AtomicU64,
}

const _: () = assert!(size_of::<Header>() <= 8192 && size_of::<RingHead>() <= 4096);

/// Packs the head of an event: its number, the number of its words, its place.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "the place is the low half")]
#[must_use]
pub const fn head_of(event: u16, words: u16, position: u64) -> u64 {
    event as u64 | (words as u64) << 16 | ((position >> 3) as u32 as u64) << 32
}

/// Unpacks the head of an event: its number and the number of its words, if it is of this place.
#[allow(clippy::cast_possible_truncation, reason = "these are parts of it")]
pub(crate) const fn of_head(head: u64, position: u64) -> Option<(u16, u16)> {
    let (event, words) = (head as u16, (head >> 16) as u16);
    if head_of(event, words, position) == head { Some((event, words)) } else { None }
}

/// Returns where a ring begins, and the bytes of its events: behind `rings` rings of `ring_bytes` come the small ones.
pub(crate) fn ring_at(rings_at: u64, ring_bytes: u64, rings: u32, index: u32) -> (u64, u64) {
    let small = index.saturating_sub(rings);
    let all = |bytes: u64, count: u32| RING_HEAD_BYTES.saturating_add(bytes).saturating_mul(u64::from(count));
    let at = rings_at.saturating_add(all(ring_bytes, index.min(rings))).saturating_add(all(RARE_BYTES, small));
    (at, if index < rings { ring_bytes } else { RARE_BYTES })
}
