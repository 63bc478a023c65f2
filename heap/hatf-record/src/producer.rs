//! The writing end of a spool, which a thread uses to write its events.
//!
//! A signal handler may interrupt a thread between any two instructions and write its own events. Therefore a single
//! instruction reserves slots, and a single instruction installs a new chunk: only `cursor` determines the next slot.
//! Chunks are at multiples of their length and begin with bytes that are not slots. A cursor in these bytes (or 0,
//! before the first chunk) means that there is no room, which also detects a reservation that runs past the end of a
//! chunk.

use crate::sync::Ordering;
use core::cell::Cell;
use core::marker::PhantomData;

use crate::clock::Clock;
use crate::event::{Flags, Head, Kind, SLOT_BYTES, Slot, is_narrow, narrow, stamp_slot};
use crate::layout::{CHUNK_BYTES, CHUNK_HEAD_BYTES, SharedSlot};
use crate::local_atomic::{Interruptible, Local, LocalAtomic, interruptible};
use crate::spool::Chunk;

/// If two stamps differ in bits above this number of bits, their low half alone does not suffice, so a [`Kind::Stamp`]
/// is written.
const EPOCH_BITS: u32 = 31;

/// The owner of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// The number of the thread.
    pub thread: u32,
    /// The process ID.
    pub process: u32,
    /// The 1-based number of the process image.
    pub image: u32,
    /// The thread ID in the system.
    pub task: u32,
}

/// A marker for a value that belongs to one thread at a time.
type OneThread = PhantomData<Cell<()>>;

impl Interruptible for OneThread {}

interruptible! {
    /// The state of a thread that writes events. It is zero when the thread starts.
    #[derive(Debug, Default)]
    #[repr(C)]
    pub struct Producer {
        cursor: LocalAtomic,
        /// The high bits of the stamps.
        epoch: Local<u64>,
        /// The number of chunks so far.
        chunks: LocalAtomic,
        /// The number of events that were dropped and not yet counted in the spool.
        lost: LocalAtomic,
        /// The address of the first slot in the last installed chunk, or 0 if there is none.
        chunk: Local<usize>,
        one_thread: OneThread,
    }
}

impl Producer {
    /// Creates a producer without a chunk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes an event without additional numbers, if there is room and the event needs no special handling. Returns
    /// `false` otherwise, in which case the caller must use [`Producer::put_slots`].
    ///
    /// # Safety
    /// The [installed](Producer::install) chunk must still be mapped.
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
        // SAFETY: a slot of the chunk, which is mapped by the caller's promise: `at` is a cursor that was inside of it.
        let slot = unsafe { &*(at as *const SharedSlot) };
        slot.words[1].store(second, Ordering::Relaxed);
        slot.words[0].store(first, Ordering::Release);
        same_epoch
    }

    /// Writes an event of several slots. If the chunk has no room for it, ends the chunk and returns `false`.
    ///
    /// # Safety
    /// The requirements are the same as for [`Producer::put`].
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
            // SAFETY: these slots are in the chunk and were just reserved; otherwise as in `put`.
            let put = |number: usize, [first, second]: Slot| unsafe {
                let slot = &*((at + number * SLOT_BYTES) as *const SharedSlot);
                slot.words[1].store(second, Ordering::Relaxed);
                slot.words[0].store(first, Ordering::Release);
            };
            if !fits {
                put(0, [Kind::End as u64, 0]);
                return false;
            }
            // Write the slots that describe the event first, so that a killed process never leaves the event without
            // them. Write the first slot of the event itself last.
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

    /// Discards the chunk and the entire state, so that another spool can be used.
    pub fn leave(&self) {
        for word in [&self.cursor, &self.chunks, &self.lost] {
            word.fetch_add(word.get().wrapping_neg());
        }
        self.epoch.set(0);
        self.chunk.set(0);
    }

    /// Returns the address of the first slot in the current or last chunk, or 0 if there is none.
    #[must_use]
    pub fn chunk(&self) -> usize {
        self.chunk.get()
    }

    /// Returns whether there is a chunk with room.
    #[must_use]
    pub fn has_room(&self) -> bool {
        is_slot(self.cursor.get())
    }

    /// Continues in a chunk of zeros. If a signal handler has installed another chunk in the meantime, the given one
    /// stays empty. Returns the address of the first slot in the chunk that will no longer be written to, or 0 if there
    /// is none.
    pub fn install(&self, chunk: &Chunk<'_>, owner: Owner, stamp: u64, nanoseconds: u64) -> usize {
        let head = chunk.head();
        head.stamp.store(stamp, Ordering::Relaxed);
        head.nanoseconds.store(nanoseconds, Ordering::Relaxed);
        head.image.store(u64::from(owner.process) | u64::from(owner.image) << 32, Ordering::Relaxed);
        head.task.store(u64::from(owner.task), Ordering::Relaxed);
        // Take the number after the first writes to the chunk: such a write may fault and let signals in, and a handler
        // that jumps away would leave a number without a chunk.
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
                // A handler may have run in between, filled this chunk and installed another one.
                return if left / CHUNK_BYTES == self.cursor.get() / CHUNK_BYTES { 0 } else { left };
            }
        }
    }

    /// Counts an event that cannot be written for lack of room.
    pub fn lose(&self) {
        self.lost.fetch_add(1);
        // Keep the cursor from advancing with each further attempt.
        let at = self.cursor.get();
        if !is_slot(at) {
            self.cursor.replace(at, 0);
        }
    }

    /// Returns the number of events lost since the previous call.
    pub fn take_lost(&self) -> usize {
        loop {
            // A signal handler may take them in between.
            let lost = self.lost.get();
            if self.lost.replace(lost, 0) {
                return lost;
            }
        }
    }
}

/// Returns whether a cursor points to a slot.
#[inline(always)]
fn is_slot(at: usize) -> bool {
    at % CHUNK_BYTES >= CHUNK_HEAD_BYTES
}
