//! The spool: chunks of events in a shared file, each of one thread.
//!
//! A header, a word of state for each chunk, then the chunks. A thread that has no chunk, or has filled one, takes the next
//! that is ready and has it for itself: it writes events into it by plain stores, and nobody else does. `hatf` makes chunks
//! ready ahead of the threads, so that they make no system calls, and takes them back once their events are safe
//! elsewhere.
//!
//! | state | meaning |
//! | --- | --- |
//! | `ABSENT` | no memory, nor blocks on a disk: zeros when it gets some |
//! | `READY` | zeros, and its memory is there: a thread may take it |
//! | `TAKEN` | has events of a thread, or will have some |
//! | `GIVEN_UP` | the program has unmapped it, and takes it no more |
//!
//! A slot is written once, its first word last. So whatever is not zero is whole, and what a process that is killed leaves in
//! the file can be read as if it lived: see [`Chunk`].
//!
//! Every word is an atomic: another process may write anything anywhere at any time, and neither side's behaviour is then
//! undefined. What is read is a number to be checked, not a promise.

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

/// Bytes before the first chunk.
const fn area(chunks: usize) -> usize {
    (size_of::<Header>() + chunks * size_of::<AtomicU32>()).next_multiple_of(CHUNK_BYTES)
}

/// Bytes of a spool of this many chunks.
#[must_use]
pub const fn bytes_for(chunks: usize) -> usize {
    area(chunks) + chunks * CHUNK_BYTES
}

/// Returns the place of a chunk in the file of a spool of this many chunks.
#[must_use]
pub const fn offset_of(chunks: usize, chunk: usize) -> usize {
    area(chunks) + chunk * CHUNK_BYTES
}

/// A view of a spool in mapped memory: all of it, or as many chunks as could be mapped.
#[derive(Clone, Copy, Debug)]
pub struct Spool<'m> {
    header: &'m Header,
    states: &'m [AtomicU32],
    first: *mut u8,
    mapped: usize,
}

// SAFETY: the memory behind is made of atomics.
unsafe impl Send for Spool<'_> {}
// SAFETY: as above.
unsafe impl Sync for Spool<'_> {}

impl<'m> Spool<'m> {
    /// Makes a spool in zeroed memory.
    ///
    /// # Safety
    /// `memory` is aligned to [`CHUNK_BYTES`], valid for reads and writes for `'m`, [`bytes_for`]`(chunks)` bytes long, and
    /// accessed through spools only. There are at most [`CHUNKS_MAX`].
    pub unsafe fn create(memory: *mut u8, chunks: usize) -> Self {
        // SAFETY: the caller's promise.
        let spool: Spool<'m> = unsafe { Self::view(memory, chunks, chunks) };
        let header = spool.header;
        header.version.store(VERSION, Ordering::Relaxed);
        header.chunk_bytes.store(CHUNK_BYTES_WORD, Ordering::Relaxed);
        header.chunks.store(chunks as u64, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        spool
    }

    /// Views a spool that [`Spool::create`] made, in this process or another, of which `bytes` from the beginning are mapped;
    /// `None` if there is none of this version, or not one chunk.
    ///
    /// # Safety
    /// `memory` is aligned to [`CHUNK_BYTES`], valid for reads and writes for `'m`, `bytes` long, and
    /// accessed through spools only.
    pub unsafe fn attach(memory: *mut u8, bytes: usize) -> Option<Self> {
        if bytes < size_of::<Header>() {
            return None;
        }
        // SAFETY: the caller's promise: a header of atomics, for which every bit pattern is a value.
        let header: &'m Header = unsafe { &*memory.cast::<Header>() };
        let chunks = usize::try_from(header.chunks.load(Ordering::Relaxed)).ok().filter(|n| *n <= CHUNKS_MAX)?;
        let fits = header.magic.load(Ordering::Acquire) == MAGIC
            && header.version.load(Ordering::Relaxed) == VERSION
            && header.chunk_bytes.load(Ordering::Relaxed) == CHUNK_BYTES_WORD;
        // SAFETY: the caller's promise.
        if fits { unsafe { Self::again(memory, bytes, chunks) } } else { None }
    }

    /// Views a spool of this many chunks, whatever its head says by now; `None` if not one of them is in `bytes`.
    ///
    /// # Safety
    /// As for [`Spool::attach`].
    #[must_use]
    pub unsafe fn again(memory: *mut u8, bytes: usize, chunks: usize) -> Option<Self> {
        let mapped = (bytes.checked_sub(area(chunks.min(CHUNKS_MAX)))? / CHUNK_BYTES).min(chunks);
        // SAFETY: the caller's promise; area and mapped chunks are inside of `bytes`.
        (mapped > 0 && chunks <= CHUNKS_MAX).then(|| unsafe { Self::view(memory, chunks, mapped) })
    }

    /// # Safety
    /// As for [`Spool::create`], but that only `mapped` chunks are there.
    unsafe fn view(memory: *mut u8, chunks: usize, mapped: usize) -> Self {
        // SAFETY: header and states are made of atomics only, for which every bit pattern is a value and shared writes are
        // no race; they lie in the area before the first chunk.
        unsafe {
            Self {
                header: &*memory.cast::<Header>(),
                states: core::slice::from_raw_parts(memory.add(size_of::<Header>()).cast(), chunks),
                first: memory.add(area(chunks)),
                mapped,
            }
        }
    }

    /// Returns the words that both sides share.
    #[must_use]
    pub fn header(&self) -> &'m Header {
        self.header
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.states.len()
    }

