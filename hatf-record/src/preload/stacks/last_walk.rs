//! The stack that a thread walked last, so that of the next one only frames that differ are walked.
//!
//! How a walk goes on from a frame depends on the frame's registers, on what it reads from the stack from there on, and on the modules. All of that
//! is kept of each frame, with the number of the stack that begins there. Where a walk comes to a frame with the registers of a kept one,
//! and each word that was read from there on is still the same, it would go on as the last one did: no two stacks are ever taken for each
//! other, as in `memo.rs`. A program that is deep in its calls mostly allocates again a few frames away.
//!
//! A signal handler may walk its own stack in between: while a walk is in progress another does without.

use core::ops::ControlFlow;

use super::frame::{DEPTH_MAX, Frame, Visitor};
use crate::local_atomic::{Local, in_order, interruptible};
use crate::preload::elf::found::Found;

/// Words that were read from the stack for all frames: a frame has one or two.
const WORDS: usize = 3 * DEPTH_MAX;
/// How often a walk compares words, at most: a frame may have the registers of a kept one, and not be it.
const ATTEMPTS: u32 = 4;

/// An address on the stack, and what was read there.
pub(super) type Word = (usize, usize);

interruptible! {
    /// A [`Word`] in a thread's memory.
    pub(super) struct LocalWord {
        address: Local<usize>,
        value: Local<usize>,
    }
}

impl LocalWord {
    #[inline(always)]
    pub(super) fn get(&self) -> Word {
        (self.address.get(), self.value.get())
    }

    #[inline(always)]
    pub(super) fn set(&self, (address, value): Word) {
        self.address.set(address);
        self.value.set(value);
    }
}

interruptible! {
    struct Walked {
        instruction: Local<usize>,
        rsp: Local<usize>,
        rbp: Local<usize>,
        /// The number of the stack that begins here.
        node: Local<u32>,
        /// Of a kept frame: words that were read from here to the end. Of one of a walk in progress: words that were read before.
        words: Local<usize>,
    }
}

interruptible! {
    /// A thread's state; zero when the thread begins.
    pub(crate) struct LastWalk {
        /// A walk is in progress, and everything else here is its own.
        busy: Local<bool>,
        /// [`Start::changes`](super::frame::Start::changes) of that walk.
        changes: Local<u64>,
        count: Local<usize>,
        /// The outermost first.
        kept: [Walked; DEPTH_MAX],
        /// The last that was read first.
        kept_words: [LocalWord; WORDS],
        /// Frames of a walk in progress, the innermost first.
        fresh: [Walked; DEPTH_MAX],
        /// In the order in which they were read.
        fresh_words: [LocalWord; WORDS],
    }
}

impl LastWalk {
    /// Begins a walk of at most `depth` frames, after this many `changes`; `None` while another is in progress.
    pub(crate) fn begin<F>(&self, depth: usize, changes: u64, on_new: F) -> Option<Walk<'_, F>> {
        if self.busy.replace(true) {
            return None;
        }
        in_order();
        if self.changes.replace(changes) != changes {
            self.count.set(0);
        }
        let (depth, next) = (depth.min(DEPTH_MAX), self.count.get());
        Some(Walk {
            last: self,
            on_new,
            depth,
            fresh: 0,
            words: 0,
            next,
            known: 0,
            attempts: 0,
            keep: true,
            by_rbp: false,
        })
    }
}

/// A walk in progress.
pub(crate) struct Walk<'l, F> {
    last: &'l LastWalk,
    on_new: F,
    depth: usize,
    /// Frames that were walked, and words that were read.
    fresh: usize,
    words: usize,
    /// Kept frames, from the outermost, that may yet be met.
    next: usize,
    /// Kept frames, from the outermost, that the stack ends with.
    known: usize,
    attempts: u32,
    /// All that the walk depends on can be kept.
    keep: bool,
    /// It depends on the `rbp` that it began with.
    by_rbp: bool,
}

impl<F: FnMut(&Found)> Visitor for Walk<'_, F> {
    fn module(&mut self, found: &Found) {
        (self.on_new)(found);
    }

    #[inline(always)]
    fn read(&mut self, address: usize, value: usize) {
        match self.last.fresh_words.get(self.words) {
            Some(place) => place.set((address, value)),
            None => self.keep = false,
        }
        self.words += 1;
    }

    #[inline(always)]
    fn depends_on_rbp(&mut self) {
        self.by_rbp = true;
    }

    /// Takes a frame. Breaks where the rest is known, or there are enough.
    #[inline(always)]
    fn frame(&mut self, frame: &Frame) -> ControlFlow<()> {
        let Some(place) = self.last.fresh.get(self.fresh).filter(|_| self.fresh < self.depth) else {
            self.keep = false;
            return ControlFlow::Break(());
        };
        // What a signal has interrupted is looked up in another way.
        self.keep &= !frame.is_exact;
        while let Some(kept) = self.next.checked_sub(1).and_then(|place| self.last.kept.get(place)) {
            if kept.rsp.get() < frame.rsp {
                self.next -= 1;
                continue;
            }
            if kept.is(frame) && self.goes_on_from(kept) {
                self.known = self.next;
                return ControlFlow::Break(());
            }
            break;
        }
        place.instruction.set(frame.instruction);
        place.rsp.set(frame.rsp);
        place.rbp.set(frame.rbp);
        place.words.set(self.words);
        self.fresh += 1;
        ControlFlow::Continue(())
    }
}

