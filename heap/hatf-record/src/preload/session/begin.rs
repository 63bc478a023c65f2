//! Finds the spool at the first call to a hook.

use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicU32, Ordering};

use super::{follow, origin, standalone};
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
use crate::clock::nanoseconds;
use crate::conditions::Conditions;
use crate::event::{Kind, SpoolEvent, TEXT_MAX};
use crate::names;
use crate::preload::choose::settings;
use crate::preload::platform::own_stack::MappedStack;
use crate::preload::platform::path::Path;
use crate::preload::platform::thread_state::nested;
use crate::preload::platform::{process, thread_name};
use crate::preload::spool::session::{self, Session};
use crate::preload::spool::{mapping, push};
use crate::reasons::NotFollowed;

static STATE: AtomicU32 = AtomicU32::new(UNDECIDED);
const UNDECIDED: u32 = 0;
const ATTACHING: u32 = 1;
const DECIDED: u32 = 2;

/// The maximum time in nanoseconds to wait for another thread that is beginning the session.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
const LONGEST: u64 = 5_000_000_000;

/// Returns the session if this process is being recorded.
#[inline]
pub(crate) fn session() -> Option<&'static Session> {
    let session = session::current();
    if session.is_some() { session } else { decided() }
}

/// Decides whether this process is recorded, unless that has been decided. Returns the session.
#[inline(never)]
fn decided() -> Option<&'static Session> {
    if STATE.load(Ordering::Acquire) == DECIDED {
        return None;
    }
    // Look up the real functions before there is a session, because a forked child that begins its own session must not
    // look up anything.
    #[cfg(feature = "preload")]
    if !crate::preload::elf::real::known() {
        return None;
    }
    attach(None);
    session::current()
}

