//! The frames of Python code (CPython), which replace the interpreter functions that run them.
//!
//! The interpreter calls `_PyEval_EvalFrameDefault` for one or more nested Python functions. Each such call leaves a
//! structure on its stack that is reachable from the thread's state. The structure identifies the native frame,
//! regardless of how the compiler translated the function.
//!
//! A thread follows only its own chain, which nobody else changes. This code does not allocate, lock, or call the
//! interpreter, except for the function that returns the thread's state, which it looks up by a `pthread_getspecific`
//! key.

mod layout;
mod lines;
mod memory;
mod place;
mod text;

use core::mem::{MaybeUninit, transmute};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use layout::{Innermost, Last, Layout};
pub(crate) use memory::forget as forget_pages;
use memory::{byte, word};
use place::Types;

use crate::conditions::Conditions;
use crate::preload::elf::found::Found;
use crate::preload::elf::got::{FUNCTION, Module, OBJECT};
use crate::preload::spool::session::Session;

/// The minor version of Python 3 whose frames are recorded, or 0 if there is none.
static MINOR: AtomicU32 = AtomicU32::new(0);
/// The function that returns the calling thread's state.
static THREAD_STATE: AtomicUsize = AtomicUsize::new(0);
/// See [`Types`].
static TYPES: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// The address range of the interpreter's module.
static INTERPRETER: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// The maximum number of frames to follow.
const FRAMES_MAX: usize = 1 << 14;

/// Checks whether a module seen for the first time is an interpreter.
#[cold]
pub(crate) fn note_module(session: &Session, found: &Found) {
    if !session.conditions().has(Conditions::PYTHON) {
        return;
    }
    let Some(module) = Module::of_found(found) else { return };
    if module.definition(c"_PyEval_EvalFrameDefault", FUNCTION).is_none() {
        return;
    }
    // `Py_Version` exists since 3.11. Builds without the global lock have a different layout.
    let version = module.definition(c"Py_Version", OBJECT).and_then(word).unwrap_or_default();
    let minor = u32::try_from(version >> 16 & 0xff).unwrap_or_default();
    let is_known =
        version >> 24 == 3 && layout::of(minor).is_some() && module.definition(c"_Py_DecRefShared", FUNCTION).is_none();
    let names = [c"PyCode_Type", c"PyUnicode_Type"].map(|name| module.definition(name, OBJECT));
    let state = module.definition(c"PyGILState_GetThisThreadState", FUNCTION);
    let python = &session.spool.header().python;
    let ([Some(code), Some(string)], Some(state), true) = (names, state, is_known) else {
        // If there are several interpreters, the header reports one with an unknown layout.
        let version = u32::try_from(version >> 16).unwrap_or_default();
        python.store(crate::PYTHON_UNKNOWN | version, Ordering::Relaxed);
        return;
    };
    MINOR.store(0, Ordering::SeqCst);
    let [start, end] = &INTERPRETER;
    let places =
        [(&TYPES[0], code), (&TYPES[1], string), (&THREAD_STATE, state), (start, found.start), (end, found.end)];
    for (place, value) in places {
        place.store(value, Ordering::SeqCst);
    }
    MINOR.store(minor, Ordering::SeqCst);
    let _ = python.compare_exchange(0, 3 << 8 | minor, Ordering::Relaxed, Ordering::Relaxed);
}

/// Discards the recorded locations in Python code, for a new session.
pub(crate) fn leave() {
    place::forget();
}

/// Suspends looking for Python frames while modules are unloaded. Returns an argument for [`resume`].
pub(crate) fn pause() -> u32 {
    MINOR.swap(0, Ordering::SeqCst)
}

/// Resumes looking for Python frames, if the interpreter is still loaded.
pub(crate) fn resume(minor: u32) {
    if minor != 0 && crate::preload::stacks::unwind::find(THREAD_STATE.load(Ordering::SeqCst)).is_some() {
        MINOR.store(minor, Ordering::SeqCst);
    }
}

/// The chain of a thread's frames.
pub(crate) struct Chain {
    layout: &'static Layout,
    types: Types,
    /// The location of the call's structure on the stack, in versions that have one.
    call: usize,
    /// The next frame.
    frame: usize,
    /// The maximum number of remaining frames to follow.
    left: usize,
}

/// Returns the frames of the calling thread, or `None` if it has no Python frames.
#[inline]
pub(crate) fn chain() -> Option<Chain> {
    let layout = layout::of(MINOR.load(Ordering::Acquire))?;
    // SAFETY: the function with this signature, as its module defines it, which is loaded: see `pause`.
    let state = unsafe {
        let state = transmute::<usize, Option<unsafe extern "C" fn() -> usize>>(THREAD_STATE.load(Ordering::Relaxed));
        state?()
    };
    if state == 0 {
        return None;
    }
    let types = Types { code: TYPES[0].load(Ordering::Relaxed), string: TYPES[1].load(Ordering::Relaxed) };
    let mut chain = Chain { layout, types, call: 0, frame: 0, left: FRAMES_MAX };
    match layout.innermost {
        Innermost::OnStack { thread, frame, .. } => {
            chain.call = word(state.wrapping_add(thread))?;
            chain.frame = word(chain.call.wrapping_add(frame))?;
        }
        Innermost::Frame { thread } => chain.frame = word(state.wrapping_add(thread))?,
    }
    (chain.frame != 0).then_some(chain)
}

