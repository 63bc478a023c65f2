//! The spool: a shared file that consists of chunks of events. Each chunk belongs to one thread.
//!
//! The file contains a header, a state word for each chunk, and the chunks. A thread that has no chunk, or has filled
//! its chunk, takes the next ready chunk. The thread then owns the chunk exclusively and writes events with plain
//! stores. `hatf` makes chunks ready in advance, so that threads need no system calls, and reclaims chunks after saving
//! their events elsewhere.
//!
//! | state | meaning |
//! | --- | --- |
//! | `ABSENT` | no memory or disk blocks; contains zeros once it is allocated |
//! | `READY` | contains zeros and has memory; a thread may take it |
//! | `TAKEN` | contains, or will contain, events of a thread |
//! | `GIVEN_UP` | unmapped by the program, which will not take it again |
//!
//! A slot is written once, and its first word is written last. Therefore every nonzero slot is complete, and the spool
//! of a killed process can be read like the spool of a running process: see [`Chunk`].
//!
//! Every word is an atomic: another process may write anything anywhere at any time without causing undefined behaviour
//! on either side. Values read from the file must be validated.

use crate::sync::{AtomicU32, Ordering};

use crate::event::Slot;
use crate::layout::{
    CHUNK_BYTES, CHUNK_BYTES_WORD, CHUNK_HEAD_BYTES, CHUNK_SLOTS, CHUNKS_MAX, ChunkHead, Header, MAGIC, SharedSlot,
    VERSION,
};

const ABSENT: u32 = 0;
const READY: u32 = 1;
const TAKEN: u32 = 2;
const GIVEN_UP: u32 = 3;

/// Returns the number of bytes before the first chunk.
const fn area(chunks: usize) -> usize {
    (size_of::<Header>() + chunks * size_of::<AtomicU32>()).next_multiple_of(CHUNK_BYTES)
}

/// Returns the size in bytes of a spool with this many chunks.
#[must_use]
pub const fn bytes_for(chunks: usize) -> usize {
    area(chunks) + chunks * CHUNK_BYTES
}

/// Returns the file offset of a chunk in a spool with this many chunks.
#[must_use]
pub const fn offset_of(chunks: usize, chunk: usize) -> usize {
    area(chunks) + chunk * CHUNK_BYTES
}

/// A view of a spool in mapped memory. It covers all chunks, or as many as could be mapped.
#[derive(Clone, Copy, Debug)]
pub struct Spool<'m> {
    header: &'m Header,
    states: &'m [AtomicU32],
    first: *mut u8,
    mapped: usize,
}

// SAFETY: the underlying memory consists of atomics.
unsafe impl Send for Spool<'_> {}
// SAFETY: as above.
unsafe impl Sync for Spool<'_> {}

impl<'m> Spool<'m> {
    /// Creates a spool in zeroed memory.
    ///
    /// # Safety
    /// `memory` must be aligned to [`CHUNK_BYTES`], valid for reads and writes for `'m`, [`bytes_for`]`(chunks)` bytes
    /// long, and accessed through spools only. `chunks` must not exceed [`CHUNKS_MAX`].
    pub unsafe fn create(memory: *mut u8, chunks: usize) -> Self {
        // SAFETY: by the caller's promise.
        let spool: Spool<'m> = unsafe { Self::view(memory, chunks, chunks) };
        let header = spool.header;
        header.version.store(VERSION, Ordering::Relaxed);
        header.chunk_bytes.store(CHUNK_BYTES_WORD, Ordering::Relaxed);
        header.chunks.store(chunks as u64, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        spool
    }

    /// Returns a view of a spool created by [`Spool::create`] in this process or another one. The first `bytes` bytes
    /// of the spool are mapped. Returns `None` if there is no spool of this version, or if not even one chunk is
    /// mapped.
    ///
    /// # Safety
    /// `memory` must be aligned to [`CHUNK_BYTES`], valid for reads and writes for `'m`, `bytes` long, and accessed
    /// through spools only.
    pub unsafe fn attach(memory: *mut u8, bytes: usize) -> Option<Self> {
        if bytes < size_of::<Header>() {
            return None;
        }
        // SAFETY: by the caller's promise: a header of atomics, for which every bit pattern is a valid value.
        let header: &'m Header = unsafe { &*memory.cast::<Header>() };
        let chunks = usize::try_from(header.chunks.load(Ordering::Relaxed)).ok().filter(|n| *n <= CHUNKS_MAX)?;
        let fits = header.magic.load(Ordering::Acquire) == MAGIC
            && header.version.load(Ordering::Relaxed) == VERSION
            && header.chunk_bytes.load(Ordering::Relaxed) == CHUNK_BYTES_WORD;
        // SAFETY: by the caller's promise.
        if fits { unsafe { Self::again(memory, bytes, chunks) } } else { None }
    }

    /// Returns a view of a spool with this many chunks, regardless of its current header. Returns `None` if the first
    /// `bytes` bytes contain no complete chunk.
    ///
    /// # Safety
    /// The requirements are the same as for [`Spool::attach`].
    #[must_use]
    pub unsafe fn again(memory: *mut u8, bytes: usize, chunks: usize) -> Option<Self> {
        let mapped = (bytes.checked_sub(area(chunks.min(CHUNKS_MAX)))? / CHUNK_BYTES).min(chunks);
        // SAFETY: by the caller's promise; the area and the mapped chunks are inside of `bytes`.
        (mapped > 0 && chunks <= CHUNKS_MAX).then(|| unsafe { Self::view(memory, chunks, mapped) })
    }

    /// # Safety
    /// The requirements are the same as for [`Spool::create`], except that only `mapped` chunks need to be mapped.
    unsafe fn view(memory: *mut u8, chunks: usize, mapped: usize) -> Self {
        // SAFETY: the header and states consist of atomics only, for which every bit pattern is a valid value and
        // shared writes are not a race; they are in the area before the first chunk.
        unsafe {
            Self {
                header: &*memory.cast::<Header>(),
                states: core::slice::from_raw_parts(memory.add(size_of::<Header>()).cast(), chunks),
                first: memory.add(area(chunks)),
                mapped,
            }
        }
    }

    /// Returns the header, which both sides share.
    #[must_use]
    pub fn header(&self) -> &'m Header {
        self.header
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.states.len()
    }

