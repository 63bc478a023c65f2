//! A cache of the stacks that a thread walked recently, so that a repeated stack needs no walk.
//!
//! A walk depends on its initial registers, on the words it reads from the stack, and on the modules. The registers,
//! the words and the state of the modules are kept with each stack. If the registers and each word, in reading order,
//! are unchanged, a walk would read the same words again and find the same stack, so two different stacks are never
//! confused. For the same reason, no word is read that a walk would not read.
//!
//! A stack is kept when a walk from the same place finds it for the second time, because most stacks of a program that
//! allocates everywhere never recur.
//!
//! A signal handler may walk its own stack in between. An entry being written is marked and not used.

use core::ffi::c_void;
use core::ptr::with_exposed_provenance_mut;

use super::frame::Start;
use super::last_walk::{LastWalk, LocalWord, Word};
use super::own_stack::OwnStack;
use super::python_cache::StackCache;
use crate::local_atomic::{Local, in_order, interruptible};
use crate::preload::platform::memory::{pages, unmap};
use crate::preload::platform::thread_state::{LAST_ROUND, ThreadState};

/// The number of kept stacks.
const ENTRIES: usize = 8;
/// The maximum number of words read for a stack. A stack with more words is not kept.
const WORDS: usize = 48;
/// A mark for an entry that is being written.
const BUSY: usize = 1;
/// The number of remembered starting points of walks and their results.
const STARTS: usize = 64;

interruptible! {
    struct Entry {
        /// Whether the stack depends on the initial `rbp`.
        by_rbp: Local<bool>,
        rbp: Local<usize>,
        changes: Local<u64>,
        stack: Local<u32>,
        count: Local<usize>,
        words: [LocalWord; WORDS],
    }
}

interruptible! {
    /// The cache of a thread, which is zero when the thread starts.
    #[repr(C)]
    pub(crate) struct Memo {
        /// The thread's own stack. It is the first field, so that none of the cache is below it in memory.
        pub(crate) own_stack: OwnStack,
        /// The initial stack pointer of each entry, or 0 if there is no entry.
        keys: [Local<usize>; ENTRIES],
        next: Local<usize>,
        entries: [Entry; ENTRIES],
        /// The starting points and results of walks, by stack pointer.
        starts: [Local<usize>; STARTS],
        /// The last walked stack.
        pub(crate) last: LastWalk,
        /// Recently walked stacks with Python frames.
        pub(crate) python: StackCache,
    }
}

/// Returns the memory at an address in [`ThreadState::memo`].
#[inline(always)]
fn memory(address: usize) -> *mut c_void {
    with_exposed_provenance_mut(address)
}

impl Memo {
    /// Returns the cache of a thread, or `None` if there is no memory for it or the thread's end has been recorded.
    #[inline]
    pub(crate) fn of(state: &ThreadState) -> Option<&Self> {
        // SAFETY: null, or the memory of `make`, which the thread has until its end.
        unsafe { memory(state.memo.get()).cast::<Self>().as_ref() }.or_else(|| Self::make(state))
    }

    #[cold]
    fn make(state: &ThreadState) -> Option<&Self> {
        // Create no cache any more, because nothing would free it: the thread's end has already been recorded.
        if state.exit_rounds.get() >= LAST_ROUND {
            return None;
        }
        let made = pages(size_of::<Self>())?;
        if !state.memo.replace(0, made.expose_provenance()) {
            // A signal handler has created it in the meantime.
            // SAFETY: the pages created just now.
            unsafe { unmap(made, size_of::<Self>()) };
        }
        // SAFETY: zeros at first, which are a valid value, aligned for it; the thread has them until its end.
        unsafe { memory(state.memo.get()).cast::<Self>().as_ref() }
    }

    /// Frees the cache of a thread that ends.
    pub(crate) fn end(state: &ThreadState) {
        let memo = state.memo.get();
        if memo != 0 && state.memo.replace(memo, 0) {
            // SAFETY: the pages of `make`, which nobody else has.
            unsafe { unmap(memory(memo), size_of::<Self>()) };
        }
    }

    /// Returns the number of the stack that a walk from here would find, if it is in the cache.
    #[inline(always)]
    pub(crate) fn find(&self, start: Start) -> Option<u32> {
        for (key, entry) in self.keys.iter().zip(&self.entries) {
            if key.get() != start.rsp || entry.changes.get() != start.changes {
                continue;
            }
            // A key is written after its entry.
            in_order();
            if entry.by_rbp.get() && entry.rbp.get() != start.rbp {
                continue;
            }
            let words = entry.words.get(..entry.count.get()).unwrap_or_default();
            let is_same = |word: &LocalWord| {
                let (address, value) = word.get();
                // SAFETY: aligned, and readable: the words before it are those that led the walk here, and nothing was
                // unmapped since.
                unsafe { (address as *const usize).read_volatile() == value }
            };
            // Compare in groups of four, in order.
            let (fours, rest) = words.as_chunks::<4>();
            let is_same = fours.iter().all(|four| four.iter().all(is_same)) && rest.iter().all(is_same);
            let stack = entry.stack.get();
            // A handler may have written another stack into the entry.
            in_order();
            if is_same && key.get() == start.rsp {
                return Some(stack);
            }
        }
        None
    }

    /// Returns whether a recent walk from here found the same stack.
    pub(crate) fn has_met(&self, start: Start, stack: u32) -> bool {
        let mark = (start.rsp ^ (stack as usize).rotate_left(40)) | 1;
        self.starts.get(start.rsp / 8 % STARTS).is_some_and(|before| before.replace(mark) == mark)
    }

    /// Stores the result of a walk and the words that it read.
    pub(crate) fn keep(&self, start: Start, by_rbp: bool, words: impl ExactSizeIterator<Item = Word>, stack: u32) {
        let next = self.next.get();
        self.next.set(next.wrapping_add(1));
        let (Some(key), Some(entry)) = (self.keys.get(next % ENTRIES), self.entries.get(next % ENTRIES)) else {
            return;
        };
        if words.len() > WORDS || stack == 0 || key.get() == BUSY {
            return;
        }
        key.set(BUSY);
        in_order();
        entry.by_rbp.set(by_rbp);
        entry.rbp.set(start.rbp);
        entry.changes.set(start.changes);
        entry.stack.set(stack);
        entry.count.set(words.len());
        entry.words.iter().zip(words).for_each(|(to, from)| to.set(from));
        in_order();
        key.set(start.rsp);
    }
}
