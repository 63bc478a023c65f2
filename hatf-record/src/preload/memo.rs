//! Stacks that a thread walked last, so that the same one again costs no walk.
//!
//! A walk depends on the registers that it begins with, on what it reads from the stack, and on the modules. All of that is kept. If the
//! registers are the same and each word is, in the order in which they were read, then a walk would read the same again, and find the
//! same stack: no two stacks are ever taken for each other. For the same reason no word is read that a walk would not read.
//!
//! A stack is kept when a walk begins with its registers for the second time: most of those of a program that allocates all over never do.
//!
//! A signal handler may walk its own stack in between. An entry that is being written is marked, and left alone.

use core::cell::Cell;

use super::frame::Start;
use super::last_walk::{LastWalk, Word};
use super::own_stack::OwnStack;

/// Stacks that are kept.
const ENTRIES: usize = 8;
/// Words that were read for a stack; where there are more it is not kept.
const WORDS: usize = 48;
/// Marks an entry that is being written.
const BUSY: usize = 1;
/// Registers that walks began with.
const SEEN: usize = 64;

struct Entry {
    rbp: Cell<usize>,
    changes: Cell<u64>,
    stack: Cell<u32>,
    count: Cell<usize>,
    words: [Cell<Word>; WORDS],
}

/// What a thread keeps; zero when it begins.
#[repr(C)]
pub(crate) struct Memo {
    /// The first, so that nothing lies below it.
    pub(crate) own_stack: OwnStack,
    /// The stack pointer that each entry begins with; 0: none.
    keys: [Cell<usize>; ENTRIES],
    next: Cell<usize>,
    entries: [Entry; ENTRIES],
    seen: [Cell<usize>; SEEN],
    /// The stack that was walked last.
    pub(crate) last: LastWalk,
}

impl Memo {
    /// Returns the number of the stack that a walk from here would find, if it is known.
    #[inline(always)]
    pub(crate) fn find(&self, start: Start) -> Option<u32> {
        for (key, entry) in self.keys.iter().zip(&self.entries) {
            if key.get() != start.rsp || entry.rbp.get() != start.rbp || entry.changes.get() != start.changes {
                continue;
            }
            let words = entry.words.get(..entry.count.get()).unwrap_or_default();
            let is_same = words.iter().all(|word| {
                let (address, value) = word.get();
                // SAFETY: aligned, and readable: the words before it are those that led the walk here, and nothing was unmapped since.
                unsafe { (address as *const usize).read_volatile() == value }
            });
            let stack = entry.stack.get();
            // A handler may have written another stack into it.
            if is_same && key.get() == start.rsp {
                return Some(stack);
            }
        }
        None
    }

    /// Forgets all of them.
    pub(crate) fn forget(&self) {
        for key in &self.keys {
            key.set(0);
        }
        self.last.forget();
    }

    /// Returns whether a walk has begun like this before, not long ago.
    pub(crate) fn has_seen(&self, start: Start) -> bool {
        let mark = (start.rsp ^ start.rbp.rotate_left(17)) | 1;
        self.seen.get(start.rsp / 8 % SEEN).is_some_and(|seen| seen.replace(mark) == mark)
    }

    /// Keeps what a walk found, and the words that it read.
    pub(crate) fn keep(&self, start: Start, words: impl ExactSizeIterator<Item = Word>, stack: u32) {
        let next = self.next.get();
        self.next.set(next.wrapping_add(1));
        let (Some(key), Some(entry)) = (self.keys.get(next % ENTRIES), self.entries.get(next % ENTRIES)) else {
            return;
        };
        if words.len() > WORDS || stack == 0 || key.get() == BUSY {
            return;
        }
        key.set(BUSY);
        core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
        entry.rbp.set(start.rbp);
        entry.changes.set(start.changes);
        entry.stack.set(stack);
        entry.count.set(words.len());
        entry.words.iter().zip(words).for_each(|(to, from)| to.set(from));
        core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
        key.set(start.rsp);
    }
}
