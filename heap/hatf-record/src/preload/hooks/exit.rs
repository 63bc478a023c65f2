//! The exit status of the process, which `hatf record` cannot obtain for processes that are not its children.

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

/// Registers a handler that stores the status passed to `exit` or returned by `main`. musl lacks the function required
/// for this, so only the status of `_exit` is known there.
pub(crate) fn register() {
    // SAFETY: null, or the function with this name. It receives a function that stays loaded, and no argument.
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

/// Stores the status, unless this is a child that shares its parent's memory.
fn note(status: c_int) {
    let Some(session) = session::current() else { return };
    if !is_child(session) {
        #[cfg(target_arch = "x86_64")]
        if session.conditions().has(Conditions::ACCESSES) && !session.conditions().has(Conditions::OFF) {
            crate::preload::accesses::tell::tell_all(session);
        }
        #[cfg(target_arch = "x86_64")]
        crate::preload::events::untouched::tell_all(session);
        session.spool.header().exit.store(EXITED | status.cast_unsigned() & 0xff, Ordering::Relaxed);
    }
}

macro_rules! exits {
    ($($name:ident)*) => {
        $(
            /// Stores the status and ends the process.
            ///
            /// # Safety
            /// The requirements are those of the real function with this name.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "the name is that of the underlying function")]
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