    /// Returns the number of chunks that are mapped.
    #[must_use]
    pub fn mapped(&self) -> usize {
        self.mapped
    }

    /// Returns where the spool lies: its first byte, and the length of the mapping.
    #[must_use]
    pub fn memory(&self) -> (*mut u8, usize) {
        let area = area(self.chunks());
        (core::ptr::from_ref(self.header).cast_mut().cast(), area + self.mapped * CHUNK_BYTES)
    }

    /// Returns a chunk that is mapped.
    #[must_use]
    pub fn chunk(&self, chunk: usize) -> Option<Chunk<'m>> {
        // SAFETY: inside of the mapping; head and slots are made of atomics only.
        (chunk < self.mapped).then(|| unsafe {
            let first = self.first.add(chunk * CHUNK_BYTES);
            Chunk {
                head: &*first.cast::<ChunkHead>(),
                slots: core::slice::from_raw_parts(first.add(CHUNK_HEAD_BYTES).cast(), CHUNK_SLOTS),
            }
        })
    }

    /// Takes a chunk that is ready; `None` if there is none.
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

    /// Takes a chunk that is absent, where nobody makes chunks ready any more. The caller has yet to make its memory present.
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

    /// Takes a chunk out of use for good, as it is to be unmapped; `false` if a thread has it.
    #[must_use]
    pub fn give_up(&self, chunk: usize) -> bool {
        // `hatf` makes it ready in between, at most once. Who else changes it is not waited for.
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

    /// Returns a view of the first chunks.
    #[must_use]
    pub fn of_first(&self, chunks: usize) -> Self {
        Self { mapped: chunks.min(self.mapped), ..*self }
    }

    /// Returns where a chunk lies, of those that were mapped when the first view was made.
    #[must_use]
    pub fn place(&self, chunk: usize) -> *mut u8 {
        self.first.wrapping_add(chunk.wrapping_mul(CHUNK_BYTES))
    }

    /// Returns the number of the chunk in whose place an address is; `None` if it is in none.
    #[must_use]
    pub fn number_at(&self, address: usize) -> Option<usize> {
        Some(address.checked_sub(self.first as usize)? / CHUNK_BYTES).filter(|chunk| *chunk < self.chunks())
    }

    /// Gives back a chunk of which nothing was written.
    pub fn give_back(&self, chunk: usize) {
        self.change(chunk, TAKEN, ABSENT);
    }

    /// Makes a chunk of zeros ready, whose memory is there; `false` if it was not in the state it should be.
    pub fn make_ready(&self, chunk: usize) -> bool {
        let made = self.change(chunk, ABSENT, READY);
        if made {
            self.header.ready.fetch_add(1, Ordering::AcqRel);
        }
        made
    }

    /// Returns the number of chunks that are ready.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.header.ready.load(Ordering::Acquire) as usize
    }

    /// Returns whether a chunk has no memory.
    #[must_use]
    pub fn is_absent(&self, chunk: usize) -> bool {
        self.states.get(chunk).is_some_and(|state| state.load(Ordering::Acquire) == ABSENT)
    }

    /// Returns whether a thread has this chunk, or had it.
    #[must_use]
    pub fn is_taken(&self, chunk: usize) -> bool {
        self.states.get(chunk).is_some_and(|state| state.load(Ordering::Acquire) == TAKEN)
    }

    /// Returns the chunks that threads have or had.
    pub fn taken(&self) -> impl Iterator<Item = usize> {
        let states = self.states.iter().enumerate();
        states.filter(|(_, state)| state.load(Ordering::Acquire) == TAKEN).map(|(chunk, _)| chunk)
    }

    /// Wakes the threads that wait for a chunk, if there are some: returns whether the futex [`Header::wakeups`] has changed.
    #[must_use]
    pub fn wakes(&self) -> bool {
        let waits = self.header.waiting.load(Ordering::SeqCst) != 0;
        if waits {
            self.header.wakeups.fetch_add(1, Ordering::SeqCst);
        }
        waits
    }

    /// Shares what threads access of it in a model: of each chunk this many slots.
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
    /// Returns its head.
    #[must_use]
    pub fn head(&self) -> &'m ChunkHead {
        self.head
    }

    /// Returns a slot; `None` if it is not written yet, or there is none of this number.
    #[inline]
    #[must_use]
    pub fn slot(&self, number: usize) -> Option<Slot> {
        let [first, second] = &self.slots.get(number)?.words;
        let first = first.load(Ordering::Acquire);
        (first != 0).then(|| [first, second.load(Ordering::Relaxed)])
    }

    /// Writes slots, the first of them last. Of slots that the chunk does not have nothing is written.
    pub fn write(&self, number: usize, slots: &[Slot]) {
        let Some(places) = self.slots.get(number..).and_then(|rest| rest.get(..slots.len())) else { return };
        for (place, slot) in places.iter().zip(slots).rev() {
            place.words[1].store(slot[1], Ordering::Relaxed);
            place.words[0].store(slot[0], Ordering::Release);
        }
    }

    /// Returns the address of its first slot.
    #[must_use]
    pub fn first(&self) -> usize {
        self.slots.as_ptr() as usize
    }

    /// Makes it zeros again.
    pub fn clear(&self) {
        let head = self.head;
        for word in [&head.owner, &head.stamp, &head.nanoseconds, &head.image, &head.task, &head.before] {
            word.store(0, Ordering::Relaxed);
        }
        for slot in self.slots {
            // What is behind the last written slot is zeros: but slots may be taken and never written.
            slot.words[0].store(0, Ordering::Relaxed);
            slot.words[1].store(0, Ordering::Relaxed);
        }
    }
}