impl Walked {
    #[inline(always)]
    fn is(&self, frame: &Frame) -> bool {
        self.rsp.get() == frame.rsp
            && self.instruction.get() == frame.instruction
            && self.rbp.get() == frame.rbp
            && !frame.is_exact
    }
}

impl<F> Walk<'_, F> {
    /// Returns whether the walk would go on from a kept frame, with whose registers it is at one, as the last one did.
    #[inline]
    fn goes_on_from(&mut self, kept: &Walked) -> bool {
        let may = self.fresh + self.next <= self.depth && self.attempts < ATTEMPTS;
        self.attempts += 1;
        let words = self.last.kept_words.get(..kept.words.get()).unwrap_or_default();
        may && words.iter().rev().all(|word| {
            let (address, value) = word.get();
            // SAFETY: aligned, and readable: the walk would read the same places, as what was read before each is the same, and nothing
            // was unmapped since.
            unsafe { (address as *const usize).read_volatile() == value }
        })
    }

    /// Ends the walk; returns the number of the stack, 0 if there is no room for it. `insert` returns the number of a stack that calls
    /// at an address.
    #[inline]
    pub(crate) fn finish(&self, mut insert: impl FnMut(u32, usize) -> Option<u32>) -> u32 {
        let LastWalk { kept, kept_words, fresh, fresh_words, count, .. } = self.last;
        let outer = self.outer();
        let mut node = outer.map_or(0, |frame| frame.node.get());
        let fresh = fresh.get(..self.fresh).unwrap_or_default();
        for frame in fresh.iter().rev() {
            let Some(next) = insert(node, frame.instruction.get()) else { return 0 };
            node = next;
            frame.node.set(node);
        }
        let (true, Some(innermost)) = (self.keep, fresh.first()) else { return node };
        let below = outer.map_or(0, |frame| frame.words.get());
        let own = innermost.words.get();
        let words = fresh_words.get(own..self.words).unwrap_or_default();
        let Some(places) = kept_words.get(below..below + words.len()) else { return node };
        places.iter().zip(words.iter().rev()).for_each(|(to, from)| to.set(from.get()));
        for (to, from) in kept.iter().skip(self.known).zip(fresh.iter().rev()) {
            to.instruction.set(from.instruction.get());
            to.rsp.set(from.rsp.get());
            to.rbp.set(from.rbp.get());
            to.node.set(from.node.get());
            to.words.set(below + (self.words - from.words.get()));
        }
        count.set(self.known + self.fresh);
        node
    }

    /// Returns whether the stack depends on the `rbp` that the walk began with.
    pub(crate) fn depends_on_rbp(&self) -> bool {
        self.by_rbp
    }

    /// Returns the frames of the stack, the innermost first: the instruction of each, and where it begins on the stack.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (usize, usize)> {
        let fresh = self.last.fresh.get(..self.fresh).unwrap_or_default().iter();
        let kept = self.last.kept.get(..self.known).unwrap_or_default().iter().rev();
        fresh.chain(kept).map(|frame| (frame.instruction.get(), frame.rsp.get()))
    }

    /// The kept frame, if the walk has met one, from which on nothing was read.
    fn outer(&self) -> Option<&Walked> {
        self.last.kept.get(self.known.checked_sub(1)?)
    }

    /// Returns all words that the stack depends on, in the order in which a walk reads them; `None` if these are not known.
    pub(crate) fn words(&self) -> Option<impl ExactSizeIterator<Item = Word>> {
        let LastWalk { kept_words, fresh_words, .. } = self.last;
        let read = fresh_words.get(..self.words)?.iter();
        let rest = kept_words.get(..self.outer().map_or(0, |frame| frame.words.get()))?.iter().rev();
        let count = read.len() + rest.len();
        let mut all = read.chain(rest).map(LocalWord::get);
        self.keep.then(|| (0..count).map(move |_| all.next().unwrap_or_default()))
    }
}

impl<F> Drop for Walk<'_, F> {
    fn drop(&mut self) {
        in_order();
        self.last.busy.set(false);
    }
}
