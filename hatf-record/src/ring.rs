//! The ring: many producers in the recorded program, one consumer in `hatf record`.
//!
//! A page of header, then 2^k slots of 64 bytes. A producer draws a ticket (`tail`), waits until the
//! consumer has passed the ticket one lap before (`head`), and owns the slot `ticket mod 2^k` from
//! the moment its compare-and-swap takes it from *free* to *writing*. The states of different laps differ, so that neither
//! side can mistake an old slot for a new one:
//!
//! | word | meaning |
//! | --- | --- |
//! | `lap * 4` | free for the ticket of that lap |
//! | `lap * 4 + 1` | being written |
//! | `lap * 4 + 2` | published |
//!
//! Fresh memory is zero: every slot is free for lap 0.
//!
//! A thread that is stopped for good between its ticket and its publication (by a signal handler
//! that never returns, or by a collector that waits for other threads) must stop nobody else. The
//! consumer may abandon a ticket: it takes a *free* slot on to the next lap, so that the late
//! producer's compare-and-swap fails and its event is dropped; a slot that is *being written* it
//! leaves to its owner, and passes by on each lap until it is published. Only the owner of a slot
//! ever writes the payload. Lost events are counted.
//!
//! Every word is an atomic, those between the groups of the header, too: another process may write anything anywhere at
//! any time, and neither side's behaviour is then undefined. What is read is a number to be checked, not a promise.

use core::sync::atomic::Ordering;

use crate::event::Words;
use crate::layout::{HEADER_BYTES, Header, MAGIC, SLOT_BYTES, Slot, VERSION};

/// The difference between a slot's state words of one lap and the next.
const LAP: u64 = 4;
const FREE: u64 = 0;
const WRITING: u64 = 1;
const PUBLISHED: u64 = 2;

/// Bytes of a ring of 2^`log2` slots.
#[must_use]
pub const fn bytes_for(log2: u32) -> usize {
    HEADER_BYTES + ((SLOT_BYTES as usize) << log2)
}

/// A view of a ring in mapped memory.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'m> {
    header: &'m Header,
    slots: &'m [Slot],
    /// `slots.len()` is 2 to this power.
    log2: u32,
}

/// The content of a ticket's slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The ticket's event.
    Event(Words),
    /// Not published yet.
    Pending,
    /// Held by a producer whose ticket was abandoned a lap ago or earlier.
    Held,
}

impl<'m> Ring<'m> {
    /// Makes a ring in zeroed memory.
    ///
    /// # Safety
    /// `memory` is page-aligned, valid for reads and writes for `'m`, [`bytes_for`]`(log2)` bytes long,
    /// and accessed through rings only.
    pub unsafe fn create(memory: *mut u8, log2: u32) -> Self {
        // SAFETY: the caller's promise, and the length is the one asked for.
        let ring: Ring<'m> = unsafe { Self::view(memory, log2) };
        ring.header.version.store(VERSION, Ordering::Relaxed);
        ring.header.slot_bytes.store(SLOT_BYTES, Ordering::Relaxed);
        ring.header.slots.store(1 << log2, Ordering::Relaxed);
        ring.header.magic.store(MAGIC, Ordering::Release);
        ring
    }

    /// Views a ring that [`Ring::create`] made, in this process or another; `None` if there is none of this version and length.
    ///
    /// # Safety
    /// `memory` is page-aligned, valid for reads and writes for `'m`, `bytes` long, and accessed
    /// through rings only.
    pub unsafe fn attach(memory: *mut u8, bytes: usize) -> Option<Self> {
        let log2 = bytes.checked_sub(HEADER_BYTES)?.checked_div(SLOT_BYTES as usize)?.checked_ilog2()?;
        if bytes != bytes_for(log2) {
            return None;
        }
        // SAFETY: the caller's promise, and the length was just checked.
        let ring: Ring<'m> = unsafe { Self::view(memory, log2) };
        let header = ring.header;
        (header.magic.load(Ordering::Acquire) == MAGIC
            && header.version.load(Ordering::Relaxed) == VERSION
            && header.slot_bytes.load(Ordering::Relaxed) == SLOT_BYTES
            && header.slots.load(Ordering::Relaxed) == 1 << log2)
            .then_some(ring)
    }

    /// # Safety
    /// As for [`Ring::create`].
    unsafe fn view(memory: *mut u8, log2: u32) -> Self {
        // SAFETY: the memory holds a header page and 2^log2 slots, both made of atomics only, for
        // which every bit pattern is a value and shared writes are no race.
        unsafe {
            Self {
                header: &*memory.cast::<Header>(),
                slots: core::slice::from_raw_parts(memory.add(HEADER_BYTES).cast(), 1 << log2),
                log2,
            }
        }
    }

