//! `setrlimit` and `prlimit`: a program that limits its address space is to have that, so the spool takes less of it before.

use core::ffi::{c_int, c_uint};
use core::ptr::null_mut;

use crate::preload::elf::real;
use crate::preload::platform::thread_state::nested;
use crate::preload::spool::{mapping, session};

type Limit = *const libc::rlimit;

/// Has the spool take its part of a limit.
///
/// # Safety
/// `limit` is null, or the caller's.
unsafe fn heed(process: libc::pid_t, resource: c_uint, limit: Limit) {
    // SAFETY: the caller's promise.
    let Some(limit) = (unsafe { limit.as_ref() }) else { return };
    let is_own = || {
        let own = session::current().map_or(0, |session| session.process.cast_signed());
        process == 0 || process == own
    };
    if resource == libc::RLIMIT_AS as c_uint && limit.rlim_cur != libc::RLIM_INFINITY && is_own() {
        let share = mapping::share_of(limit.rlim_cur);
        nested(|| session::shrink(share));
        #[cfg(target_arch = "x86_64")]
        nested(|| crate::preload::stacks::tree::shrink(share));
    }
}

macro_rules! limits {
    ($($set:ident $of:ident;)*) => {
        $(
            /// Sets a limit of this process.
            ///
            /// # Safety
            /// As the function of this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $set(resource: c_uint, limit: Limit) -> c_int {
                let function = if real::known() { real::$set() } else { None };
                // SAFETY: the caller's arguments.
                unsafe {
                    heed(0, resource, limit);
                    match function {
                        Some(set) => set(resource, limit),
                        None => by_the_kernel(0, resource, limit, null_mut()),
                    }
                }
            }

            /// Sets a limit, and returns what it was.
            ///
            /// # Safety
            /// As the function of this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $of(
                process: libc::pid_t,
                resource: c_uint,
                limit: Limit,
                before: *mut libc::rlimit,
            ) -> c_int {
                let function = if real::known() { real::$of() } else { None };
                // SAFETY: the caller's arguments.
                unsafe {
                    heed(process, resource, limit);
                    match function {
                        Some(set) => set(process, resource, limit, before),
                        None => by_the_kernel(process, resource, limit, before),
                    }
                }
            }
        )*
    };
}

limits! {
    setrlimit prlimit;
    setrlimit64 prlimit64;
}

/// # Safety
/// As `prlimit`.
unsafe fn by_the_kernel(process: libc::pid_t, resource: c_uint, limit: Limit, before: *mut libc::rlimit) -> c_int {
    // SAFETY: the caller's arguments.
    let result = unsafe { libc::syscall(libc::SYS_prlimit64, process, resource, limit, before) };
    c_int::try_from(result).unwrap_or(-1)
}
