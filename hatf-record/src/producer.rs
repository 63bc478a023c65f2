//! The writing end of a spool: what a thread needs to write its events.
//!
//! A signal handler may come between any two instructions, and write events of its own. So slots are reserved by one
//! instruction, and a new chunk is put in place by one: `cursor` is all that says where the next slot is. Chunks lie at
//! multiples of their length, and begin with bytes that are not slots. A cursor in these (or 0, before the first chunk) means that there is no room: a
//! reservation that runs over the end of a chunk is recognised by that.

use crate::sync::Ordering;
use core::cell::Cell;
use core::marker::PhantomData;

use crate::clock::Clock;
use crate::event::{Flags, Head, Kind, SLOT_BYTES, Slot, is_narrow, narrow, stamp_slot};
use crate::layout::{CHUNK_BYTES, CHUNK_HEAD_BYTES, SharedSlot};
use crate::local_atomic::{Interruptible, Local, LocalAtomic, interruptible};
use crate::spool::Chunk;

/// Stamps that differ above these bits are more than their low half apart: a [`Kind::Stamp`] is written.
const EPOCH_BITS: u32 = 31;

/// Where a chunk belongs.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// The thread's number.
    pub thread: u32,
    /// The process.
    pub process: u32,
    /// The number of its image, from 1.
    pub image: u32,
    /// The system's number of the thread.
    pub task: u32,
}

/// Says that a value belongs to one thread at a time.
type OneThread = PhantomData<Cell<()>>;

impl Interruptible for OneThread {}

interruptible! {
    /// The state of a thread that writes events; zero when the thread begins.
    #[derive(Debug, Default)]
    #[repr(C)]
    pub struct Producer {
        cursor: LocalAtomic,
        /// The stamps' high bits.
        epoch: Local<u64>,
        /// Chunks so far.
        chunks: LocalAtomic,
        /// Events that were dropped and not yet counted in the spool.
        lost: LocalAtomic,
        /// The first slot of the chunk that was installed last; 0: none was.
        chunk: Local<usize>,
        one_thread: OneThread,
    }
}

impl Producer {
    /// Makes one without a chunk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes an event without further numbers, if there is room for it, and nothing is unusual; otherwise it is for
    /// [`Producer::put_slots`].
    ///
    /// # Safety
    /// The chunk that was [installed](Producer::install) is still mapped.
    #[inline(always)]
    pub unsafe fn put(&self, clock: Clock, kind: Kind, size: u64, address: u64) -> bool {
        if !is_narrow(size, address) {
            return false;
        }
        let at = self.cursor.fetch_add(SLOT_BYTES);
        if !is_slot(at) {
            return false;
        }
        let stamp = clock.now();
        let same_epoch = stamp >> EPOCH_BITS == self.epoch.get();
        let kind = if same_epoch { kind } else { Kind::Nothing };
        let [first, second] = narrow(kind, Flags::default(), stamp, size, address);
        // SAFETY: a slot of the chunk that is mapped, by the caller's promise: `at` is a cursor that was inside of it.
        let slot = unsafe { &*(at as *const SharedSlot) };
        slot.words[1].store(second, Ordering::Relaxed);
        slot.words[0].store(first, Ordering::Release);
        same_epoch
    }

