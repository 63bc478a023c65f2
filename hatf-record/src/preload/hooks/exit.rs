//! The status with which a process ends, which `hatf record` cannot know of processes that are not its children.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::Ordering;

#[cfg(target_arch = "x86_64")]
use crate::conditions::Conditions;
use crate::layout::EXITED;
use crate::preload::elf::real;
use crate::preload::spool::session::{self, Session};

type OnExit = unsafe extern "C" fn(extern "C" fn(c_int, *mut c_void), *mut c_void) -> c_int;

/// Has the status noted that `exit` gets, or that `main` returns. musl has no function for that: there the status is known of `_exit` alone.
pub(crate) fn register() {
    // SAFETY: null, or the function of this name. It gets a function that stays loaded, and no argument.
    unsafe {
        if let Some(on_exit) = transmute::<*mut c_void, Option<OnExit>>(real::next(c"on_exit")) {
            on_exit(at_exit, null_mut());
        }
    }
}

extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    note(status);
}

/// Returns whether this is a child that shares its parent's memory.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_child(_: &Session) -> bool {
    super::vfork::is_child()
}

/// Returns whether this is a child that shares its parent's memory.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn is_child(session: &Session) -> bool {
    // SAFETY: cannot fail.
    unsafe { libc::getpid().cast_unsigned() != session.process }
}

/// Notes the status, unless this is a child that shares its parent's memory.
fn note(status: c_int) {
    let Some(session) = session::current() else { return };
    if !is_child(session) {
        #[cfg(target_arch = "x86_64")]
        if session.conditions().has(Conditions::ACCESSES) && !session.conditions().has(Conditions::OFF) {
            crate::preload::accesses::tell::tell_all(session);
        }
        session.spool.header().exit.store(EXITED | status.cast_unsigned() & 0xff, Ordering::Relaxed);
    }
}

macro_rules! exits {
    ($($name:ident)*) => {
        $(
            /// Notes the status, and ends the process.
            ///
            /// # Safety
            /// As the function of this name.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "named after the function behind it")]
            pub(crate) unsafe extern "C" fn $name(status: c_int) -> ! {
                note(status);
                let function = if real::known() { real::$name() } else { None };
                match function {
                    // SAFETY: the caller's argument.
                    Some(exit) => unsafe { exit(status) },
                    // SAFETY: ends the process.
                    None => unsafe {
                        libc::syscall(libc::SYS_exit_group, status);
                        libc::abort()
                    },
                }
            }
        )*
    };
}

exits! { _exit _Exit }
