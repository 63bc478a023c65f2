//! The frames of Python code (CPython), in place of the interpreter's function that runs them.
//!
//! The interpreter calls `_PyEval_EvalFrameDefault` for one function of Python or several, one calling the other. Each such call leaves something on its stack that
//! the thread's state leads to; so it is known which native frame it is, whatever the compiler has made of the function.
//!
//! A thread follows its own chain alone, which nobody else changes. Nothing here allocates, locks, or calls the interpreter, except for the function that
//! says which state is the thread's: that looks it up by a key of `pthread_getspecific`.

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

/// The minor version of Python 3 whose frames are recorded; 0: there is none.
static MINOR: AtomicU32 = AtomicU32::new(0);
/// The function that returns the calling thread's state.
static THREAD_STATE: AtomicUsize = AtomicUsize::new(0);
/// See [`Types`].
static TYPES: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Where its module lies.
static INTERPRETER: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Frames that are followed, at most.
const FRAMES_MAX: usize = 1 << 14;

/// Looks whether a module that is met for the first time is an interpreter.
#[cold]
pub(crate) fn note_module(session: &Session, found: &Found) {
    if !session.conditions().has(Conditions::PYTHON) {
        return;
    }
    let Some(module) = Module::of_found(found) else { return };
    if module.definition(c"_PyEval_EvalFrameDefault", FUNCTION).is_none() {
        return;
    }
    // Py_Version has been there since 3.11. In what is built without the lock other members are in other places.
    let version = module.definition(c"Py_Version", OBJECT).and_then(word).unwrap_or_default();
    let minor = u32::try_from(version >> 16 & 0xff).unwrap_or_default();
    let is_known =
        version >> 24 == 3 && layout::of(minor).is_some() && module.definition(c"_Py_DecRefShared", FUNCTION).is_none();
    let names = [c"PyCode_Type", c"PyUnicode_Type"].map(|name| module.definition(name, OBJECT));
    let state = module.definition(c"PyGILState_GetThisThreadState", FUNCTION);
    let python = &session.spool.header().python;
    let ([Some(code), Some(string)], Some(state), true) = (names, state, is_known) else {
        // Where there are several, one that is not known is what the header says.
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

/// Forgets which places in Python's code were recorded, in a new session.
pub(crate) fn leave() {
    place::forget();
}

/// Has no frames looked for while modules are unloaded; returns what to [`resume`] with.
pub(crate) fn pause() -> u32 {
    MINOR.swap(0, Ordering::SeqCst)
}

/// Has frames looked for again, if the interpreter is still there.
pub(crate) fn resume(minor: u32) {
    if minor != 0 && crate::preload::stacks::unwind::find(THREAD_STATE.load(Ordering::SeqCst)).is_some() {
        MINOR.store(minor, Ordering::SeqCst);
    }
}

/// The chain of a thread's frames.
pub(crate) struct Chain {
    layout: &'static Layout,
    types: Types,
    /// Where the call's structure lies on the stack, in versions that have one.
    call: usize,
    /// The next frame.
    frame: usize,
    /// How many more are followed.
    left: usize,
}

/// Returns the frames of the calling thread; `None` if it has none.
#[inline]
pub(crate) fn chain() -> Option<Chain> {
    let layout = layout::of(MINOR.load(Ordering::Acquire))?;
    // SAFETY: the function of this signature, as its module has it, which is there: see `pause`.
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
    /// Returns where the next call of the interpreter's function has something on its stack; `None` if there is no more call.
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

    /// Returns whether a frame is no function's, but the one behind the last.
    fn is_behind(&self, frame: usize) -> Option<bool> {
        match self.layout.last {
            Last::Behind { byte: at, number } => Some(byte(frame.wrapping_add(at))? == number),
            Last::Marked { .. } => Some(false),
        }
    }

    /// Gives the frames of the next call, innermost first: code and instruction.
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

/// Frames of a stack, innermost first, as far as there is room.
struct Frames<'f> {
    frames: &'f mut [MaybeUninit<usize>],
    count: usize,
    /// There are frames of Python code.
    has_python: bool,
    /// The last is a function of the interpreter that Python code has called, or one that called it for others.
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

    /// Puts a native frame. Of functions of the interpreter between two frames of Python code there is only the one that Python code has called: the
    /// others are how it calls.
    fn put_native(&mut self, frame: usize) {
        let is_own = self.has_python && is_interpreter(frame);
        if is_own && self.is_own {
            self.count -= 1;
        }
        self.put(frame);
        self.is_own = is_own;
    }

    /// Puts the frames of the next call of the chain; returns whether it has any.
    fn put_python(&mut self, session: &Session, chain: &mut Chain) -> bool {
        let (layout, types) = (chain.layout, chain.types);
        let (before, is_full) = (self.count, self.is_full());
        chain.call(|code, at| {
            // What has no room needs no name.
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

/// Puts the frames of Python code in place of those that run it; returns how many there are then. `native` are the native frames, the innermost
/// first: the instruction of each, and where it begins on the stack. It ends where its caller's begins.
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
        // What is full may yet join the last with the next.
        if frames.is_full() && !frames.is_own {
            return frames.count;
        }
    }
    // Code made at run time has no unwind tables. What Python has behind it is known all the same.
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