    /// Writes an event of several slots; `false` if there is no room for it in the chunk, which is at its end then.
    ///
    /// # Safety
    /// As for [`Producer::put`].
    pub unsafe fn put_slots(&self, stamp: u64, slots: &[Slot]) -> bool {
        loop {
            let at = self.cursor.get();
            if !is_slot(at) {
                return false;
            }
            let left = (CHUNK_BYTES - at % CHUNK_BYTES) / SLOT_BYTES;
            let new_epoch = stamp >> EPOCH_BITS != self.epoch.get();
            let used = slots.len() + usize::from(new_epoch);
            let fits = used <= left;
            let taken = if fits { used } else { left };
            if !self.cursor.replace(at, at + taken * SLOT_BYTES) {
                continue;
            }
            // SAFETY: these slots are in the chunk, and were just reserved; the rest as in `put`.
            let put = |number: usize, [first, second]: Slot| unsafe {
                let slot = &*((at + number * SLOT_BYTES) as *const SharedSlot);
                slot.words[1].store(second, Ordering::Relaxed);
                slot.words[0].store(first, Ordering::Release);
            };
            if !fits {
                put(0, [Kind::End as u64, 0]);
                return false;
            }
            // What says something about the event first, so that no kill leaves the event without it. Of the event the first slot last.
            if new_epoch {
                put(0, stamp_slot(stamp));
                self.epoch.set(stamp >> EPOCH_BITS);
            }
            let is_about = |slot: &Slot| Head::decode(*slot).is_some_and(|head| head.kind == Kind::About);
            let leading = usize::from(slots.first().is_some_and(is_about));
            for (number, slot) in
                slots.iter().enumerate().take(leading).chain(slots.iter().enumerate().skip(leading).rev())
            {
                put(number + usize::from(new_epoch), *slot);
            }
            return true;
        }
    }

    /// Forgets its chunk and all before it, for another spool.
    pub fn leave(&self) {
        for word in [&self.cursor, &self.chunks, &self.lost] {
            word.fetch_add(word.get().wrapping_neg());
        }
        self.epoch.set(0);
        self.chunk.set(0);
    }

    /// Returns the address of the first slot of the chunk that it writes to, or wrote to last; 0: there is none.
    #[must_use]
    pub fn chunk(&self) -> usize {
        self.chunk.get()
    }

    /// Returns whether there is a chunk with room.
    #[must_use]
    pub fn has_room(&self) -> bool {
        is_slot(self.cursor.get())
    }

    /// Goes on in a chunk of zeros. Where a signal handler has meanwhile installed one, the given one stays empty. Returns the address of
    /// the first slot of the chunk that nothing more is written to; 0: there is none.
    pub fn install(&self, chunk: &Chunk<'_>, owner: Owner, stamp: u64, nanoseconds: u64) -> usize {
        let head = chunk.head();
        head.stamp.store(stamp, Ordering::Relaxed);
        head.nanoseconds.store(nanoseconds, Ordering::Relaxed);
        head.image.store(u64::from(owner.process) | u64::from(owner.image) << 32, Ordering::Relaxed);
        head.task.store(u64::from(owner.task), Ordering::Relaxed);
        // Last: the first write may fault, signals come then, and a handler that jumps leaves a number without a chunk.
        let number = self.chunks.fetch_add(1) as u64;
        head.owner.store(u64::from(owner.thread) | number << 32, Ordering::Release);
        loop {
            let at = self.cursor.get();
            if is_slot(at) {
                chunk.write(0, &[[Kind::End as u64, 0]]);
                return chunk.first();
            }
            if self.cursor.replace(at, chunk.first()) {
                self.epoch.set(stamp >> EPOCH_BITS);
                let left = self.chunk.replace(chunk.first());
                // A handler may have come in between, filled this one, and installed another.
                return if left / CHUNK_BYTES == self.cursor.get() / CHUNK_BYTES { 0 } else { left };
            }
        }
    }

    /// Counts an event that had no room and gets none.
    pub fn lose(&self) {
        self.lost.fetch_add(1);
        // The cursor must not run on with each attempt.
        let at = self.cursor.get();
        if !is_slot(at) {
            self.cursor.replace(at, 0);
        }
    }

    /// Returns the events that were lost since this was last called.
    pub fn take_lost(&self) -> usize {
        let lost = self.lost.get();
        self.lost.fetch_add(lost.wrapping_neg());
        lost
    }
}

/// Returns whether a cursor is at a slot.
#[inline(always)]
fn is_slot(at: usize) -> bool {
    at % CHUNK_BYTES >= CHUNK_HEAD_BYTES
}
