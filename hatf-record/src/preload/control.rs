//! Recording that is off for a while: by the program itself, by a signal, or by `hatf`, which sets a bit that the next hook sees.
//!
//! What is allocated while it is off is not known afterwards, and what ends meanwhile is not seen to end. So nothing from before counts when
//! it goes on: a reader of the trace begins with an empty heap at [`Kind::Start`].

use core::ffi::{c_int, c_void};
use core::mem::zeroed;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::attach::session;
use super::session::Session;
use super::{kept, push, thread_state};
use crate::clock::in_order;
use crate::conditions::Conditions;
use crate::event::{Event, Kind};

/// The thread that turns recording off or on, by the address of its state; 0: none does. There is one at a time: if a start of one thread were in
/// the middle of a stop of another, the trace would say that recording is off where it is on, or the reverse.
static CHANGING: AtomicUsize = AtomicUsize::new(0);

/// Does what was asked for by [`crate::Header::ask`], unless another thread, or the code that this signal handler has interrupted, is about to.
#[cold]
pub(crate) fn change(session: &Session) {
    let header = session.spool.header();
    // First: a question that comes now sets it again.
    header.clear(Conditions::CHANGE);
    loop {
        let me = core::ptr::from_ref(thread_state::current()) as usize;
        if CHANGING.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return;
        }
        let off = header.off.load(Ordering::SeqCst);
        if off != 0 {
            stop(session);
        } else {
            start(session);
        }
        CHANGING.store(0, Ordering::SeqCst);
        // Who has asked meanwhile has left it to this thread.
        if header.off.load(Ordering::SeqCst) == off {
            return;
        }
    }
}

/// Notes that the calling thread has jumped out of what it was in the middle of.
pub(crate) fn leave() {
    let me = core::ptr::from_ref(thread_state::current()) as usize;
    let _ = CHANGING.compare_exchange(me, 0, Ordering::SeqCst, Ordering::Relaxed);
}

/// Notes that this is a forked child, which has none of the threads of its parent.
pub(crate) fn leave_process() {
    CHANGING.store(0, Ordering::SeqCst);
}

fn stop(session: &Session) {
    if !session.spool.header().set(Conditions::OFF).has(Conditions::OFF) {
        record(session, Kind::Stop);
    }
}

fn start(session: &Session) {
    let header = session.spool.header();
    let conditions = header.conditions();
    if !conditions.has(Conditions::OFF) {
        return;
    }
    if conditions.has_any(Conditions::PART) {
        kept::forget_all();
    }
    // Stamped and written before another thread can record a call.
    record(session, Kind::Start);
    header.clear(Conditions::OFF);
}

fn record(session: &Session, kind: Kind) {
    if session.conditions().has(Conditions::THREADS) {
        in_order();
    }
    push::numbers(session, &Event::new(kind, push::thread_number(session), session.clock.now()));
}

fn set(off: bool) {
    if let Some(session) = session() {
        session.spool.header().ask(off);
        change(session);
    }
}

/// Has recording go on, if it is off.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_start() {
    set(false);
}

/// Has recording stop.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_stop() {
    set(true);
}

/// Returns 1 if this process is recorded, and recording is not off.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_is_recording() -> c_int {
    session().map_or(0, |session| c_int::from(!session.spool.header().is_off()))
}

/// Asks `hatf record --keep` for a trace of what is kept.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_dump() {
    if let Some(session) = session() {
        session.spool.header().dumps.fetch_add(1, Ordering::Relaxed);
    }
}

extern "C" fn on_toggle(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: `errno` of this thread, which the handler keeps.
    unsafe {
        let errno = *libc::__errno_location();
        set(hatf_recorder_is_recording() != 0);
        *libc::__errno_location() = errno;
    }
}

extern "C" fn on_dump(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    hatf_recorder_dump();
}

/// Takes the signals that turn recording off and on, and ask for a trace.
pub(crate) fn take_signals(session: &Session) {
    let header = session.spool.header();
    take(header.toggle_signal.load(Ordering::Relaxed), on_toggle);
    take(header.dump_signal.load(Ordering::Relaxed), on_dump);
}

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Takes a signal, unless the program has a handler of its own by now.
fn take(signal: u32, handler: Handler) {
    let signal = signal.cast_signed();
    if signal == 0 {
        return;
    }
    // SAFETY: zero is a value of this structure, and the handler has the signature that `SA_SIGINFO` promises.
    unsafe {
        let mut before: libc::sigaction = zeroed();
        let mut ours: libc::sigaction = zeroed();
        ours.sa_sigaction = handler as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigfillset(&raw mut ours.sa_mask);
        let known = libc::sigaction(signal, null_mut(), &raw mut before) == 0;
        if known && matches!(before.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) {
            libc::sigaction(signal, &raw const ours, null_mut());
        }
    }
}
