//! Rings: what this process knows of each, in memory that no other process sees, and the part that is in the buffers.
//!
//! A buffers file can be written by other processes, so nothing that decides about memory is read from there.

use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU32, AtomicU64, fence};

use crate::layout::{BLOCKS, RingHead};
use crate::sys;

/// The ring was never used.
pub(crate) const FREE: u32 = 0;
/// It has a thread.
const TAKEN: u32 = 1;
/// Its thread has ended; what it wrote may be there still.
pub(crate) const LEFT: u32 = 2;
/// A thread is about to have it.
const TAKING: u32 = 3;

/// The order in which threads leave their rings.
static LEAVING: AtomicU64 = AtomicU64::new(1);

/// A ring of this process.
#[repr(C, align(64))]
pub(crate) struct OwnRing {
    /// [`FREE`], `TAKEN`, [`LEFT`] or `TAKING`.
    owner: AtomicU32,
    /// The thread that has it, or had it last.
    thread: AtomicU32,
    /// The thread that the events at its end are of.
    pub(crate) named: AtomicU32,
    /// Whether its memory is reserved.
    pub(crate) reserved: AtomicU32,
    /// End of the block that its thread is in.
    pub(crate) limit: AtomicU64,
    /// Up to here events are drained.
    pub(crate) tail: AtomicU64,
    /// Before this, events are overwritten.
    pub(crate) oldest: AtomicU64,
    /// The smaller, the longer ago its thread left it.
    left: AtomicU64,
}

impl OwnRing {
    /// Takes it for a thread, from [`FREE`] or [`LEFT`].
    pub(crate) fn take(&self, from: u32, thread: u32) -> bool {
        let is_mine = self.owner.compare_exchange(from, TAKING, AcqRel, Relaxed).is_ok();
        if is_mine {
            self.thread.store(thread, Relaxed);
            self.owner.store(TAKEN, Release);
        }
        is_mine
    }

    /// Gives it back as it was before the first thread had it.
    pub(crate) fn give_back(&self) {
        self.owner.store(FREE, Release);
    }

    /// Has its thread leave it.
    pub(crate) fn leave(&self) -> bool {
        self.left.store(LEAVING.fetch_add(1, Relaxed), Relaxed);
        self.owner.compare_exchange(TAKEN, LEFT, Release, Relaxed).is_ok()
    }

    pub(crate) fn is_left(&self) -> bool {
        self.owner.load(Acquire) == LEFT
    }

    /// Returns when its thread left it: the smaller, the longer ago.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Relaxed)
    }

    /// Whether it is this thread's.
    pub(crate) fn is_of(&self, thread: u32) -> bool {
        self.owner.load(Acquire) == TAKEN && self.thread.load(Relaxed) == thread
    }

    /// Whether its thread has ended without leaving it.
    pub(crate) fn is_deserted(&self) -> bool {
        self.owner.load(Acquire) == TAKEN && !sys::is_thread(self.thread.load(Relaxed))
    }

    /// Returns the bytes from its tail to the end of its thread's block.
    pub(crate) fn held(&self) -> u64 {
        self.limit.load(Relaxed).saturating_sub(self.tail.load(Relaxed))
    }

    /// Goes to the block that ends there; those before `oldest` are gone.
    pub(crate) fn go_to(&self, end: u64, oldest: u64) {
        self.oldest.fetch_max(oldest, SeqCst);
        self.limit.store(end, Release);
    }
}

/// A thread's part of the buffers.
#[derive(Clone, Copy)]
pub(crate) struct RingPart {
    pub(crate) head: &'static RingHead,
    pub(crate) own: &'static OwnRing,
    pub(crate) events: *mut u8,
    /// Bytes of its events, a power of two.
    pub(crate) bytes: u64,
}

impl RingPart {
    /// Returns the bytes of a block.
    pub(crate) fn block(&self) -> u64 {
        self.bytes / BLOCKS
    }

    /// Returns up to where events are whole: what the mapping says, within the block that the process knows its thread to be in.
    pub(crate) fn whole(&self) -> u64 {
        let head = self.head.head.load(Acquire);
        // A thread knows its block before its head is there.
        let limit = self.own.limit.load(Acquire);
        head.clamp(limit.saturating_sub(self.block()), limit) & !7
    }

    /// Returns the word at a position.
    pub(crate) fn word(&self, position: u64) -> u64 {
        let at = usize::try_from(position & (self.bytes - 1) & !7).unwrap_or(0);
        // SAFETY: the mask keeps the place in the ring, at a multiple of 8.
        unsafe { AtomicU64::from_ptr(self.events.add(at).cast()) }.load(Relaxed)
    }

    /// Returns how many events were dropped that no event in the ring tells of.
    pub(crate) fn unreported(&self) -> u64 {
        self.head.dropped.load(Relaxed).saturating_sub(self.head.reported.load(Relaxed))
    }

    /// Copies the words of a range of positions. They are those of whole events only if the range was below the head before, and
    /// is not below the oldest position after.
    pub(crate) fn copy(&self, from: u64, to: u64, out: &mut Vec<u64>) {
        out.clear();
        let words = (to.wrapping_sub(from) / 8).min(self.bytes / 8);
        out.extend((0..words).map(|word| self.word(from.wrapping_add(word * 8))));
        fence(Acquire);
    }
}
