//! The ring: many producers in the recorded program, one consumer in `hatf record`.
//!
//! A page of header, then 2^k slots of 64 bytes. A producer draws a ticket (`tail`), waits until the
//! consumer has passed the ticket one lap before (`head`), and owns the slot `ticket mod 2^k` from
//! the moment its compare-and-swap takes it from *free* to *writing*. Each state is told apart by
//! lap, so that neither side can mistake an old slot for a new one:
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
//! consumer may give up on a ticket: it takes a *free* slot on to the next lap, so that the late
//! producer's compare-and-swap fails and its event is dropped; a slot that is *being written* it
//! leaves to its owner, and passes by on each lap until it is published. Only the owner of a slot
//! ever writes the payload. Lost events are counted.
//!
//! Every word is an atomic: whatever a broken program writes over the ring, the consumer reads
//! numbers, and checks them.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::event::Words;

/// The first word of a ring.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HATFRING");
/// The version of this layout.
pub const VERSION: u32 = 1;
/// Where the slots begin.
const HEADER_BYTES: usize = 4096;

const FREE: u64 = 0;
const WRITING: u64 = 1;
const PUBLISHED: u64 = 2;

/// What both sides know about the ring. The groups that different sides write stand apart, each on
/// cache lines of its own.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Header {
    magic: AtomicU64,
    version: AtomicU32,
    slot_bytes: AtomicU32,
    slots: AtomicU64,
    /// `CLOCK_MONOTONIC` in nanoseconds when recording began.
    pub start: AtomicU64,
    /// The process of `hatf record`.
    pub parent: AtomicU32,
    /// Not 0: nobody reads any more.
    pub closed: AtomicU32,
    _before_program: [u64; 11],
    /// The recorded process, 0 before it has loaded the recorder.
    pub process: AtomicU32,
    /// Program images that the recorded process loaded.
    pub images: AtomicU32,
    /// Processes that the recorded one forked.
    pub forks: AtomicU32,
    /// Other processes that loaded the recorder.
    pub elsewhere: AtomicU32,
    /// The number the last thread got, less 1: the main thread needs no counting.
    pub threads: AtomicU32,
    _pad: u32,
    /// Events that a producer had to drop.
    pub dropped: AtomicU64,
    /// Times that a producer found the ring full.
    pub waits: AtomicU64,
    _before_tail: [u64; 11],
    tail: AtomicU64,
    _before_head: [u64; 15],
    head: AtomicU64,
    /// Producers that wait for room.
    pub waiting: AtomicU32,
    /// Changes when there is room again: the futex they wait on.
    pub room: AtomicU32,
    _end: [u64; 14],
}

/// One slot: its state, and the event.
#[repr(C)]
#[derive(Debug, Default)]
struct Slot {
    state: AtomicU64,
    words: [AtomicU64; 7],
}

const _: () = assert!(size_of::<Slot>() == 64 && size_of::<Header>() == 512);

/// Bytes of a ring of 2^`log2` slots.
#[must_use]
pub const fn bytes_for(log2: u32) -> usize {
    HEADER_BYTES + (size_of::<Slot>() << log2)
}

/// A view of a ring in mapped memory.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'m> {
    header: &'m Header,
    slots: &'m [Slot],
    /// `slots.len()` is 2 to this power.
    log2: u32,
}