/// Decides that this process is not recorded, unless a decision has been made.
pub(crate) fn give_up() {
    STATE.store(DECIDED, Ordering::Release);
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Attaches at the first call to a hook, because the constructors of other libraries run before ours and may allocate.
#[cold]
fn attach(stack: Option<MappedStack>) {
    // SAFETY: reads the pointer that the C library keeps. Very early, it is not set yet, and nothing is decided. A
    // forked child does not need it, and the program may have removed it.
    if unsafe { environ.is_null() } && session::inherited().is_none() {
        return;
    }
    if STATE.compare_exchange(UNDECIDED, ATTACHING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: `errno` of this thread.
    let errno = unsafe { *libc::__errno_location() };
    let is_image = session::inherited().is_none();
    let begin = || {
        nested(|| begin_session(is_image));
        STATE.store(DECIDED, Ordering::Release);
        push_image();
    };
    if let Some(stack) = stack.or_else(MappedStack::new) {
        stack.run(begin);
    }
    STATE.store(DECIDED, Ordering::Release);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Discards the decision, for a process that will be recorded from now on.
pub(crate) fn again() {
    STATE.store(UNDECIDED, Ordering::Release);
}

/// Returns the session after [`again`]. If a hook in another thread is beginning it, waits for that thread.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) fn session_after_again() -> Option<&'static Session> {
    let begun = nanoseconds();
    loop {
        let session = session();
        let is_over = STATE.load(Ordering::Acquire) == DECIDED || nanoseconds().wrapping_sub(begun) > LONGEST;
        if session.is_some() || is_over {
            return session.or_else(session::current);
        }
        // SAFETY: a call without arguments.
        unsafe { libc::sched_yield() };
    }
}

/// Stores the reason why the events could not be opened, in a symbolic link next to the event file. A process can
/// create a symbolic link even if it cannot open any more files.
#[cold]
#[inline(never)]
fn refuse(events: &Path, errno: c_int) -> Option<()> {
    let link = events.folder()?.with(names::REFUSED.as_bytes())?;
    let number = Path::new().with_number(u64::from(errno.unsigned_abs()))?;
    // SAFETY: C strings.
    unsafe { libc::symlink(number.as_c().as_ptr(), link.as_c().as_ptr()) };
    Some(())
}

/// Decides whether a forked child is recorded, regardless of its parent. The work is done on `stack`.
pub(crate) fn in_child(stack: MappedStack) {
    STATE.store(UNDECIDED, Ordering::Release);
    attach(Some(stack));
}

/// Maps the spool of this process. This is the spool named by the environment if this is the direct child of `hatf
/// record`, or a program that this child became by exec; otherwise it is the process's own spool.
fn begin_session(is_image: bool) -> Option<()> {
    let first_events = origin::events().or_else(|| {
        let events = standalone::of_environment()?;
        origin::remember(events);
        Some(events)
    })?;
    let Some(mut spool) = mapping::open(first_events.as_c()) else {
        // SAFETY: `errno` of this thread.
        let errno = unsafe { *libc::__errno_location() };
        if is_image {
            refuse(&first_events, errno);
        } else {
            follow::not_followed(NotFollowed::of_error(errno));
        }
        return None;
    };
    let mut events = first_events;
    let first = spool.header();
    let recorder = first.recorder.load(Ordering::Relaxed);
    // SAFETY: two calls without arguments that cannot fail.
    let (process, parent) = unsafe { (libc::getpid().cast_unsigned(), libc::getppid().cast_unsigned()) };
    let is_first = match first.process.load(Ordering::Acquire) {
        0 if parent == recorder => {
            first.process.compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire).is_ok()
        }
        recorded => recorded == process,
    };
    let wanted = first.closed.load(Ordering::Acquire) == 0;
    if !wanted || spool.mapped() == 0 {
        spool.unmap();
        return None;
    }
    follow::decide(first, &first_events);
    if !is_first {
        let own = follow::open_or_make(first, events, process, is_image);
        first.answered.fetch_add((!is_image).into(), Ordering::Relaxed);
        spool.unmap();
        let own = own?;
        (spool, events) = (own.spool, own.events);
    }
    let header = spool.header();
    header.mapped.store(u32::try_from(spool.mapped()).unwrap_or(u32::MAX), Ordering::Relaxed);
    header.becomes.store(0, Ordering::Relaxed);
    let image = header.images.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    // SAFETY: cannot fail. If the process differs, a signal handler has forked in the meantime, and this is the child.
    if unsafe { libc::getpid().cast_unsigned() } != process {
        return None;
    }
    let depth = header.stack_depth.load(Ordering::Relaxed);
    // An earlier image of the process may have set these conditions, so reset them. Whether recording is on or off
    // stays unchanged.
    let extras = [Conditions::USABLE, Conditions::PAGES, Conditions::PYTHON, Conditions::PROCESSORS, Conditions::PART];
    let extras = Conditions(extras.iter().fold(0, |bits, condition| bits | condition.0));
    let set_here = [Conditions::THREADS, Conditions::STACKS, Conditions::ACCESSES, extras];
    header.clear(Conditions(set_here.iter().fold(0, |bits, condition| bits | condition.0)));
    header.set(Conditions(header.extras.load(Ordering::Relaxed) & extras.0));
    if depth > 0 {
        match begin_stacks(&events, depth, header.stack_room.load(Ordering::Relaxed)) {
            Some(()) => drop(header.set(Conditions(Conditions::STACKS.0 | counted().0))),
            None => header.stackless.store(1, Ordering::Relaxed),
        }
    }
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    super::patched::note(header);
    settings::heed(header, &first_events)?;
    process::note_program();
    session::begin(spool.keep(), process, image)
}

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
fn begin_stacks(events: &Path, depth: u32, room: u32) -> Option<()> {
    crate::preload::platform::stack::note_main();
    crate::preload::stacks::tree::begin(events, depth, room)
}

/// Returns the condition for counting accesses: a forked child counts accesses if its parent did.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
fn counted() -> Conditions {
    if crate::preload::accesses::shadow::is_on() { Conditions::ACCESSES } else { Conditions(0) }
}

#[cfg(not(all(feature = "preload", target_arch = "x86_64")))]
fn counted() -> Conditions {
    Conditions(0)
}

#[cfg(not(all(feature = "preload", target_arch = "x86_64")))]
fn begin_stacks(_: &Path, _: u32, _: u32) -> Option<()> {
    None
}

/// Records the program image.
fn push_image() {
    let Some(session) = session::current() else { return };
    let path = process::program().get(..TEXT_MAX).unwrap_or(process::program());
    let mut event = SpoolEvent::new(Kind::Image, push::thread_number(session), session.clock.now());
    event.extra = u64::from(session.process);
    event.old = push::this_thread();
    push::event(session, event, path);
    let mut name = [0; thread_name::BYTES];
    if let Some(name) = thread_name::own(&mut name).filter(|name| !thread_name::is_of_file(name, path)) {
        push::thread_name(session, name, 0);
    }
    #[cfg(all(feature = "preload", target_pointer_width = "64"))]
    if session.conditions().has(Conditions::PAGES) {
        // Record the position of the break before the program has moved it.
        crate::preload::platform::program_break::begin();
        let end = crate::preload::platform::program_break::moved().unwrap_or_default() as u64;
        let event = SpoolEvent::new(Kind::Break, push::thread_number(session), session.clock.now());
        push::numbers(session, &SpoolEvent { address: end, ..event });
    }
}
