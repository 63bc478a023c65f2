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
mod place;
mod text;

use core::mem::{MaybeUninit, transmute};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use layout::{Innermost, Last, Layout};
use place::{Code, Types};

use crate::conditions::Conditions;
use crate::preload::elf::found::Found;
use crate::preload::elf::got::{FUNCTION, Module, OBJECT};
use crate::preload::spool::session::Session;
use crate::preload::stacks::last_walk::{Native, Outward};
use crate::preload::stacks::python_cache::{Kept, StackCache, Start};
pub(crate) use crate::preload::stacks::python_memory::forget as forget_pages;
use crate::preload::stacks::python_memory::{Log, word};

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
    // Cached stacks depend on the interpreter.
    crate::preload::stacks::unwind::forget_memory();
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
    /// Returns the start of the walk of this chain from a native frame on.
    fn start(&self, changes: u64, native: usize, outward: Outward, room: usize) -> Option<Start> {
        let instruction = word(self.frame.wrapping_add(self.layout.instruction))?;
        Some(Start { changes, chain: [self.call, self.frame], instruction, native, outward, room })
    }

    /// Returns the stack address of the data of the interpreter's next call, or `None` if there are no further calls.
    fn mark(&self, log: &mut Log<'_>) -> Option<usize> {
        if self.frame == 0 || self.left == 0 {
            return None;
        }
        if self.call != 0 {
            return Some(self.call);
        }
        let mut frame = self.frame;
        for _ in 0..self.left {
            if self.is_behind(log, frame)? {
                return Some(frame);
            }
            frame = log.word(frame.wrapping_add(self.layout.caller)).filter(|frame| *frame != 0)?;
        }
        None
    }

    /// Returns whether a frame is the additional frame after the last one, which belongs to no function.
    fn is_behind(&self, log: &mut Log<'_>, frame: usize) -> Option<bool> {
        match self.layout.last {
            Last::Behind { byte: at, number } => Some(log.byte(frame.wrapping_add(at))? == number),
            Last::Marked { .. } => Some(false),
        }
    }

    /// Passes each frame of the next interpreter call, innermost first, to `give` as its code and instruction. If
    /// `give` returns `false`, no more frames are needed, and the chain ends.
    fn call(&mut self, log: &mut Log<'_>, mut give: impl FnMut(&mut Log<'_>, usize, usize) -> bool) {
        if self.frames_of_call(log, &mut give).is_none() {
            self.frame = 0;
        }
    }

    fn frames_of_call(
        &mut self,
        log: &mut Log<'_>,
        give: &mut impl FnMut(&mut Log<'_>, usize, usize) -> bool,
    ) -> Option<()> {
        let layout = self.layout;
        loop {
            self.left = self.left.checked_sub(1)?;
            let frame = self.frame;
            self.frame = log.word(frame.wrapping_add(layout.caller))?;
            if self.is_behind(log, frame)? {
                break;
            }
            let code = log.word(frame.wrapping_add(layout.code))?;
            let instruction = log.word(frame.wrapping_add(layout.instruction))?;
            if !give(log, code, instruction) {
                return None;
            }
            if let Last::Marked { byte: at } = layout.last
                && log.byte(frame.wrapping_add(at))? != 0
            {
                break;
            }
            if self.frame == 0 {
                break;
            }
        }
        if let Innermost::OnStack { frame, before, .. } = layout.innermost {
            self.call = log.word(self.call.wrapping_add(before)).filter(|call| *call != 0)?;
            self.frame = log.word(self.call.wrapping_add(frame))?;
        }
        Some(())
    }
}

/// The number of code objects that a walk remembers, by address. The frames of a recursion have the same ones.
const CODES: usize = 8;

/// The frames of a stack, innermost first. Frames that do not fit are omitted.
struct Frames<'f> {
    frames: &'f mut [MaybeUninit<usize>],
    count: usize,
    /// Whether there are frames of Python code.
    has_python: bool,
    /// Whether the last frame is an interpreter function called by Python code, or a caller of such a function.
    is_own: bool,
    /// Code objects met by this walk.
    codes: [Code; CODES],
}

