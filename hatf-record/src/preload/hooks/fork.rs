//! Forks: the child leaves its parent's recording, whatever the thread that forked was in the middle of. It begins one of its own at once: `hatf record` goes on
//! for as long as there is a process that is recorded.
//!
//! A signal handler may fork while its thread puts an event into the spool. Parent and child both return to that push, and
//! the slot is the parent's. So the child's first act, before its handler returns, is to put private memory in place of
//! the spool: what is left of the push then reaches nobody, and a push that waits finds out that its session ended.
//!
//! The child may have been forked by a signal handler on a small stack, and while another thread had the loader's lock. So it begins its session on a
//! mapped stack, and looks no function up.
//!
//! This holds for `fork`, and for `_Fork`, which is the one of the two that may be called in a handler. A child made by a raw
//! `clone` system call runs none of our code first: there, a push that was past its last look at the session goes on.

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

/// Has `fork` tell the child.
#[cfg(not(feature = "preload"))]
pub(crate) fn register() {
    // SAFETY: handlers that make system calls and change atomics only.
    unsafe { libc::pthread_atfork(Some(before_fork), None, Some(after_fork_in_child)) };
}

/// Has `fork` tell the child. The function has another name in each C library, and glibc's is not to be linked with: the object is loaded
/// by programs of musl, too.
#[cfg(feature = "preload")]
pub(crate) fn register() {
    type Handler = Option<extern "C" fn()>;
    type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;
    let glibc = real::next(c"__register_atfork");
    let function = if glibc.is_null() { real::next(c"pthread_atfork") } else { glibc };
    // SAFETY: null, or a function of this signature: one that has three arguments passes over the fourth, which is null for what is never
    // unloaded. The handlers make system calls and change atomics only.
    unsafe {
        if let Some(register) = transmute::<*mut c_void, Option<Register>>(function) {
            register(Some(before_fork), None, Some(after_fork_in_child), null_mut());
        }
    }
}

/// Counts the child before there is one: who waits for all processes then knows of it.
extern "C" fn before_fork() {
    if let Some(session) = session::current() {
        session.spool.header().forks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Maps the stack on which a forked child begins its session, as the thread that forks may have one of a few kilobytes; `None` if the child cannot be
/// recorded, which is counted.
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

/// `_Fork`, which runs no handlers of `pthread_atfork`.
///
/// # Safety
/// As the function of this name.
#[cfg(feature = "preload")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _Fork() -> libc::pid_t {
    let function = if real::known() { real::_Fork() } else { None };
    let Some(fork) = function else {
        // C libraries before POSIX 2024 have `fork` alone, which runs the handlers.
        // SAFETY: a call without arguments.
        return unsafe { libc::fork() };
    };
    before_fork();
    // SAFETY: the function of this name, which has no arguments.
    let child = unsafe { fork() };
    match child {
        0 => after_fork_in_child(),
        1.. => {}
        _ => fork_failed(),
    }
    child
}

/// `fork`, which runs the handlers of `pthread_atfork`, also where there is no child in the end.
///
/// # Safety
/// As the function of this name.
#[cfg(feature = "preload")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fork() -> libc::pid_t {
    let function = if real::known() { real::fork() } else { None };
    let Some(fork) = function else {
        // SAFETY: `errno` of this thread.
        unsafe { *libc::__errno_location() = libc::ENOSYS };
        return -1;
    };
    // SAFETY: the function of this name, which has no arguments.
    let child = unsafe { fork() };
    if child < 0 {
        fork_failed();
    }
    child
}

/// Takes back what [`before_fork`] counted: there is no child. A failed fork of a function inside of the C library, such as `daemon`, stays counted.
#[cfg(feature = "preload")]
fn fork_failed() {
    if let Some(session) = session::current() {
        session.spool.header().forks.fetch_sub(1, Ordering::Relaxed);
    }
}
