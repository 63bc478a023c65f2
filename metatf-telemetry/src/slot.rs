//! What a thread has of its own: its place in its ring.

use crate::sync::Ordering::{Relaxed, Release};
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, compiler_fence};
use core::marker::PhantomData;
use core::ptr;

use crate::layout::{RingHead, head_of};
use crate::ring::{OwnRing, RingPart};

/// A thread's place in its ring. Generated code has one for each thread; it is a thread's own, and so neither `Send` nor `Sync`.
///
/// All of it is atomic for the thread's signal handlers alone: each access is a plain instruction.
#[derive(Debug)]
pub struct Slot {
    /// Not 0 while the thread emits, or must not.
    pub(crate) busy: AtomicU32,
    /// Where the next event goes.
    pub(crate) position: AtomicU64,
    /// Up to here the thread may write.
    pub(crate) limit: AtomicU64,
    /// Bytes of the ring, less one.
    pub(crate) mask: AtomicU64,
    pub(crate) events: AtomicPtr<u8>,
    pub(crate) ring: AtomicPtr<RingHead>,
    own: AtomicPtr<OwnRing>,
    /// The telemetry that the ring is of. Never followed.
    of: AtomicPtr<()>,
    /// Number of the thread.
    pub(crate) thread: AtomicU32,
    /// Whether the ring knows that its events are this thread's.
    pub(crate) introduced: AtomicU32,
    /// When the thread found no ring: nothing has changed since.
    pub(crate) refused_at: AtomicU32,
    /// Whether the thread waited in vain, and there was no room since.
    pub(crate) gave_up: AtomicU32,
    /// Whether it takes a small ring: that of rare events.
    pub(crate) is_rare: bool,
    of_one_thread: PhantomData<*mut u8>,
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

impl Slot {
    /// Makes the place of a thread that has no ring yet.
    #[must_use]
    pub const fn new() -> Self {
        Self::of_ring(false)
    }

    /// Makes that of its rare events, which have a small ring.
    #[must_use]
    pub const fn rare() -> Self {
        Self::of_ring(true)
    }

    const fn of_ring(is_rare: bool) -> Self {
        Self {
            busy: AtomicU32::new(0),
            position: AtomicU64::new(0),
            limit: AtomicU64::new(0),
            mask: AtomicU64::new(0),
            events: AtomicPtr::new(ptr::null_mut()),
            ring: AtomicPtr::new(ptr::null_mut()),
            own: AtomicPtr::new(ptr::null_mut()),
            of: AtomicPtr::new(ptr::null_mut()),
            thread: AtomicU32::new(0),
            introduced: AtomicU32::new(0),
            refused_at: AtomicU32::new(u32::MAX),
            gave_up: AtomicU32::new(0),
            is_rare,
            of_one_thread: PhantomData,
        }
    }

    /// Begins an event; false if the thread is at one, and this is a signal handler.
    #[inline(always)]
    pub(crate) fn enter(&self) -> bool {
        if self.busy.load(Relaxed) != 0 {
            return false;
        }
        self.busy.store(1, Relaxed);
        compiler_fence(crate::sync::Ordering::SeqCst);
        true
    }

    /// Ends it.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        compiler_fence(crate::sync::Ordering::SeqCst);
        self.busy.store(0, Relaxed);
    }

    /// Whether this many bytes can be written.
    #[inline(always)]
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.position.load(Relaxed) + bytes <= self.limit.load(Relaxed)
    }

    /// Returns the position of the next event, and where that is. Events do not cross the end of a block, so all of one lies behind.
    #[inline(always)]
    pub(crate) fn place(&self) -> (u64, *mut u64) {
        let position = self.position.load(Relaxed);
        #[allow(clippy::cast_possible_truncation, reason = "a ring is at most 8 MiB")]
        let at = (position & self.mask.load(Relaxed)) as usize;
        (position, self.events.load(Relaxed).wrapping_add(at).cast())
    }

    /// Stores the head of the event that begins at a [`place`](Self::place), and makes it whole.
    ///
    /// # Safety
    /// There is room for it, its words are stored, and the thread has entered.
    #[inline(always)]
    pub(crate) unsafe fn publish(&self, (position, place): (u64, *mut u64), event: u16, words: u16) {
        let next = position + 8 + 8 * u64::from(words);
        // SAFETY: as the caller promises; a thread that has room has a ring.
        unsafe {
            store(place, head_of(event, words, position));
            (*self.ring.load(Relaxed)).head.store(next, Release);
        }
        self.position.store(next, Relaxed);
    }

    /// Stores an event of such words.
    ///
    /// # Safety
    /// There is room for it, and the thread has entered.
    #[inline(always)]
    pub(crate) unsafe fn put<const W: usize>(&self, event: u16, words: [u64; W]) {
        let place = self.place();
        // SAFETY: as the caller promises. A DTD's records have at most 255 leaves, so the number of words fits.
        #[allow(clippy::cast_possible_truncation)]
        unsafe {
            for (index, word) in words.into_iter().enumerate() {
                store(place.1.add(1 + index), word);
            }
            self.publish(place, event, W as u16);
        }
    }

    /// Gives the thread a ring of a telemetry: from `position` on, up to the end of a block.
    pub(crate) fn attach<T>(&self, of: *const T, ring: &RingPart, position: u64, thread: u32) {
        self.of.store(of.cast_mut().cast(), Relaxed);
        self.thread.store(thread, Relaxed);
        self.introduced.store(0, Relaxed);
        self.gave_up.store(0, Relaxed);
        self.position.store(position, Relaxed);
        self.mask.store(ring.bytes - 1, Relaxed);
        self.events.store(ring.events, Relaxed);
        self.own.store(ptr::from_ref(ring.own).cast_mut(), Relaxed);
        self.ring.store(ptr::from_ref(ring.head).cast_mut(), Relaxed);
        self.limit.store(position.next_multiple_of(ring.block()), Relaxed);
    }

    /// Whether its ring is one of this telemetry's.
    pub(crate) fn is_of<T>(&self, of: *const T) -> bool {
        !self.is_detached() && ptr::eq(self.of.load(Relaxed), of.cast())
    }

    /// Returns the ring that it has, or had.
    pub(crate) fn part(&self) -> Option<RingPart> {
        // SAFETY: a slot has no ring, or one of a mapping, which stays for ever; and so does what the process knows of it.
        let (head, own) = unsafe { (self.ring.load(Relaxed).as_ref()?, self.own.load(Relaxed).as_ref()?) };
        Some(RingPart { head, own, events: self.events.load(Relaxed), bytes: self.mask.load(Relaxed) + 1 })
    }

    /// Forgets the ring. An event in progress may end there.
    pub(crate) fn detach(&self) {
        self.limit.store(0, Relaxed);
        self.position.store(0, Relaxed);
    }

    /// Whether the thread has no ring.
    pub(crate) fn is_detached(&self) -> bool {
        self.limit.load(Relaxed) == 0
    }
}

/// Stores a word of an event.
///
/// # Safety
/// It is in the room that the thread has.
#[inline(always)]
pub(crate) unsafe fn store(at: *mut u64, word: u64) {
    // SAFETY: below its limit a thread's ring has memory; positions are multiples of 8.
    unsafe { AtomicU64::from_ptr(at) }.store(word, Relaxed);
}
