//! Rings. Each consists of private state, in memory that no other process can access, and a shared part in the buffers.
//!
//! Other processes can write to a buffers file, so nothing that controls memory access is read from it.

use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU32, AtomicU64, fence};

use crate::layout::{BLOCKS, RingHead};
use crate::sys;

/// State of a ring that was never used.
pub(crate) const FREE: u32 = 0;
/// State of a ring that belongs to a thread.
const TAKEN: u32 = 1;
/// State of a ring whose thread has ended. The ring may still contain the thread's events.
pub(crate) const LEFT: u32 = 2;
/// State of a ring that a thread is acquiring.
const TAKING: u32 = 3;

/// A counter that orders the releases of rings.
static LEAVING: AtomicU64 = AtomicU64::new(1);

/// The private state of a ring.
#[repr(C, align(64))]
pub(crate) struct OwnRing {
    /// [`FREE`], `TAKEN`, [`LEFT`] or `TAKING`.
    owner: AtomicU32,
    /// ID of the thread that owns or last owned the ring.
    thread: AtomicU32,
    /// The ID of the thread that wrote the newest events in the ring.
    pub(crate) named: AtomicU32,
    /// Whether the ring's memory is reserved.
    pub(crate) reserved: AtomicU32,
    /// End of the block that the thread is writing.
    pub(crate) limit: AtomicU64,
    /// Position up to which events are drained.
    pub(crate) tail: AtomicU64,
    /// Position before which events may be overwritten.
    pub(crate) oldest: AtomicU64,
    /// Value of the release counter when the ring was released. Lower values are older.
    left: AtomicU64,
}

impl OwnRing {
    /// Acquires a [`FREE`] or [`LEFT`] ring for a thread.
    pub(crate) fn take(&self, from: u32, thread: u32) -> bool {
        let is_mine = self.owner.compare_exchange(from, TAKING, AcqRel, Relaxed).is_ok();
        if is_mine {
            self.thread.store(thread, Relaxed);
            self.owner.store(TAKEN, Release);
        }
        is_mine
    }

    /// Marks the ring as unused.
    pub(crate) fn give_back(&self) {
        self.owner.store(FREE, Release);
    }

    /// Releases the ring on behalf of its thread.
    pub(crate) fn leave(&self) -> bool {
        self.left.store(LEAVING.fetch_add(1, Relaxed), Relaxed);
        self.owner.compare_exchange(TAKEN, LEFT, Release, Relaxed).is_ok()
    }

    pub(crate) fn is_left(&self) -> bool {
        self.owner.load(Acquire) == LEFT
    }

    /// Returns the value of the release counter when the ring was released. Lower values are older.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Relaxed)
    }

    /// Returns whether the ring belongs to this thread.
    pub(crate) fn is_of(&self, thread: u32) -> bool {
        self.owner.load(Acquire) == TAKEN && self.thread.load(Relaxed) == thread
    }

    /// Returns whether the thread has ended without releasing the ring.
    pub(crate) fn is_deserted(&self) -> bool {
        self.owner.load(Acquire) == TAKEN && !sys::is_thread(self.thread.load(Relaxed))
    }

    /// Returns the number of bytes from the tail to the end of the thread's block.
    pub(crate) fn held(&self) -> u64 {
        self.limit.load(Relaxed).saturating_sub(self.tail.load(Relaxed))
    }

    /// Advances to the block that ends at `end`. Blocks before `oldest` are no longer valid.
    pub(crate) fn go_to(&self, end: u64, oldest: u64) {
        self.oldest.fetch_max(oldest, SeqCst);
        self.limit.store(end, Release);
    }
}

/// A ring in the buffers, with its private state.
#[derive(Clone, Copy)]
pub(crate) struct RingPart {
    pub(crate) head: &'static RingHead,
    pub(crate) own: &'static OwnRing,
    pub(crate) events: *mut u8,
    /// Size of the events in bytes, a power of two.
    pub(crate) bytes: u64,
}

impl RingPart {
    /// Returns the size of a block in bytes.
    pub(crate) fn block(&self) -> u64 {
        self.bytes / BLOCKS
    }

    /// Returns the position up to which events are complete. This is the position in the mapping, limited to the block
    /// that the thread is known to be writing.
    pub(crate) fn whole(&self) -> u64 {
        let head = self.head.head.load(Acquire);
        // A thread sets its block before its head reaches the block.
        let limit = self.own.limit.load(Acquire);
        head.clamp(limit.saturating_sub(self.block()), limit) & !7
    }

    /// Returns the word at a position.
    pub(crate) fn word(&self, position: u64) -> u64 {
        let at = usize::try_from(position & (self.bytes - 1) & !7).unwrap_or(0);
        // SAFETY: the mask keeps the address within the ring and at a multiple of 8.
        unsafe { AtomicU64::from_ptr(self.events.add(at).cast()) }.load(Relaxed)
    }

    /// Returns the number of dropped events that no event in the ring reports.
    pub(crate) fn unreported(&self) -> u64 {
        self.head.dropped.load(Relaxed).saturating_sub(self.head.reported.load(Relaxed))
    }

    /// Copies the words in a range of positions. They belong to complete events only if the range was below the head
    /// before the copy, and is not below the oldest position after it.
    pub(crate) fn copy(&self, from: u64, to: u64, out: &mut Vec<u64>) {
        out.clear();
        let words = (to.wrapping_sub(from) / 8).min(self.bytes / 8);
        out.extend((0..words).map(|word| self.word(from.wrapping_add(word * 8))));
        fence(Acquire);
    }
}

#[cfg(all(loom, test))]
impl RingPart {
    /// Shares the fields of the ring that threads access in a model, and the words at a range of positions.
    pub(crate) fn share(&self, positions: core::ops::Range<u64>) {
        use crate::sync::model::Share;
        let OwnRing { owner, thread, named, reserved, limit, tail, oldest, left } = self.own;
        [owner, thread, named, reserved].into_iter().for_each(Share::share);
        [limit, tail, oldest, left].into_iter().for_each(Share::share);
        let RingHead { head, oldest, dropped, reported, thread, name, .. } = self.head;
        [head, oldest, dropped, reported].into_iter().for_each(Share::share);
        thread.share();
        name.share();
        for position in positions.step_by(8) {
            let at = usize::try_from(position & (self.bytes - 1)).unwrap();
            // SAFETY: this is a word of the ring.
            unsafe { AtomicU64::from_ptr(self.events.add(at).cast()) }.share();
        }
    }
}