/// What the consumer finds in the slot of a ticket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The ticket's event.
    Event(Words),
    /// Not published yet.
    NotYet,
    /// Held by a producer that was given up a lap ago or earlier.
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
        ring.header.slot_bytes.store(64, Ordering::Relaxed);
        ring.header.slots.store(1 << log2, Ordering::Relaxed);
        ring.header.magic.store(MAGIC, Ordering::Release);
        ring
    }

    /// The ring that [`Ring::create`] made in another process; `None` if there is none of this
    /// version and length.
    ///
    /// # Safety
    /// `memory` is page-aligned, valid for reads and writes for `'m`, `bytes` long, and accessed
    /// through rings only.
    pub unsafe fn attach(memory: *mut u8, bytes: usize) -> Option<Self> {
        let log2 = bytes.checked_sub(HEADER_BYTES)?.checked_div(64)?.checked_ilog2()?;
        if bytes != bytes_for(log2) {
            return None;
        }
        // SAFETY: the caller's promise, and the length was just checked.
        let ring: Ring<'m> = unsafe { Self::view(memory, log2) };
        let header = ring.header;
        (header.magic.load(Ordering::Acquire) == MAGIC
            && header.version.load(Ordering::Relaxed) == VERSION
            && header.slot_bytes.load(Ordering::Relaxed) == 64
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

    /// The counters both sides share.
    #[must_use]
    pub fn header(&self) -> &'m Header {
        self.header
    }

    /// Slots.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        1 << self.log2
    }

    /// Has the kernel make the ring's pages present, so that the first lap is as fast as the others.
    /// Kernels before 5.14 do not know how; nothing is lost then but time.
    pub fn touch(&self) {
        let slots = self.slots.as_ptr().cast_mut().cast();
        // SAFETY: the ring's own pages; the advice changes no byte.
        unsafe { libc::madvise(slots, size_of_val(self.slots), libc::MADV_POPULATE_WRITE) };
    }

    /// Tickets drawn so far.
    #[must_use]
    pub fn drawn(&self) -> u64 {
        self.header.tail.load(Ordering::Acquire)
    }

    /// How far the consumer said it is.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.header.head.load(Ordering::Acquire)
    }

    /// Puts an event into the ring. Where it is full, calls `wait` until there is room, or until it
    /// says `false`: then the event is dropped and counted, and the answer is `false`.
    #[inline]
    pub fn push(&self, words: &Words, wait: impl FnMut() -> bool) -> bool {
        self.push_all(core::slice::from_ref(words), wait)
    }

    /// Puts several events into the ring with nobody else's between them.
    #[inline]
    pub fn push_all(&self, events: &[Words], mut wait: impl FnMut() -> bool) -> bool {
        let first = self.header.tail.fetch_add(events.len() as u64, Ordering::AcqRel);
        for (ticket, words) in (first..).zip(events) {
            // Where the consumer gave the ticket up meanwhile, it is past it: no wait then.
            while self.consumed() + self.capacity() <= ticket {
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

    /// Writes the slot of a ticket, unless it was taken away.
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

    /// The slot of a ticket, and the state word of its lap.
    #[inline]
    fn slot(&self, ticket: u64) -> Option<(&'m Slot, u64)> {
        // The low bits of a ticket fit usize: they number slots in memory.
        #[expect(clippy::cast_possible_truncation)]
        let index = (ticket & (self.capacity() - 1)) as usize;
        Some((self.slots.get(index)?, (ticket >> self.log2) << 2))
    }

    /// Looks at the slot of a ticket; an event is taken out, and the slot is free for the next lap.
    pub(crate) fn take(&self, ticket: u64) -> Found {
        let Some((slot, lap)) = self.slot(ticket) else { return Found::Held };
        let state = slot.state.load(Ordering::Acquire);
        if state == lap | PUBLISHED {
            let words = core::array::from_fn(|n| slot.words[n].load(Ordering::Relaxed));
            slot.state.store(lap + 4, Ordering::Release);
            return Found::Event(words);
        }
        if state == lap | FREE || state == lap | WRITING {
            return Found::NotYet;
        }
        // Published too late, or overwritten: whoever wrote it is done with it.
        if state & 3 != WRITING {
            slot.state.store(lap + 4, Ordering::Release);
        }
        Found::Held
    }

    /// Gives up on a ticket; its producer, should it still come, will drop its event. `false`: it
    /// came just now, and the event can be taken.
    pub(crate) fn abandon(&self, ticket: u64) -> bool {
        let Some((slot, lap)) = self.slot(ticket) else { return true };
        let free = lap | FREE;
        match slot.state.compare_exchange(free, lap + 4, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            // One that is being written is left to its owner: the next lap finds it held.
            Err(state) => state != lap | PUBLISHED,
        }
    }

    /// Tells producers how far the consumer is. Answers whether some are waiting.
    pub(crate) fn release(&self, head: u64) -> bool {
        self.header.head.store(head, Ordering::SeqCst);
        if self.header.waiting.load(Ordering::SeqCst) == 0 {
            return false;
        }
        self.header.room.fetch_add(1, Ordering::SeqCst);
        true
    }
}
