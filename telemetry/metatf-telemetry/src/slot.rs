//! The private state of a thread, which is its position in its ring.

use crate::sync::Ordering::{Relaxed, Release};
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, compiler_fence};
use core::marker::PhantomData;
use core::ptr;

use crate::layout::{RingHead, head_of};
use crate::ring::{OwnRing, RingPart};

/// The position of a thread in its ring. Generated code declares one slot per thread. A slot belongs to a single
/// thread, so it is neither `Send` nor `Sync`.
///
/// The fields are atomic only because of the thread's signal handlers, and each access is a plain instruction.
#[derive(Debug)]
pub struct Slot {
    /// Nonzero while the thread emits an event, or must not emit one.
    pub(crate) busy: AtomicU32,
    /// The position of the next event.
    pub(crate) position: AtomicU64,
    /// The position up to which the thread may write.
    pub(crate) limit: AtomicU64,
    /// The size of the ring in bytes, minus one.
    pub(crate) mask: AtomicU64,
    pub(crate) events: AtomicPtr<u8>,
    pub(crate) ring: AtomicPtr<RingHead>,
    own: AtomicPtr<OwnRing>,
    /// The telemetry that owns the ring. This pointer is never dereferenced.
    of: AtomicPtr<()>,
    /// The thread ID.
    pub(crate) thread: AtomicU32,
    /// Whether the ring contains an event that identifies this thread.
    pub(crate) introduced: AtomicU32,
    /// The value of the telemetry's `moved` counter when the thread found no ring. While it is unchanged, no ring is free.
    pub(crate) refused_at: AtomicU32,
    /// Whether the thread's last attempt to find room failed. If so, the thread does not wait for room again.
    pub(crate) gave_up: AtomicU32,
    /// Whether the slot uses a small ring, for rare events.
    pub(crate) is_rare: bool,
    of_one_thread: PhantomData<*mut u8>,
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

impl Slot {
    /// Creates a slot for a thread, initially without a ring.
    #[must_use]
    pub const fn new() -> Self {
        Self::of_ring(false)
    }

    /// Creates the slot for rare events, which uses a small ring.
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

    /// Starts an event. Returns false if the thread must not emit one, for example in a signal handler that interrupted
    /// another event.
    #[inline(always)]
    pub(crate) fn enter(&self) -> bool {
        if self.busy.load(Relaxed) != 0 {
            return false;
        }
        self.busy.store(1, Relaxed);
        compiler_fence(crate::sync::Ordering::SeqCst);
        true
    }

    /// Ends the event.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        compiler_fence(crate::sync::Ordering::SeqCst);
        self.busy.store(0, Relaxed);
    }

    /// Returns whether this many bytes can be written.
    #[inline(always)]
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.position.load(Relaxed) + bytes <= self.limit.load(Relaxed)
    }

    /// Returns the position and the address of the next event. Events do not cross the end of a block, so the event is
    /// contiguous.
    #[inline(always)]
    pub(crate) fn place(&self) -> (u64, *mut u64) {
        let position = self.position.load(Relaxed);
        #[allow(clippy::cast_possible_truncation, reason = "a ring is at most 8 MiB")]
        let at = (position & self.mask.load(Relaxed)) as usize;
        (position, self.events.load(Relaxed).wrapping_add(at).cast())
    }

    /// Completes the event at a [`place`](Self::place) by storing its head.
    ///
    /// # Safety
    /// There must be room for the event, its words must be stored, and the thread must have entered.
    #[inline(always)]
    pub(crate) unsafe fn publish(&self, (position, place): (u64, *mut u64), event: u16, words: u16) {
        let next = position + 8 + 8 * u64::from(words);
        // SAFETY: guaranteed by the caller; a thread that has room has a ring.
        unsafe {
            store(place, head_of(event, words, position));
            (*self.ring.load(Relaxed)).head.store(next, Release);
        }
        self.position.store(next, Relaxed);
    }

    /// Stores an event with these words.
    ///
    /// # Safety
    /// There must be room for the event, and the thread must have entered.
    #[inline(always)]
    pub(crate) unsafe fn put<const W: usize>(&self, event: u16, words: [u64; W]) {
        let place = self.place();
        // SAFETY: guaranteed by the caller. The records of a DTD have at most 255 leaves, so the number of words fits.
        #[allow(clippy::cast_possible_truncation)]
        unsafe {
            for (index, word) in words.into_iter().enumerate() {
                store(place.1.add(1 + index), word);
            }
            self.publish(place, event, W as u16);
        }
    }

    /// Attaches a ring of a telemetry to the thread, from `position` up to the end of a block.
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

    /// Returns whether the ring belongs to this telemetry.
    pub(crate) fn is_of<T>(&self, of: *const T) -> bool {
        !self.is_detached() && ptr::eq(self.of.load(Relaxed), of.cast())
    }

    /// Returns the current or previous ring.
    pub(crate) fn part(&self) -> Option<RingPart> {
        // SAFETY: a slot has either no ring or one in a mapping. The mapping and the private state of its rings are
        // permanent.
        let (head, own) = unsafe { (self.ring.load(Relaxed).as_ref()?, self.own.load(Relaxed).as_ref()?) };
        Some(RingPart { head, own, events: self.events.load(Relaxed), bytes: self.mask.load(Relaxed) + 1 })
    }

    /// Detaches the ring. An event in progress may still be completed in the ring.
    pub(crate) fn detach(&self) {
        self.limit.store(0, Relaxed);
        self.position.store(0, Relaxed);
    }

    /// Returns whether the thread has no ring.
    pub(crate) fn is_detached(&self) -> bool {
        self.limit.load(Relaxed) == 0
    }
}

/// Stores a word of an event.
///
/// # Safety
/// The address must be within the part of the ring that the thread may write.
#[inline(always)]
pub(crate) unsafe fn store(at: *mut u64, word: u64) {
    // SAFETY: a thread's ring has memory below its limit, and positions are multiples of 8.
    unsafe { AtomicU64::from_ptr(at) }.store(word, Relaxed);
}
