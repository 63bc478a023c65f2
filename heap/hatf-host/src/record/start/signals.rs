//! Forwards to the program the signals that ask this process to end.
//!
//! A terminal sends its interrupt to the entire foreground process group, including the program, so such a signal is
//! not forwarded. A signal sent by a process is forwarded, because the kernel does not report whether it was sent to
//! this process alone or to the group. In each case, the program decides what to do, and this process ends when the
//! program has ended. The same applies to signals that were ignored when this process started (under `nohup`, or in the
//! background of a script): the program starts with them ignored but may have installed a handler since.
//!
//! If `hatf` started no program, the signals end the recording, except for ignored ones. A shell without job control
//! ignores INT and QUIT in background commands, so that terminal keys do not end them. Therefore, these two signals are
//! ignored only if the terminal sends them; a process that sends one with `kill` is addressing this process. HUP and
//! TERM stay ignored if they were ignored before, as `nohup` and `trap '' TERM` intend.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use crate::record::processes::notify;

/// The program's process ID; 0 before it runs and after its end.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that arrived before the program ran.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// The handled signals that were ignored before, as bits by index.
static IGNORED: AtomicU32 = AtomicU32::new(0);

/// Whether a recording has taken the signals. If a process runs several recordings, the first recording takes the
/// signals.
static TAKEN: AtomicBool = AtomicBool::new(false);

static SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Signals that terminal keys send.
static KEYS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's description of this signal is valid during the handler.
    let from_a_process = unsafe { !info.is_null() && (*info).si_code <= 0 };
    match CHILD.load(Ordering::SeqCst) {
        0 if is_ignored(signal) && !(from_a_process && KEYS.contains(&signal)) => {}
        0 => {
            EARLY.store(signal, Ordering::SeqCst);
            notify();
        }
        // The program has received a terminal's signal as well.
        _ if !from_a_process => {}
        // SAFETY: `kill` may be called in a handler; the process is a child that was not yet waited for.
        child => unsafe {
            libc::kill(child, signal);
        },
    }
}

/// Returns whether a signal was ignored before it was taken.
fn is_ignored(signal: libc::c_int) -> bool {
    let place = SIGNALS.iter().position(|known| *known == signal);
    place.is_some_and(|place| IGNORED.load(Ordering::SeqCst) >> place & 1 != 0)
}

/// A value that forwards signals as long as it lives.
pub(super) struct Forwarding {
    /// The previous actions, if this value has taken the signals.
    before: Option<[libc::sigaction; SIGNALS.len()]>,
}

impl Forwarding {
    /// Takes over the signals.
    pub(super) fn begin() -> Self {
        if TAKEN.swap(true, Ordering::SeqCst) {
            return Self { before: None };
        }
        EARLY.store(0, Ordering::SeqCst);
        let before = SIGNALS.map(|signal| {
            // SAFETY: all zeros is a valid value of this struct of integers and pointers; the call fills it.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, null(), &raw mut before);
                before
            }
        });
        let bits =
            before.iter().enumerate().map(|(place, before)| u32::from(before.sa_sigaction == libc::SIG_IGN) << place);
        IGNORED.store(bits.sum(), Ordering::SeqCst);
        for signal in SIGNALS {
            // SAFETY: all zeros is a valid value of this struct of integers and pointers.
            let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
            ours.sa_sigaction = pass_on as extern "C" fn(_, _, _) as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            // SAFETY: the struct is valid, and the handler only calls functions allowed in a handler.
            unsafe { libc::sigaction(signal, &raw const ours, null_mut()) };
        }
        Self { before: Some(before) }
    }

    /// Blocks the signals in this thread until the program's process ID is known. Otherwise, a terminal signal that
    /// arrived in between would be treated as if it had arrived before the program ran, and would be sent to the
    /// program again. The program starts with the original actions and mask of this process.
    pub(super) fn hold(&self, program: &mut Command) -> HeldSignals {
        let held = self.before.is_some().then(Mask::hold);
        if let Some(before) = held {
            // SAFETY: these functions may be called between fork and exec.
            unsafe {
                program.pre_exec(move || {
                    for signal in SIGNALS {
                        // `exec` does the same with a handler. A signal that was blocked until now then goes to the
                        // program.
                        libc::signal(signal, if is_ignored(signal) { libc::SIG_IGN } else { libc::SIG_DFL });
                    }
                    before.restore();
                    Ok(())
                });
            }
        }
        HeldSignals(held)
    }

    /// Forwards signals to the program, which is now running.
    pub(super) fn to(&self, child: u32) {
        if self.before.is_none() {
            return;
        }
        CHILD.store(child.cast_signed(), Ordering::SeqCst);
        let early = EARLY.swap(0, Ordering::SeqCst);
        if early != 0 {
            // SAFETY: the process is a child that was not yet waited for.
            unsafe { libc::kill(child.cast_signed(), early) };
        }
    }

    /// Returns whether a signal has asked this process to end since the program ended.
    pub(super) fn interrupted(&self) -> bool {
        self.before.is_some() && CHILD.load(Ordering::SeqCst) == 0 && EARLY.load(Ordering::SeqCst) != 0
    }

    /// Stops forwarding: the program was waited for, and its process ID may soon be reused.
    pub(super) fn child_is_gone(&self) {
        if self.before.is_some() {
            CHILD.store(0, Ordering::SeqCst);
        }
    }
}

/// Signals that are blocked as long as this value lives.
pub(super) struct HeldSignals(Option<Mask>);

impl Drop for HeldSignals {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            before.restore();
        }
    }
}

/// The signals that a thread blocks.
#[derive(Clone, Copy)]
struct Mask(libc::sigset_t);

impl Mask {
    /// Makes this thread block the handled signals. Returns the previous mask.
    fn hold() -> Self {
        // SAFETY: all zeros is a valid value of this struct; the calls fill it.
        unsafe {
            let (mut ours, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&raw mut ours);
            for signal in SIGNALS {
                libc::sigaddset(&raw mut ours, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const ours, &raw mut before);
            Self(before)
        }
    }

    /// Makes this thread block these signals.
    fn restore(self) {
        // SAFETY: the set is valid, and the call is allowed between fork and exec.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, null_mut()) };
    }
}

/// Whether `SIGPIPE` was ignored when this process started. Rust always ignores it before `main`.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_pipe_signal() {
    // SAFETY: all zeros is a valid value of this struct; the call fills it.
    let before = unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, null(), &raw mut before);
        before
    };
    PIPE_IGNORED.store(before.sa_sigaction == libc::SIG_IGN, Ordering::SeqCst);
}

/// An entry in the list of functions that run before Rust's own startup.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_PIPE_SIGNAL: extern "C" fn() = note_pipe_signal;

/// Makes a program start with the original action of `SIGPIPE`.
pub(super) fn restore_pipe_action(program: &mut Command) {
    let pipe_ignored = PIPE_IGNORED.load(Ordering::SeqCst);
    // SAFETY: `signal` may be called between fork and exec.
    unsafe {
        program.pre_exec(move || {
            if pipe_ignored {
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            }
            Ok(())
        });
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.child_is_gone();
        let Some(before) = &self.before else { return };
        for (signal, before) in SIGNALS.iter().zip(before) {
            // SAFETY: this is the action that the system returned before.
            unsafe { libc::sigaction(*signal, before, null_mut()) };
        }
        TAKEN.store(false, Ordering::SeqCst);
    }
}
