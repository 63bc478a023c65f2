//! Forks: the child leaves its parent's recording, whatever operation the forking thread was performing, and
//! immediately begins its own recording. `hatf record` continues for as long as there is a recorded process.
//!
//! A signal handler may fork while its thread is writing an event into the spool. Both parent and child return to that
//! push, whose slot belongs to the parent. Therefore the child first replaces the spool with private memory, before its
//! handler returns. The rest of the push then has no effect outside of the child, and a waiting push detects that its
//! session has ended.
//!
//! The child may have been forked by a signal handler on a small stack, and while another thread held the loader's
//! lock. Therefore it begins its session on a mapped stack and does not look up functions.
//!
//! This applies to `fork` and `_Fork`; only `_Fork` may be called in a handler. A child created by a raw `clone` system
//! call does not run our code first, so a push that was past its last check of the session continues in the child.

#[cfg(feature = "preload")]
use core::ffi::{c_int, c_void};
#[cfg(feature = "preload")]
use core::mem::transmute;
#[cfg(feature = "preload")]
use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use crate::preload::choose::switch;
#[cfg(feature = "preload")]
use crate::preload::elf::real;
use crate::preload::platform::confined::is_confined;
use crate::preload::platform::own_stack::MappedStack;
use crate::preload::platform::thread_state;
use crate::preload::session::{begin, follow};
use crate::preload::spool::session;
use crate::reasons::NotFollowed;

/// Registers handlers that notify the child of a `fork`.
#[cfg(not(feature = "preload"))]
pub(crate) fn register() {
    // SAFETY: handlers that make system calls and change atomics only.
    unsafe { libc::pthread_atfork(Some(before_fork), None, Some(after_fork_in_child)) };
}

/// Registers handlers that notify the child of a `fork`. The registration function has a different name in each C
/// library. The object must not be linked with glibc's function, because musl programs load the object as well.
#[cfg(feature = "preload")]
pub(crate) fn register() {
    type Handler = Option<extern "C" fn()>;
    type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;
    let glibc = real::next(c"__register_atfork");
    let function = if glibc.is_null() { real::next(c"pthread_atfork") } else { glibc };
    // SAFETY: null, or a function with this signature: one with three arguments ignores the fourth, which is null for
    // an object that is never unloaded. The handlers make system calls and change atomics only.
    unsafe {
        if let Some(register) = transmute::<*mut c_void, Option<Register>>(function) {
            register(Some(before_fork), None, Some(after_fork_in_child), null_mut());
        }
    }
}

/// Counts the child before it exists, so that anyone waiting for all processes knows of it.
extern "C" fn before_fork() {
    if let Some(session) = session::current() {
        session.spool.header().forks.fetch_add(1, Ordering::Relaxed);
        follow::ring();
    }
}

/// Maps the stack on which a forked child begins its session, because the forking thread may have a stack of a few
/// kilobytes. If the child cannot be recorded, counts it as such and returns `None`.
fn stack_of_child() -> Option<MappedStack> {
    if is_confined() {
        follow::not_followed(NotFollowed::Filter);
        return None;
    }
    let stack = MappedStack::new();
    if stack.is_none() {
        follow::not_followed(NotFollowed::Room);
    }
    stack
}

extern "C" fn after_fork_in_child() {
    if session::inherited().is_none() {
        return;
    }
    let stack = if follow::is_on() { stack_of_child() } else { None };
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    crate::preload::accesses::known::leave();
    session::end();
    session::leave_spool();
    if let Some(stack) = stack {
        thread_state::current().leave_session();
        switch::leave_process();
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        crate::preload::stacks::tree::leave();
        begin::in_child(stack);
    }
}

/// `_Fork`, which does not run handlers registered by `pthread_atfork`.
///
/// # Safety
/// The requirements are those of the real function with this name.
#[cfg(feature = "preload")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _Fork() -> libc::pid_t {
    let function = if real::known() { real::_Fork() } else { None };
    let Some(fork) = function else {
        // C libraries older than POSIX 2024 only have `fork`, which runs the handlers.
        // SAFETY: a call without arguments.
        return unsafe { libc::fork() };
    };
    before_fork();
    // SAFETY: the function with this name, which has no arguments.
    let child = unsafe { fork() };
    match child {
        0 => after_fork_in_child(),
        1.. => {}
        _ => fork_failed(),
    }
    child
}

/// `fork`, which runs the handlers registered by `pthread_atfork` even if the fork fails.
///
/// # Safety
/// The requirements are those of the real function with this name.
#[cfg(feature = "preload")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fork() -> libc::pid_t {
    let function = if real::known() { real::fork() } else { None };
    let Some(fork) = function else {
        // SAFETY: `errno` of this thread.
        unsafe { *libc::__errno_location() = libc::ENOSYS };
        return -1;
    };
    // SAFETY: the function with this name, which has no arguments.
    let child = unsafe { fork() };
    if child < 0 {
        fork_failed();
    }
    child
}

/// Reverts the count made by [`before_fork`], because no child was created. A failed fork in a C library function such
/// as `daemon` stays counted.
#[cfg(feature = "preload")]
fn fork_failed() {
    if let Some(session) = session::current() {
        session.spool.header().forks.fetch_sub(1, Ordering::Relaxed);
    }
}