    /// Returns the number of mapped chunks.
    #[must_use]
    pub fn mapped(&self) -> usize {
        self.mapped
    }

    /// Returns the location of the spool: its first byte and the length of the mapping.
    #[must_use]
    pub fn memory(&self) -> (*mut u8, usize) {
        let area = area(self.chunks());
        (core::ptr::from_ref(self.header).cast_mut().cast(), area + self.mapped * CHUNK_BYTES)
    }

    /// Returns a mapped chunk.
    #[must_use]
    pub fn chunk(&self, chunk: usize) -> Option<Chunk<'m>> {
        // SAFETY: inside of the mapping; the head and slots consist of atomics only.
        (chunk < self.mapped).then(|| unsafe {
            let first = self.first.add(chunk * CHUNK_BYTES);
            Chunk {
                head: &*first.cast::<ChunkHead>(),
                slots: core::slice::from_raw_parts(first.add(CHUNK_HEAD_BYTES).cast(), CHUNK_SLOTS),
            }
        })
    }

    /// Takes a ready chunk. Returns `None` if no chunk is ready.
    #[must_use]
    pub fn take(&self) -> Option<usize> {
        for _ in 0..self.mapped {
            if self.header.ready.load(Ordering::Acquire) == 0 {
                return None;
            }
            let number = self.header.next.fetch_add(1, Ordering::Relaxed);
            let chunk = usize::try_from(number % self.mapped as u64).unwrap_or_default();
            if self.change(chunk, READY, TAKEN) {
                self.header.ready.fetch_sub(1, Ordering::AcqRel);
                return Some(chunk);
            }
        }
        None
    }

    /// Takes an absent chunk, for use when chunks are no longer made ready. The caller must still allocate its memory.
    #[must_use]
    pub fn take_absent(&self) -> Option<usize> {
        for _ in 0..self.mapped {
            let number = self.header.next.fetch_add(1, Ordering::Relaxed);
            let chunk = usize::try_from(number % self.mapped as u64).unwrap_or_default();
            if self.change(chunk, ABSENT, TAKEN) {
                return Some(chunk);
            }
        }
        None
    }

    /// Retires a chunk permanently before it is unmapped. Returns `false` if a thread owns it.
    #[must_use]
    pub fn give_up(&self, chunk: usize) -> bool {
        // `hatf` makes the chunk ready at most once in the meantime. This loop does not wait for other changes.
        for _ in 0..3 {
            if self.change(chunk, READY, GIVEN_UP) {
                self.header.ready.fetch_sub(1, Ordering::AcqRel);
                return true;
            }
            if self.change(chunk, ABSENT, GIVEN_UP) {
                return true;
            }
            let state = self.states.get(chunk).map_or(GIVEN_UP, |state| state.load(Ordering::Acquire));
            if state != READY && state != ABSENT {
                return state == GIVEN_UP;
            }
        }
        false
    }

    /// Returns a view of the spool that covers only the first `chunks` chunks.
    #[must_use]
    pub fn of_first(&self, chunks: usize) -> Self {
        Self { mapped: chunks.min(self.mapped), ..*self }
    }

    /// Returns the address of a chunk that the original view has mapped.
    #[must_use]
    pub fn place(&self, chunk: usize) -> *mut u8 {
        self.first.wrapping_add(chunk.wrapping_mul(CHUNK_BYTES))
    }

    /// Returns the number of the chunk that contains an address, or `None` if no chunk does.
    #[must_use]
    pub fn number_at(&self, address: usize) -> Option<usize> {
        Some(address.checked_sub(self.first as usize)? / CHUNK_BYTES).filter(|chunk| *chunk < self.chunks())
    }

    /// Returns an unwritten chunk to the spool.
    pub fn give_back(&self, chunk: usize) {
        self.change(chunk, TAKEN, ABSENT);
    }

    /// Makes a chunk ready, which must contain zeros and have memory. Returns `false` if it was not in the expected
    /// state.
    pub fn make_ready(&self, chunk: usize) -> bool {
        let made = self.change(chunk, ABSENT, READY);
        if made {
            self.header.ready.fetch_add(1, Ordering::AcqRel);
        }
        made
    }

    /// Returns the number of ready chunks.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.header.ready.load(Ordering::Acquire) as usize
    }

    /// Returns whether a chunk has no memory.
    #[must_use]
    pub fn is_absent(&self, chunk: usize) -> bool {
        self.states.get(chunk).is_some_and(|state| state.load(Ordering::Acquire) == ABSENT)
    }

    /// Returns whether a thread owns this chunk, or owned it.
    #[must_use]
    pub fn is_taken(&self, chunk: usize) -> bool {
        self.states.get(chunk).is_some_and(|state| state.load(Ordering::Acquire) == TAKEN)
    }

    /// Returns the chunks that threads own or owned.
    pub fn taken(&self) -> impl Iterator<Item = usize> {
        let states = self.states.iter().enumerate();
        states.filter(|(_, state)| state.load(Ordering::Acquire) == TAKEN).map(|(chunk, _)| chunk)
    }

    /// Notifies any threads that are waiting for a chunk. Returns whether the futex [`Header::wakeups`] has changed.
    #[must_use]
    pub fn wakes(&self) -> bool {
        let waits = self.header.waiting.load(Ordering::SeqCst) != 0;
        if waits {
            self.header.wakeups.fetch_add(1, Ordering::SeqCst);
        }
        waits
    }

    /// Shares the parts that threads access in a model, with this many slots per chunk.
    #[cfg(all(loom, test))]
    pub(crate) fn share(&self, slots: usize) {
        use crate::sync::model::Share as _;
        let Header { next, ready, dropped, .. } = self.header;
        next.share();
        ready.share();
        dropped.share();
        self.states.share();
        for Chunk { head, slots: all } in (0..self.mapped).filter_map(|chunk| self.chunk(chunk)) {
            for word in [&head.owner, &head.stamp, &head.nanoseconds, &head.image, &head.task] {
                word.share();
            }
            all.iter().take(slots).for_each(|slot| slot.words.share());
        }
    }

    fn change(&self, chunk: usize, from: u32, to: u32) -> bool {
        let change = |state: &AtomicU32| state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        self.states.get(chunk).is_some_and(change)
    }
}

