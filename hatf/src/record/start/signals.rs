//! Signals that ask us to end are for the program.
//!
//! A terminal sends its interrupt to the whole foreground group, the program included: it is not sent again. One that a process
//! has sent is passed on: the kernel does not say whether it was for us alone or for the group.
//! In each case the program decides, and we end when it has. So it does of a signal that was ignored when we were started (under
//! `nohup`, in the background of a script): the program is started with that, and may have set a handler since.
//!
//! If `hatf` started no program, the signals end the recording, except for ignored ones.
//! A shell without job control ignores INT and QUIT in what it runs in the background, so that keys of the terminal do not end that. So these two are ignored only where
//! the terminal sends them: who sends them by `kill` means us. HUP and TERM that were ignored stay so, as `nohup` and `trap '' TERM` ask for.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// The program; 0 before it runs, and after.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the program ran.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// Our signals that were ignored, as bits by their place.
static IGNORED: AtomicU32 = AtomicU32::new(0);

/// Whether a recording has the signals: of several at once in one process, the first.
static TAKEN: AtomicBool = AtomicBool::new(false);

static SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Signals that keys of a terminal send.
static KEYS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's description of this signal, valid during the handler.
    let from_a_process = unsafe { !info.is_null() && (*info).si_code <= 0 };
    match CHILD.load(Ordering::SeqCst) {
        0 if is_ignored(signal) && !(from_a_process && KEYS.contains(&signal)) => {}
        0 => EARLY.store(signal, Ordering::SeqCst),
        // The program has one from a terminal as well.
        _ if !from_a_process => {}
        // SAFETY: `kill` may be called in a handler; the process is a child not yet waited for.
        child => unsafe {
            libc::kill(child, signal);
        },
    }
}

/// Returns whether a signal was ignored before it was ours.
fn is_ignored(signal: libc::c_int) -> bool {
    let place = SIGNALS.iter().position(|known| *known == signal);
    place.is_some_and(|place| IGNORED.load(Ordering::SeqCst) >> place & 1 != 0)
}

/// Passes signals on while it lives.
pub(super) struct Forwarding {
    /// The actions that were set before, if this has the signals.
    before: Option<[libc::sigaction; SIGNALS.len()]>,
}

impl Forwarding {
    /// Takes the signals over.
    pub(super) fn begin() -> Self {
        if TAKEN.swap(true, Ordering::SeqCst) {
            return Self { before: None };
        }
        EARLY.store(0, Ordering::SeqCst);
        let before = SIGNALS.map(|signal| {
            // SAFETY: zero is a value of this structure of integers and pointers; the call fills it.
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
            // SAFETY: zero is a value of this structure of integers and pointers.
            let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
            ours.sa_sigaction = pass_on as extern "C" fn(_, _, _) as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            // SAFETY: a valid structure, and a handler that calls nothing unsafe in a handler.
            unsafe { libc::sigaction(signal, &raw const ours, null_mut()) };
        }
        Self { before: Some(before) }
    }

    /// Holds signals in this thread until it is known which process the program is: one of a terminal that came between would be
    /// taken for one that came before the program ran, and be sent to it once more. The program starts with the actions and the mask that this process had.
    pub(super) fn hold(&self, program: &mut Command) -> HeldSignals {
        let held = self.before.is_some().then(Mask::hold);
        if let Some(before) = held {
            // SAFETY: functions that may be called between fork and exec.
            unsafe {
                program.pre_exec(move || {
                    for signal in SIGNALS {
                        // As `exec` does with a handler. One that was held until now is then for the program.
                        libc::signal(signal, if is_ignored(signal) { libc::SIG_IGN } else { libc::SIG_DFL });
                    }
                    before.restore();
                    Ok(())
                });
            }
        }
        HeldSignals(held)
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

    /// Returns whether a signal has asked us to end since the program did.
    pub(super) fn interrupted(&self) -> bool {
        self.before.is_some() && CHILD.load(Ordering::SeqCst) == 0 && EARLY.load(Ordering::SeqCst) != 0
    }

    /// Stops passing signals on: the program was waited for, and its number may soon be another's.
    pub(super) fn child_is_gone(&self) {
        if self.before.is_some() {
            CHILD.store(0, Ordering::SeqCst);
        }
    }
}

/// Signals that are held while this lives.
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
    /// Has this thread block ours, and returns what it blocked before.
    fn hold() -> Self {
        // SAFETY: zero is a value of this structure; the calls fill it.
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

    /// Has this thread block these.
    fn restore(self) {
        // SAFETY: a valid set. It may be called between fork and exec.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, null_mut()) };
    }
}

/// True if `SIGPIPE` was ignored when this process was started. Rust always ignores it before `main`.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_pipe_signal() {
    // SAFETY: zero is a value of this structure; the call fills it.
    let before = unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, null(), &raw mut before);
        before
    };
    PIPE_IGNORED.store(before.sa_sigaction == libc::SIG_IGN, Ordering::SeqCst);
}

/// Runs before Rust's own start.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_PIPE_SIGNAL: extern "C" fn() = note_pipe_signal;

/// Starts a program with the action of `SIGPIPE` with which this process was started.
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
            // SAFETY: the action that the system returned before.
            unsafe { libc::sigaction(*signal, before, null_mut()) };
        }
        TAKEN.store(false, Ordering::SeqCst);
    }
}
