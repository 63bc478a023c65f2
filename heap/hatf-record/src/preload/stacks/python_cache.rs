//! A cache of the stacks with Python frames that a thread walked recently.
//!
//! From the first Python frame outward, such a stack depends on the native frames, on the words read from the
//! interpreter's frames, from the code objects and strings that these refer to, and on the modules. The native frames
//! are identified by [`Outward`]; all words are kept with each stack in reading order. If nothing has changed, a walk
//! would read the same words again and find the same stack. A frame, a code object or a string that reuses the memory
//! of another one therefore does no harm: either all of its words are equal, or the stack is walked again.
//!
//! The native frames up to the first Python frame are not part of a kept stack, so that all allocations by one line of
//! Python code share it. The words are kept in a ring, in which new ones overwrite old ones. A stack is kept when it is
//! walked for the second time.
//!
//! Only the walk that has marked the thread's `LastWalk` as busy uses the cache, so a signal handler never interferes.

use super::last_walk::{LocalWord, Outward};
use super::python_memory::Log;
use crate::local_atomic::{Local, interruptible};

/// The number of kept stacks.
const ENTRIES: usize = 256;
/// The number of words in the ring.
const WORDS: usize = 1 << 13;
/// The maximum number of words of a stack. A stack with more words is not kept.
const WORDS_MAX: usize = 1 << 10;

/// The state in which the walk of a stack begins at its first Python frame.
pub(super) struct Start {
    /// A number that changes whenever modules are unloaded or memory is unmapped.
    pub(super) changes: u64,
    /// The structure of the innermost call, if there is one, and the innermost frame.
    pub(super) chain: [usize; 2],
    /// The instruction of the innermost frame.
    pub(super) instruction: usize,
    /// The start of the native frame that runs the innermost frame.
    pub(super) native: usize,
    /// The outer native frames.
    pub(super) outward: Outward,
    /// The maximum number of frames.
    pub(super) room: usize,
}

impl Start {
    fn hash(&self) -> u64 {
        let Self { chain: [_, frame], instruction, outward: (_, walk), room, .. } = self;
        let words = [*instruction as u64, *walk, *room as u64];
        words.iter().fold(*frame as u64, |hash, word| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32))
    }
}

interruptible! {
    struct Entry {
        /// A hash of the last walk that found no stack here.
        missed: Local<u64>,
        changes: Local<u64>,
        call: Local<usize>,
        frame: Local<usize>,
        native: Local<usize>,
        place: Local<usize>,
        walk: Local<u64>,
        /// The maximum number of frames, and whether a larger maximum would allow more of them.
        room: Local<usize>,
        is_cut: Local<bool>,
        /// The number of frames.
        frames: Local<usize>,
        stack: Local<u32>,
        /// The number of words that had been written to the ring before those of the stack.
        start: Local<usize>,
        count: Local<usize>,
    }
}

interruptible! {
    /// The cache of a thread, which is zero when the thread starts.
    pub(crate) struct StackCache {
        entries: [Entry; ENTRIES],
        /// The number of words that have been written to the ring.
        written: Local<usize>,
        words: [LocalWord; WORDS],
    }
}

/// The place of a stack in the cache.
pub(super) struct Place<'c> {
    cache: &'c StackCache,
    start: Start,
    hash: u64,
}

impl StackCache {
    /// Returns the place of a stack.
    #[inline]
    pub(super) fn place(&self, start: Start) -> Place<'_> {
        Place { cache: self, hash: start.hash(), start }
    }
}

impl<'c> Place<'c> {
    #[inline]
    fn entry(&self) -> Option<&'c Entry> {
        self.cache.entries.get(usize::try_from(self.hash).ok()? % ENTRIES)
    }

    /// Returns the number of the stack that a walk would find, if it is in the cache.
    #[inline]
    pub(super) fn find(&self) -> Option<u32> {
        let (entry, Start { changes, chain, native, outward, room, .. }) = (self.entry()?, &self.start);
        let is_found = entry.changes.get() == *changes
            && [entry.call.get(), entry.frame.get()] == *chain
            && entry.native.get() == *native
            && (entry.place.get(), entry.walk.get()) == *outward
            && if entry.is_cut.get() { entry.room.get() == *room } else { entry.frames.get() < *room }
            && self.cache.written.get() - entry.start.get() <= WORDS
            && entry.stack.get() != 0;
        if !is_found {
            return None;
        }
        let from = entry.start.get() % WORDS;
        let is_same = |word: &LocalWord| {
            let (address, value) = word.get();
            // SAFETY: aligned, and readable: a walk would read the same address, because the innermost frame is the
            // kept one, and the words before this one are unchanged and lead here. The order of the comparisons is
            // therefore essential.
            unsafe { (address as *const usize).read_volatile() == value }
        };
        // Compare in groups of four, in order.
        let (fours, rest) = self.cache.words.get(from..from + entry.count.get())?.as_chunks::<4>();
        let is_same = fours.iter().all(|four| four.iter().all(is_same)) && rest.iter().all(is_same);
        is_same.then(|| entry.stack.get())
    }

    /// Returns a log for the words that a walk reads, which notes nothing if the last walk that missed was another one.
    pub(super) fn log(&self) -> Log<'c> {
        let StackCache { written, words, .. } = self.cache;
        if self.entry().is_none_or(|entry| entry.missed.replace(self.hash) != self.hash) {
            return Log::none();
        }
        // The words of a stack are adjacent.
        if written.get() % WORDS + WORDS_MAX > WORDS {
            written.set(written.get().next_multiple_of(WORDS));
        }
        let from = written.get() % WORDS;
        words.get(from..from + WORDS_MAX).map_or_else(Log::none, Log::new)
    }
}

/// The result of a walk, except for the number of its stack.
pub(super) struct Kept<'c> {
    pub(super) place: Place<'c>,
    pub(super) log: Log<'c>,
    /// Whether there was no room for more frames.
    pub(super) is_cut: bool,
    pub(super) frames: usize,
}

impl Kept<'_> {
    /// Stores the result.
    pub(super) fn keep(self, stack: u32) {
        let (Some(entry), true) = (self.place.entry(), self.log.is_on()) else { return };
        let Place { cache: StackCache { written, .. }, start, .. } = self.place;
        let (from, count) = (written.get(), self.log.count().min(WORDS_MAX));
        written.set(from + count);
        entry.changes.set(start.changes);
        entry.call.set(start.chain[0]);
        entry.frame.set(start.chain[1]);
        entry.native.set(start.native);
        entry.place.set(start.outward.0);
        entry.walk.set(start.outward.1);
        entry.room.set(start.room);
        entry.is_cut.set(self.is_cut);
        entry.frames.set(self.frames);
        entry.stack.set(if count == self.log.count() { stack } else { 0 });
        entry.start.set(from);
        entry.count.set(count);
    }
}
