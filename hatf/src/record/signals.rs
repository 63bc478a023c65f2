//! Signals that ask us to end are for the program.
//!
//! A terminal sends its interrupt to the whole foreground group, the program included: it is not
//! sent again. One that a process sent (`kill`) came to us alone, and is passed on. Either way the
//! program decides, and we end when it has.

use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The program; 0 before it runs, and after.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the program ran.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// Whether a recording has the signals: of several at once in one process, the first.
static TAKEN: AtomicBool = AtomicBool::new(false);

const SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's description of this signal, valid during the handler.
    let from_a_process = unsafe { !info.is_null() && (*info).si_code <= 0 };
    if !from_a_process {
        return;
    }
    match CHILD.load(Ordering::SeqCst) {
        0 => EARLY.store(signal, Ordering::SeqCst),
        // SAFETY: `kill` may be called in a handler; the process is a child not yet waited for.
        child => unsafe {
            libc::kill(child, signal);
        },
    }
}

/// Passes signals on while it lives.
pub(super) struct Forwarding {
    /// The actions that were set before, if this has the signals.
    before: Option<[libc::sigaction; SIGNALS.len()]>,
}

impl Forwarding {
    /// Takes the signals over, except for those that are ignored (as under `nohup`).
    pub(super) fn begin() -> Self {
        if TAKEN.swap(true, Ordering::SeqCst) {
            return Self { before: None };
        }
        EARLY.store(0, Ordering::SeqCst);
        let before = SIGNALS.map(|signal| {
            // SAFETY: zero is a value of this structure of integers and pointers.
            let (mut before, mut ours): (libc::sigaction, libc::sigaction) =
                unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
            ours.sa_sigaction = pass_on as extern "C" fn(_, _, _) as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            // SAFETY: valid structures, and a handler that calls nothing unsafe in a handler.
            unsafe {
                libc::sigaction(signal, null(), &raw mut before);
                if before.sa_sigaction != libc::SIG_IGN {
                    libc::sigaction(signal, &raw const ours, null_mut());
                }
            }
            before
        });
        Self { before: Some(before) }
    }

    /// Passes signals on to the program, which runs now.
    pub(super) fn to(&self, child: u32) {
        if self.before.is_none() {
            return;
        }
        CHILD.store(child.cast_signed(), Ordering::SeqCst);
        let early = EARLY.swap(0, Ordering::SeqCst);
        if early != 0 {
            // SAFETY: a child not yet waited for.
            unsafe { libc::kill(child.cast_signed(), early) };
        }
    }

    /// Stops passing signals on: the program was waited for, and its number may soon be another's.
    pub(super) fn child_is_gone(&self) {
        if self.before.is_some() {
            CHILD.store(0, Ordering::SeqCst);
        }
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.child_is_gone();
        let Some(before) = &self.before else { return };
        for (signal, before) in SIGNALS.iter().zip(before) {
            // SAFETY: the action that the system returned before.
            unsafe { libc::sigaction(*signal, before, null_mut()) };
        }
        TAKEN.store(false, Ordering::SeqCst);
    }
}