impl Chain {
    /// Returns the stack address of the data of the interpreter's next call, or `None` if there are no further calls.
    fn mark(&self) -> Option<usize> {
        if self.frame == 0 || self.left == 0 {
            return None;
        }
        if self.call != 0 {
            return Some(self.call);
        }
        let mut frame = self.frame;
        for _ in 0..self.left {
            if self.is_behind(frame)? {
                return Some(frame);
            }
            frame = word(frame.wrapping_add(self.layout.caller)).filter(|frame| *frame != 0)?;
        }
        None
    }

    /// Returns whether a frame is the additional frame after the last one, which belongs to no function.
    fn is_behind(&self, frame: usize) -> Option<bool> {
        match self.layout.last {
            Last::Behind { byte: at, number } => Some(byte(frame.wrapping_add(at))? == number),
            Last::Marked { .. } => Some(false),
        }
    }

    /// Passes each frame of the next interpreter call, innermost first, to `give` as its code and instruction.
    fn call(&mut self, mut give: impl FnMut(usize, usize)) {
        if self.frames_of_call(&mut give).is_none() {
            self.frame = 0;
        }
    }

    fn frames_of_call(&mut self, give: &mut impl FnMut(usize, usize)) -> Option<()> {
        let layout = self.layout;
        loop {
            self.left = self.left.checked_sub(1)?;
            let frame = self.frame;
            let member = |offset: usize| word(frame.wrapping_add(offset));
            self.frame = member(layout.caller)?;
            if self.is_behind(frame)? {
                break;
            }
            give(member(layout.code)?, member(layout.instruction)?);
            if let Last::Marked { byte: at } = layout.last
                && byte(frame.wrapping_add(at))? != 0
            {
                break;
            }
            if self.frame == 0 {
                break;
            }
        }
        if let Innermost::OnStack { frame, before, .. } = layout.innermost {
            self.call = word(self.call.wrapping_add(before)).filter(|call| *call != 0)?;
            self.frame = word(self.call.wrapping_add(frame))?;
        }
        Some(())
    }
}

/// The frames of a stack, innermost first. Frames that do not fit are omitted.
struct Frames<'f> {
    frames: &'f mut [MaybeUninit<usize>],
    count: usize,
    /// Whether there are frames of Python code.
    has_python: bool,
    /// Whether the last frame is an interpreter function called by Python code, or a caller of such a function.
    is_own: bool,
}

impl Frames<'_> {
    fn is_full(&self) -> bool {
        self.count == self.frames.len()
    }

    fn put(&mut self, frame: usize) {
        if let Some(place) = self.frames.get_mut(self.count) {
            place.write(frame);
            self.count += 1;
        }
    }

    /// Adds a native frame. Between two frames of Python code, only the interpreter function called by Python code is
    /// kept, because the other frames are part of the calling mechanism.
    fn put_native(&mut self, frame: usize) {
        let is_own = self.has_python && is_interpreter(frame);
        if is_own && self.is_own {
            self.count -= 1;
        }
        self.put(frame);
        self.is_own = is_own;
    }

    /// Adds the frames of the next call in the chain. Returns whether it added any frames.
    fn put_python(&mut self, session: &Session, chain: &mut Chain) -> bool {
        let (layout, types) = (chain.layout, chain.types);
        let (before, is_full) = (self.count, self.is_full());
        chain.call(|code, at| {
            // Frames without room need no number.
            if !self.is_full()
                && let Some(frame) = place::frame_of(session, layout, types, code, at)
            {
                self.put(frame);
            }
        });
        let has_any = self.count > before;
        self.has_python |= has_any;
        self.is_own &= !has_any;
        has_any || is_full
    }
}

/// Replaces the frames that run Python code with the Python frames. Returns the resulting number of frames. `native`
/// contains the native frames, innermost first, each as its instruction and its start on the stack. A frame ends where
/// the frame of its caller begins.
pub(crate) fn mix(
    session: &Session,
    mut chain: Chain,
    native: impl Iterator<Item = (usize, usize)>,
    into: &mut [MaybeUninit<usize>],
) -> usize {
    let mut frames = Frames { frames: into, count: 0, has_python: false, is_own: false };
    let mut mark = chain.mark();
    let mut native = native.peekable();
    while let Some((frame, start)) = native.next() {
        let end = native.peek().map(|(_, start)| *start);
        let mut is_python = false;
        while let (Some(end), Some(at)) = (end, mark)
            && (start..end).contains(&at)
        {
            is_python |= frames.put_python(session, &mut chain);
            mark = chain.mark();
        }
        if !is_python {
            frames.put_native(frame);
        }
        // If there is no more room, the last frame may still be joined with the next one.
        if frames.is_full() && !frames.is_own {
            return frames.count;
        }
    }
    // Code generated at run time has no unwind tables, but the Python frames after it are known nevertheless.
    while chain.frame != 0 && !frames.is_full() && chain.left > 0 {
        frames.put_python(session, &mut chain);
    }
    frames.count
}

/// Returns whether an instruction is in the interpreter's module.
fn is_interpreter(instruction: usize) -> bool {
    let [start, end] = &INTERPRETER;
    (start.load(Ordering::Relaxed)..end.load(Ordering::Relaxed)).contains(&instruction)
}