/// A view of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'m> {
    head: &'m ChunkHead,
    slots: &'m [SharedSlot],
}

impl<'m> Chunk<'m> {
    /// Returns the head of the chunk.
    #[must_use]
    pub fn head(&self) -> &'m ChunkHead {
        self.head
    }

    /// Returns a slot, or `None` if it has not been written yet or does not exist.
    #[inline]
    #[must_use]
    pub fn slot(&self, number: usize) -> Option<Slot> {
        let [first, second] = &self.slots.get(number)?.words;
        let first = first.load(Ordering::Acquire);
        (first != 0).then(|| [first, second.load(Ordering::Relaxed)])
    }

    /// Writes slots, starting with the last one. Writes nothing if any slot is outside of the chunk.
    pub fn write(&self, number: usize, slots: &[Slot]) {
        let Some(places) = self.slots.get(number..).and_then(|rest| rest.get(..slots.len())) else { return };
        for (place, slot) in places.iter().zip(slots).rev() {
            place.words[1].store(slot[1], Ordering::Relaxed);
            place.words[0].store(slot[0], Ordering::Release);
        }
    }

    /// Returns the address of the first slot.
    #[must_use]
    pub fn first(&self) -> usize {
        self.slots.as_ptr() as usize
    }

    /// Resets the chunk to zeros.
    pub fn clear(&self) {
        let head = self.head;
        for word in [&head.owner, &head.stamp, &head.nanoseconds, &head.image, &head.task, &head.before] {
            word.store(0, Ordering::Relaxed);
        }
        for slot in self.slots {
            // The bytes after the last written slot are zeros, but some slots may have been reserved and never written.
            slot.words[0].store(0, Ordering::Relaxed);
            slot.words[1].store(0, Ordering::Relaxed);
        }
    }
}
