//! Provides a sufficient stack for hatf itself. A stack limit (`ulimit -s`) is meant for the recorded program and may
//! be too small for hatf.

use std::process::ExitCode;
use std::ptr::null_mut;

/// Sufficient stack size in bytes.
const ENOUGH: libc::rlim_t = 1 << 20;

/// Runs the command with a sufficient stack, in a new thread if the main thread's stack is too small.
pub(crate) fn with_room(run: fn() -> ExitCode) -> ExitCode {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local variable that receives the result.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    if !known || limit.rlim_cur >= ENOUGH {
        return run();
    }
    let name = std::env::args_os().next().unwrap_or_default().to_string_lossy().into_owned();
    let builder = std::thread::Builder::new().name(name.chars().filter(|c| *c != '\0').collect()).stack_size(8 << 20);
    let Ok(thread) = builder.spawn(run) else { return run() };
    // Only the new thread should receive signals. SAFETY: zero is a valid value of this bit set; the calls initialize
    // the set and change only the signal mask of this thread.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, null_mut());
    }
    thread.join().unwrap_or(ExitCode::FAILURE)
}
