//! Control of recording: functions that the program calls, and signals, which switch recording off and on and request a
//! trace.

use core::ffi::{c_int, c_void};
use core::mem::zeroed;
use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use crate::bell::Work;
use crate::preload::choose::switch;
use crate::preload::session::begin::session;
use crate::preload::spool::session::Session;

fn set(off: bool) {
    if let Some(session) = session() {
        session.spool.header().ask(off);
        switch::change(session);
    }
}

/// Resumes recording if it is off.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_start() {
    set(false);
}

/// Stops recording.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_stop() {
    set(true);
}

/// Returns 1 if this process is being recorded and recording is not off.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_is_recording() -> c_int {
    session().map_or(0, |session| c_int::from(!session.spool.header().is_off()))
}

/// Asks `hatf record --keep` to write a trace of the retained events.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_dump() {
    if let Some(session) = session() {
        session.spool.header().dumps.fetch_add(1, Ordering::Relaxed);
        session.spool.header().ring(Work::Events);
    }
}

extern "C" fn on_toggle(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: `errno` of this thread, which the handler preserves.
    unsafe {
        let errno = *libc::__errno_location();
        set(hatf_recorder_is_recording() != 0);
        *libc::__errno_location() = errno;
    }
}

extern "C" fn on_dump(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    hatf_recorder_dump();
}

/// Installs handlers for the signals that toggle recording and request a trace.
pub(crate) fn take_signals(session: &Session) {
    let header = session.spool.header();
    take(header.toggle_signal.load(Ordering::Relaxed), on_toggle);
    take(header.dump_signal.load(Ordering::Relaxed), on_dump);
}

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Installs a handler for a signal, unless the program already has its own.
fn take(signal: u32, handler: Handler) {
    let signal = signal.cast_signed();
    if signal == 0 {
        return;
    }
    // SAFETY: zero is a valid value of this structure, and the handler has the signature that `SA_SIGINFO` promises.
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
