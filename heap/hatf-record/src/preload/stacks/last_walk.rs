//! The last stack walked by a thread, which allows the next walk to visit only the frames that differ.
//!
//! The continuation of a walk from a frame depends on the frame's registers, on the words it reads from the stack from
//! there on, and on the modules. The registers, the words and the state of the modules are kept for each frame, along
//! with the number of the stack that begins there. If a walk reaches a frame with the registers of a kept frame, and
//! each word read from there on is unchanged, the walk would continue like the last walk. Two different stacks are
//! therefore never confused, as in `memo.rs`. A program with a deep call stack usually makes its next allocation only a
//! few frames away.
//!
//! Because a signal handler may walk its own stack in between, other walks do not use the cache while a walk is in
//! progress.

use core::ops::ControlFlow;

use super::frame::{DEPTH_MAX, Frame, Visitor};
use crate::local_atomic::{Local, in_order, interruptible};
use crate::preload::elf::found::Found;

/// The number of words read from the stack for all frames. A frame usually has one or two.
const WORDS: usize = 3 * DEPTH_MAX;
/// The maximum number of times that a walk compares words, because a frame may have the registers of a kept frame
/// without being the same.
const ATTEMPTS: u32 = 4;

/// An address on the stack and the word that was read there.
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

/// A native frame of a stack with Python code.
pub(crate) struct Native {
    pub(crate) instruction: usize,
    /// The start of the frame on the stack.
    pub(crate) start: usize,
    /// An identifier of this frame and all outer frames, if they are kept: the place of the frame, and the number of
    /// the walk that found it. As long as the frame is kept, so are all outer ones, with their registers and words.
    pub(crate) outward: Option<Outward>,
}

pub(crate) type Outward = (usize, u64);

interruptible! {
    struct Walked {
        instruction: Local<usize>,
        rsp: Local<usize>,
        rbp: Local<usize>,
        /// The number of the stack that begins here.
        node: Local<u32>,
        /// For a kept frame, the number of words read from here to the end. For a frame of a walk in progress, the
        /// number of words read before it.
        words: Local<usize>,
        /// The number of the walk that found this frame.
        walk: Local<u64>,
    }
}

interruptible! {
    /// The cached walk of a thread, which is zero when the thread starts.
    pub(crate) struct LastWalk {
        /// Whether a walk is in progress, to which all other fields then belong.
        busy: Local<bool>,
        /// [`Start::changes`](super::frame::Start::changes) of the last walk.
        changes: Local<u64>,
        count: Local<usize>,
        /// The number of walks so far.
        walks: Local<u64>,
        /// The kept frames, outermost first.
        kept: [Walked; DEPTH_MAX],
        /// The kept words in reverse reading order.
        kept_words: [LocalWord; WORDS],
        /// The frames of a walk in progress, innermost first.
        fresh: [Walked; DEPTH_MAX],
        /// The words read by the walk in progress, in the order in which they were read.
        fresh_words: [LocalWord; WORDS],
    }
}

impl LastWalk {
    /// Begins a walk of at most `depth` frames, given the number of `changes`. Returns `None` while another walk is in
    /// progress.
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
            is_kept: false,
            by_rbp: false,
        })
    }
}

/// A walk in progress.
pub(crate) struct Walk<'l, F> {
    last: &'l LastWalk,
    on_new: F,
    depth: usize,
    /// The number of walked frames and the number of words read.
    fresh: usize,
    words: usize,
    /// The number of kept frames, from the outermost, that may still be reached.
    next: usize,
    /// The number of kept frames, from the outermost, with which the stack ends.
    known: usize,
    attempts: u32,
    /// Whether everything that the walk depends on can be kept.
    keep: bool,
    /// Whether the frames of this walk are the kept frames.
    is_kept: bool,
    /// Whether the walk depends on the initial `rbp`.
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

    /// Visits a frame. Stops if the remaining frames are known or the maximum depth is reached.
    #[inline(always)]
    fn frame(&mut self, frame: &Frame) -> ControlFlow<()> {
        let Some(place) = self.last.fresh.get(self.fresh).filter(|_| self.fresh < self.depth) else {
            self.keep = false;
            return ControlFlow::Break(());
        };
        // Frames interrupted by a signal are looked up in a different way.
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
    /// Returns whether the walk would continue like the last walk from a kept frame with the same registers.
    #[inline]
    fn goes_on_from(&mut self, kept: &Walked) -> bool {
        let may = self.fresh + self.next <= self.depth && self.attempts < ATTEMPTS;
        self.attempts += 1;
        let words = self.last.kept_words.get(..kept.words.get()).unwrap_or_default();
        may && words.iter().rev().all(|word| {
            let (address, value) = word.get();
            // SAFETY: aligned, and readable: the walk would read the same places, as the words read before each are the
            // same, and nothing was unmapped since.
            unsafe { (address as *const usize).read_volatile() == value }
        })
    }

    /// Ends the walk. Returns the number of the stack, or 0 if there is no room for it. `insert` returns the number of
    /// a stack from its caller's number and an address.
    #[inline]
    pub(crate) fn finish(&mut self, mut insert: impl FnMut(u32, usize) -> Option<u32>) -> u32 {
        let LastWalk { kept, kept_words, fresh, fresh_words, count, walks, .. } = self.last;
        walks.set(walks.get() + 1);
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
            to.walk.set(walks.get());
        }
        count.set(self.known + self.fresh);
        self.is_kept = true;
        node
    }

    /// Returns whether the stack depends on the initial `rbp`.
    pub(crate) fn depends_on_rbp(&self) -> bool {
        self.by_rbp
    }

    /// Returns the frames of the stack, innermost first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Native> {
        let fresh = self.last.fresh.get(..self.fresh).unwrap_or_default().iter();
        let kept = self.last.kept.get(..self.known).unwrap_or_default().iter().rev();
        let places = self.last.kept.get(..self.known + self.fresh).unwrap_or_default().iter().enumerate().rev();
        fresh.chain(kept).zip(places).map(|(frame, (place, kept))| Native {
            instruction: frame.instruction.get(),
            start: frame.rsp.get(),
            outward: self.is_kept.then(|| (place, kept.walk.get())),
        })
    }

    /// Returns the kept frame that the walk reached, if it reached one. From this frame on, nothing was read.
    fn outer(&self) -> Option<&Walked> {
        self.last.kept.get(self.known.checked_sub(1)?)
    }

    /// Returns all words that the stack depends on in the order in which a walk reads them, or `None` if some of them
    /// are unknown.
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
