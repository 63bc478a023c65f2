//! Stacks that a thread walked last, so that the same one again costs no walk.
//!
//! A walk depends on the registers that it begins with, on what it reads from the stack, and on the modules. All of that is kept. If the
//! registers are the same and each word is, in the order in which they were read, then a walk would read the same again, and find the
//! same stack: no two stacks are ever taken for each other. For the same reason no word is read that a walk would not read.
//!
//! A signal handler may walk its own stack in between. An entry that is being written is marked, and left alone.

use core::cell::Cell;

/// Stacks that are kept.
const ENTRIES: usize = 8;
/// Words that were read for a stack; where there are more it is not kept.
const WORDS: usize = 48;
/// Marks an entry that is being written.
const BUSY: usize = 1;

/// The registers that a walk begins with, and how often modules were unloaded before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) rsp: usize,
    pub(crate) rbp: usize,
    pub(crate) unloaded: u64,
}

/// The words that a walk read: addresses and values, in order.
pub(crate) struct Words {
    words: [core::mem::MaybeUninit<(usize, usize)>; WORDS],
    count: usize,
}

impl Words {
    pub(crate) const fn new() -> Self {
        Self { words: [const { core::mem::MaybeUninit::uninit() }; WORDS], count: 0 }
    }

    /// Notes a word.
    #[inline(always)]
    pub(crate) fn note(&mut self, address: usize, value: usize) {
        if let Some(place) = self.words.get_mut(self.count) {
            place.write((address, value));
        }
        self.count += 1;
    }
}

struct Entry {
    rbp: Cell<usize>,
    unloaded: Cell<u64>,
    stack: Cell<u32>,
    count: Cell<usize>,
    words: [Cell<(usize, usize)>; WORDS],
}

/// What a thread keeps; zero when it begins.
pub(crate) struct Memo {
    /// The stack pointer that each entry begins with; 0: none.
    keys: [Cell<usize>; ENTRIES],
    next: Cell<usize>,
    entries: [Entry; ENTRIES],
}

impl Memo {
    /// Returns the number of the stack that a walk from here would find, if it is known.
    #[inline(always)]
    pub(crate) fn find(&self, start: Start) -> Option<u32> {
        for (key, entry) in self.keys.iter().zip(&self.entries) {
            if key.get() != start.rsp || entry.rbp.get() != start.rbp || entry.unloaded.get() != start.unloaded {
                continue;
            }
            let words = entry.words.get(..entry.count.get()).unwrap_or_default();
            let is_same = words.iter().all(|word| {
                let (address, value) = word.get();
                // SAFETY: aligned, and readable: the words before it are those that led the walk here, so it is on the stack.
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
    }

    /// Keeps what a walk found.
    pub(crate) fn keep(&self, start: Start, words: &Words, stack: u32) {
        let next = self.next.get();
        self.next.set(next.wrapping_add(1));
        let (Some(key), Some(entry)) = (self.keys.get(next % ENTRIES), self.entries.get(next % ENTRIES)) else {
            return;
        };
        if words.count > WORDS || stack == 0 || key.get() == BUSY {
            return;
        }
        key.set(BUSY);
        core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
        entry.rbp.set(start.rbp);
        entry.unloaded.set(start.unloaded);
        entry.stack.set(stack);
        entry.count.set(words.count);
        for (to, from) in entry.words.iter().zip(words.words.iter().take(words.count)) {
            // SAFETY: so many were written.
            to.set(unsafe { from.assume_init() });
        }
        core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
        key.set(start.rsp);
    }
}
