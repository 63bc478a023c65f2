//! Provides enough stack for the command if a limit (`ulimit -s`) has left little. Such a limit is meant for the
//! recorded program, not for `hatf`.

use std::process::ExitCode;
use std::ptr::null_mut;

/// Sufficient stack size in bytes.
const ENOUGH: libc::rlim_t = 1 << 20;

/// Runs the command with enough stack: in a new thread if the main thread has less.
pub(crate) fn with_room(run: fn() -> ExitCode) -> ExitCode {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a valid struct that receives the answer.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    if !known || limit.rlim_cur >= ENOUGH {
        return run();
    }
    let name = std::env::args_os().next().unwrap_or_default().to_string_lossy().into_owned();
    let builder = std::thread::Builder::new().name(name.chars().filter(|c| *c != '\0').collect()).stack_size(8 << 20);
    let Ok(thread) = builder.spawn(run) else { return run() };
    // Signals are left to the working thread, which may block them temporarily.
    // SAFETY: all zeros is a valid value of this bit set; the calls fill it and change only which signals this thread
    // blocks.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, null_mut());
    }
    thread.join().unwrap_or(ExitCode::FAILURE)
}