    /// Returns the counters that both sides share.
    #[must_use]
    pub fn header(&self) -> &'m Header {
        self.header
    }

    /// Returns the number of slots.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        1 << self.log2
    }

    /// Returns where the ring lies: its first byte, and its length.
    #[must_use]
    pub fn memory(&self) -> (*mut u8, usize) {
        (core::ptr::from_ref(self.header).cast_mut().cast(), bytes_for(self.log2))
    }

    /// Has the kernel make the ring's pages present, so that the first lap is as fast as the others. Kernels before 5.14 do
    /// not know how; nothing is lost then but time.
    pub fn prefault(&self) {
        let slots = self.slots.as_ptr().cast_mut().cast();
        // SAFETY: the ring's own pages; the advice changes no byte.
        unsafe { libc::madvise(slots, size_of_val(self.slots), libc::MADV_POPULATE_WRITE) };
    }

    /// Returns the number of tickets drawn so far.
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.header.tail.load(Ordering::Acquire)
    }

    /// Returns the number of tickets consumed so far.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.header.head.load(Ordering::Acquire)
    }

    /// Puts an event into the ring. While the ring is full, calls `wait`; if that returns `false`, the event is dropped and
    /// counted, and `false` is returned.
    #[inline]
    pub fn push(&self, words: &Words, wait: impl FnMut() -> bool) -> bool {
        self.push_all(core::slice::from_ref(words), wait)
    }

    /// Puts several events into the ring with nobody else's between them.
    #[inline]
    pub fn push_all(&self, events: &[Words], mut wait: impl FnMut() -> bool) -> bool {
        let first = self.header.tail.fetch_add(events.len() as u64, Ordering::AcqRel);
        for (number, words) in events.iter().enumerate() {
            let ticket = first.wrapping_add(number as u64);
            // Once the consumer has abandoned the ticket it is past it: no wait then.
            while ticket.checked_sub(self.head()).is_some_and(|ahead| ahead >= self.capacity()) {
                if !wait() {
                    self.header.dropped.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
            }
            if !self.put(ticket, words) {
                self.header.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        true
    }

    /// Writes the slot of a ticket; `false` if the consumer has abandoned it.
    #[inline]
    fn put(&self, ticket: u64, words: &Words) -> bool {
        let Some((slot, lap)) = self.slot(ticket) else { return false };
        let claim = slot.state.compare_exchange(lap | FREE, lap | WRITING, Ordering::Acquire, Ordering::Relaxed);
        if claim.is_err() {
            return false;
        }
        for (to, from) in slot.words.iter().zip(words) {
            to.store(*from, Ordering::Relaxed);
        }
        slot.state.store(lap | PUBLISHED, Ordering::Release);
        true
    }

    /// Returns the slot of a ticket, and the state word of its lap.
    #[inline]
    fn slot(&self, ticket: u64) -> Option<(&'m Slot, u64)> {
        // The low bits of a ticket fit usize: they number slots in memory.
        #[expect(clippy::cast_possible_truncation)]
        let index = (ticket & (self.capacity() - 1)) as usize;
        Some((self.slots.get(index)?, (ticket >> self.log2).wrapping_mul(LAP)))
    }

    /// Takes the event of a ticket, and frees its slot for the next lap.
    pub(crate) fn take(&self, ticket: u64) -> Taken {
        let Some((slot, lap)) = self.slot(ticket) else { return Taken::Held };
        let state = slot.state.load(Ordering::Acquire);
        if state == lap | PUBLISHED {
            let words = core::array::from_fn(|n| slot.words[n].load(Ordering::Relaxed));
            slot.state.store(lap.wrapping_add(LAP), Ordering::Release);
            return Taken::Event(words);
        }
        if state == lap | FREE || state == lap | WRITING {
            return Taken::Pending;
        }
        // Published too late, or overwritten: its writer is done with it.
        if state & 3 != WRITING {
            slot.state.store(lap.wrapping_add(LAP), Ordering::Release);
        }
        Taken::Held
    }

    /// Abandons a ticket: its producer, should it still come, will drop its event. `false` if the event was published just
    /// now, and can be taken.
    pub(crate) fn abandon(&self, ticket: u64) -> bool {
        let Some((slot, lap)) = self.slot(ticket) else { return true };
        let free = lap | FREE;
        match slot.state.compare_exchange(free, lap.wrapping_add(LAP), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            // One that is being written is left to its owner: the next lap finds it held.
            Err(state) => state != lap | PUBLISHED,
        }
    }

    /// Tells producers how far the consumer is. Returns whether some wait.
    pub(crate) fn release(&self, head: u64) -> bool {
        self.header.head.store(head, Ordering::SeqCst);
        if self.header.waiting.load(Ordering::SeqCst) == 0 {
            return false;
        }
        self.header.wakeups.fetch_add(1, Ordering::SeqCst);
        true
    }
}
