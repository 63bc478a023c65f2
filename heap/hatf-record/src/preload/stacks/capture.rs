//! The stack of a call: the walk that finds it, and its number in the tree.

use core::mem::MaybeUninit;
use core::ops::ControlFlow;

use super::frame::{DEPTH_MAX, Frame, Visitor};
use super::last_walk::Native;
use super::memo::Memo;
use super::unwind::{self, Here};
use super::{met_modules, own_stack, python, tree};
use crate::conditions::Conditions;
use crate::preload::elf::found::Found;
use crate::preload::platform::thread_state;
use crate::preload::spool::session::Session;
use crate::stack_table::StackTable;

/// Returns the number of the calling thread's stack, starting with the program's call, or 0 if the stack is unknown.
/// Records the modules that occur in a stack for the first time.
#[inline(always)]
pub(crate) fn capture(session: &Session) -> u32 {
    let here = Here::new();
    let with_python = session.conditions().has(Conditions::PYTHON);
    if with_python && let Some(chain) = python::chain() {
        return walk_python(session, here, chain);
    }
    let memo = Memo::of(thread_state::current());
    if let Some(stack) = memo.and_then(|memo| memo.find(here.start())) {
        return stack;
    }
    let stack = walk(session, here, memo);
    // The walk may have found the interpreter for the first time.
    match with_python.then(python::chain).flatten() {
        Some(chain) => walk_python(session, here, chain),
        None => stack,
    }
}

/// A walk that collects frames until there is no room left.
struct Frames<'f> {
    session: &'f Session,
    frames: &'f mut [MaybeUninit<usize>],
    /// The start of each collected frame on the stack.
    starts: &'f mut [MaybeUninit<usize>],
    count: usize,
}

impl Visitor for Frames<'_> {
    fn module(&mut self, found: &Found) {
        met_modules::note(self.session, found);
    }

    #[inline(always)]
    fn frame(&mut self, frame: &Frame) -> ControlFlow<()> {
        let Some(place) = self.frames.get_mut(self.count) else { return ControlFlow::Break(()) };
        place.write(frame.instruction);
        if let Some(start) = self.starts.get_mut(self.count) {
            start.write(frame.rsp);
        }
        self.count += 1;
        ControlFlow::Continue(())
    }
}

/// A flag in the changes of a walk whose frames have no separate numbers, because Python frames are between them.
const UNNUMBERED: u64 = 1 << 63;

/// Walks a stack with frames of Python code and returns its number. The stack is not cached in [`Memo`] itself, because
/// Python frames are stored elsewhere.
#[inline(never)]
fn walk_python(session: &Session, here: Here, chain: python::Chain) -> u32 {
    let Some(table) = tree::table() else { return 0 };
    let depth = tree::depth();
    let on_new = |found: &_| met_modules::note(session, found);
    let changes = here.start().changes | UNNUMBERED;
    let memo = Memo::of(thread_state::current());
    let mut mixed = [const { MaybeUninit::uninit() }; DEPTH_MAX];
    let mixed = mixed.get_mut(..depth).unwrap_or_default();
    let add = |caller, address| tree::node(&table, caller, address);
    // Native frames between Python frames are joined, so more of them are walked than the result can contain.
    let Some((memo, mut walk)) = memo.and_then(|memo| Some((memo, memo.last.begin(DEPTH_MAX, changes, on_new)?)))
    else {
        return apart(memo, || mix_whole(session, here, chain, mixed).number(add)).unwrap_or_default();
    };
    unwind::walk(here, &mut walk);
    walk.finish(|_, _| Some(0));
    // The walk is in progress until the end, because the cache belongs to it.
    python::mix(session, chain, walk.frames(), mixed, Some((&memo.python, changes))).number(add)
}

/// Runs work that needs kilobytes on a different stack, because the caller may be a signal handler with a small stack,
/// or the thread may be ending.
#[cold]
fn apart<R>(memo: Option<&Memo>, work: impl FnOnce() -> R) -> Option<R> {
    own_stack::apart(memo.map(|memo| &memo.own_stack), work)
}

/// Walks a stack with frames of Python code without using the previous walk.
#[cold]
#[inline(never)]
fn mix_whole<'f>(
    session: &Session,
    here: Here,
    chain: python::Chain,
    mixed: &'f mut [MaybeUninit<usize>],
) -> python::Mixed<'f> {
    let [mut frames, mut starts] = [[const { MaybeUninit::uninit() }; DEPTH_MAX]; 2];
    let mut walk = Frames { session, frames: &mut frames, starts: &mut starts, count: 0 };
    unwind::walk(here, &mut walk);
    let count = walk.count;
    // SAFETY: this many were written.
    let [frames, starts] =
        [&frames, &starts].map(|frames| unsafe { frames.get(..count).unwrap_or_default().assume_init_ref() });
    let native = frames.iter().zip(starts).map(|(instruction, start)| Native {
        instruction: *instruction,
        start: *start,
        outward: None,
    });
    python::mix(session, chain, native, mixed, None)
}

/// Walks a stack and returns its number.
#[inline(never)]
fn walk(session: &Session, here: Here, memo: Option<&Memo>) -> u32 {
    let Some(table) = tree::table() else { return 0 };
    let depth = tree::depth();
    let on_new = |found: &_| met_modules::note(session, found);
    let begun = memo.and_then(|memo| Some((memo, memo.last.begin(depth, here.start().changes, on_new)?)));
    let Some((memo, mut walk)) = begun else {
        return apart(memo, || walk_whole(session, here, &table, depth)).unwrap_or_default();
    };
    unwind::walk(here, &mut walk);
    let stack = walk.finish(|caller, address| tree::node(&table, caller, address));
    if memo.has_met(here.start(), stack)
        && let Some(words) = walk.words()
    {
        memo.keep(here.start(), walk.depends_on_rbp(), words, stack);
    }
    stack
}

/// Walks a stack without using the previous walk.
#[cold]
#[inline(never)]
fn walk_whole(session: &Session, here: Here, table: &StackTable<'_>, depth: usize) -> u32 {
    let mut frames = [const { MaybeUninit::uninit() }; DEPTH_MAX];
    let frames = frames.get_mut(..depth).unwrap_or_default();
    let mut walk = Frames { session, frames, starts: &mut [], count: 0 };
    unwind::walk(here, &mut walk);
    let count = walk.count;
    // SAFETY: this many were written.
    tree::number(table, unsafe { frames.get(..count).unwrap_or_default().assume_init_ref() })
}
