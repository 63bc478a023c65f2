//! Forks: the child is not recorded, whatever the thread that forked was in the middle of.
//!
//! A signal handler may fork while its thread puts an event into the spool. Parent and child both return to that push, and
//! the slot is the parent's. So the child's first act, before its handler returns, is to put private memory in place of
//! the spool: what is left of the push then reaches nobody, and a push that waits finds out that its session ended.
//!
//! This holds for `fork`, and for `_Fork`, which is the one of the two that may be called in a handler. A child made by a raw
//! `clone` system call runs none of our code first: there, a push that was past its last look at the session goes on.

use core::sync::atomic::{AtomicBool, Ordering};

use super::{real, session};

/// Whether this process was made by the recorded one; processes that it makes are not counted.
static IN_CHILD: AtomicBool = AtomicBool::new(false);

/// Has `fork` tell the child.
pub(crate) fn register() {
    // SAFETY: a handler that makes system calls and changes atomics only.
    unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
}

extern "C" fn after_fork_in_child() {
    session::end();
    if IN_CHILD.swap(true, Ordering::Relaxed) {
        return;
    }
    let Some(spool) = session::inherited_spool() else { return };
    spool.header().forks.fetch_add(1, Ordering::Relaxed);
    let (memory, bytes) = spool.memory();
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: replaces the spool's own mapping by zeroed memory, which is a spool's words as well. References into it stay
    // valid, and this is the child's only thread. Keeps `errno`, which the handler's caller may look at.
    unsafe {
        let errno = *libc::__errno_location();
        libc::mmap(memory.cast(), bytes, access, flags, -1, 0);
        *libc::__errno_location() = errno;
    }
}

/// `_Fork`, which runs no handlers of `pthread_atfork`.
///
/// # Safety
/// As the function of this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _Fork() -> libc::pid_t {
    let function = if real::known() { real::_Fork() } else { None };
    // SAFETY: the function of this name, which has no arguments. C libraries before POSIX 2024 have `fork` alone.
    let child = unsafe { function.map_or_else(|| libc::fork(), |fork| fork()) };
    if child == 0 {
        after_fork_in_child();
    }
    child
}