impl<'f> Frames<'f> {
    /// Returns the frames.
    fn into_put(self) -> &'f [usize] {
        // SAFETY: this many were written.
        unsafe { self.frames.get(..self.count).unwrap_or_default().assume_init_ref() }
    }

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
    fn put_python(&mut self, session: &Session, chain: &mut Chain, log: &mut Log<'_>) -> bool {
        let (layout, types) = (chain.layout, chain.types);
        let (before, was_full) = (self.count, self.is_full());
        chain.call(log, |log, code, at| {
            // Frames without room need no number.
            if was_full {
                return true;
            }
            if let Some(code) = self.code(log, layout, types, code)
                && let Some(frame) = code.frame(session, layout, types, at)
            {
                self.put(frame);
            }
            !self.is_full()
        });
        let has_any = self.count > before;
        self.has_python |= has_any;
        self.is_own &= !has_any;
        has_any || was_full
    }

    /// Returns a code object, which is read once.
    #[inline]
    fn code(&mut self, log: &mut Log<'_>, layout: &Layout, types: Types, address: usize) -> Option<Code> {
        let place = self.codes.get_mut(address / 64 % CODES)?;
        if !place.is_at(address) {
            *place = Code::read(log, layout, types, address)?;
        }
        Some(*place)
    }
}

/// A stack in which Python frames replace the frames that run Python code, innermost first.
#[derive(Default)]
pub(crate) struct Mixed<'f> {
    frames: &'f [usize],
    /// The number of native frames before the first Python frame.
    native: usize,
    /// The number of the rest of the stack, if it was found in the cache.
    rest: Option<u32>,
    /// The place in the cache of the rest of the stack, if it is to be kept.
    place: Option<Kept<'f>>,
}

impl Mixed<'_> {
    /// Returns the number of the stack, or 0 if there is no room for it. `insert` returns the number of a stack from
    /// its caller's number and an address.
    #[inline]
    pub(crate) fn number(self, mut insert: impl FnMut(u32, usize) -> Option<u32>) -> u32 {
        let (native, rest) = self.frames.split_at_checked(self.native).unwrap_or_default();
        let mut add = |caller: u32, frames: &[usize]| {
            frames.iter().rev().try_fold(caller, |caller, frame| insert(caller, *frame))
        };
        let Some(rest) = self.rest.or_else(|| add(0, rest)) else { return 0 };
        if let Some(place) = self.place {
            place.keep(rest);
        }
        add(rest, native).unwrap_or(0)
    }
}

/// Replaces the frames that run Python code with the Python frames. `native` contains the native frames, innermost
/// first. A frame ends where the frame of its caller begins. With a cache, `changes` is the state of the memory and the
/// modules.
pub(crate) fn mix<'f>(
    session: &Session,
    mut chain: Chain,
    native: impl Iterator<Item = Native>,
    into: &'f mut [MaybeUninit<usize>],
    cache: Option<(&'f StackCache, u64)>,
) -> Mixed<'f> {
    let codes = [Code::default(); CODES];
    let mut frames = Frames { frames: into, count: 0, has_python: false, is_own: false, codes };
    let mut log = Log::none();
    let mut begun = None;
    let mut mark = chain.mark(&mut log);
    let mut native = native.peekable();
    let mut innermost = None;
    while let Some(Native { instruction, start, .. }) = native.next() {
        let next = native.peek();
        let end = next.map(|next| next.start);
        let mut is_python = false;
        while let (Some(end), Some(at)) = (end, mark)
            && (start..end).contains(&at)
        {
            let is_first = innermost.is_none();
            if is_first {
                innermost = Some(frames.count);
                let room = frames.frames.len() - frames.count;
                if let (Some((cache, changes)), Some(outward)) = (cache, next.and_then(|next| next.outward))
                    && let Some(from) = chain.start(changes, start, outward, room)
                {
                    let place = cache.place(from);
                    if let Some(rest) = place.find() {
                        return Mixed {
                            native: frames.count,
                            rest: Some(rest),
                            frames: frames.into_put(),
                            place: None,
                        };
                    }
                    (log, begun) = (place.log(), Some(place));
                }
            }
            let has_any = frames.put_python(session, &mut chain, &mut log);
            // Otherwise, the native frame is a part of the rest.
            begun = begun.filter(|_| has_any || !is_first);
            is_python |= has_any;
            mark = chain.mark(&mut log);
        }
        if !is_python {
            frames.put_native(instruction);
        }
        // If there is no more room, the last frame may still be joined with the next one.
        if frames.is_full() && !frames.is_own {
            break;
        }
    }
    // Code generated at run time has no unwind tables, but the Python frames after it are known nevertheless.
    while chain.frame != 0 && !frames.is_full() && chain.left > 0 {
        frames.put_python(session, &mut chain, &mut log);
    }
    let place =
        begun.map(|place| Kept { place, is_cut: frames.is_full(), frames: frames.count - innermost.unwrap_or(0), log });
    Mixed { native: innermost.unwrap_or(0), rest: None, frames: frames.into_put(), place }
}

/// Returns whether an instruction is in the interpreter's module.
pub(crate) fn is_interpreter(instruction: usize) -> bool {
    let [start, end] = &INTERPRETER;
    (start.load(Ordering::Relaxed)..end.load(Ordering::Relaxed)).contains(&instruction)
}
