//! Room on the stack, where a limit (`ulimit -s`) has left little: that is for the program which is recorded, and not for us.

use std::process::ExitCode;
use std::ptr::null_mut;

/// Bytes that are enough.
const ENOUGH: libc::rlim_t = 1 << 20;

/// Runs the command with enough stack: in a thread, if the first has less.
pub(crate) fn with_room(run: fn() -> ExitCode) -> ExitCode {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the answer.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    if !known || limit.rlim_cur >= ENOUGH {
        return run();
    }
    let name = std::env::args_os().next().unwrap_or_default().to_string_lossy().into_owned();
    let builder = std::thread::Builder::new().name(name.chars().filter(|c| *c != '\0').collect()).stack_size(8 << 20);
    let Ok(thread) = builder.spawn(run) else { return run() };
    // Signals are for the one that works: it may hold them for a moment.
    // SAFETY: zero is a value of this set of bits; the calls fill it, and change nothing but what this thread blocks.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, null_mut());
    }
    thread.join().unwrap_or(ExitCode::FAILURE)
}
