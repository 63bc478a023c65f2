//! `setrlimit` and `prlimit`: if a program limits its address space, the spool is shrunk first, so that enough is left
//! for the program. The maximum size of the main thread's stack is stored.

use core::ffi::{c_int, c_uint};
use core::ptr::null_mut;

use crate::preload::elf::real;
use crate::preload::platform::memory;
#[cfg(target_arch = "x86_64")]
use crate::preload::platform::stack;
use crate::preload::platform::thread_state::nested;
use crate::preload::spool::{mapping, session};

type Limit = *const libc::rlimit;

/// Sets a limit using `set`. The spool is adjusted first, because other threads may map memory as soon as the limit is
/// in force.
///
/// # Safety
/// `set` must return 0 only if the kernel has read `limit`, or if `limit` is null.
unsafe fn heed(process: libc::pid_t, resource: c_uint, limit: Limit, set: impl FnOnce() -> c_int) -> c_int {
    let is_own = || {
        let own = session::current().map_or(0, |session| session.process.cast_signed());
        process == 0 || process == own
    };
    let concerns = [libc::RLIMIT_AS, libc::RLIMIT_STACK].iter().any(|ours| *ours as c_uint == resource);
    if !concerns || limit.is_null() || !is_own() {
        return set();
    }
    // The kernel checks the address and fails with an error.
    let mut words = [0; 2];
    let copied = memory::copy(limit as usize, &mut words);
    let [current, maximum] = words.map(|word| word as libc::rlim_t);
    if copied == Some(words.len()) && current <= maximum {
        take_part(resource, current);
    }
    let result = set();
    if copied.is_none() && result == 0 {
        // SAFETY: by the caller's promise.
        take_part(resource, unsafe { (*limit).rlim_cur });
    }
    result
}

/// Adapts the recorder to a limit.
fn take_part(resource: c_uint, limit: libc::rlim_t) {
    if limit == libc::RLIM_INFINITY {
        return;
    }
    if resource == libc::RLIMIT_AS as c_uint {
        let share = mapping::share_of(limit);
        nested(|| session::shrink(share));
        #[cfg(target_arch = "x86_64")]
        nested(|| crate::preload::stacks::tree::shrink(share));
    } else {
        #[cfg(target_arch = "x86_64")]
        stack::limit_main(limit);
    }
}

macro_rules! limits {
    ($($set:ident $of:ident;)*) => {
        $(
            /// Sets a limit of this process.
            ///
            /// # Safety
            /// The requirements are those of the real function with this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $set(resource: c_uint, limit: Limit) -> c_int {
                // SAFETY: the caller's arguments.
                unsafe {
                    heed(0, resource, limit, || match if real::known() { real::$set() } else { None } {
                        Some(set) => set(resource, limit),
                        None => by_the_kernel(0, resource, limit, null_mut()),
                    })
                }
            }

            /// Sets a limit and returns the previous limit.
            ///
            /// # Safety
            /// The requirements are those of the real function with this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $of(
                process: libc::pid_t,
                resource: c_uint,
                limit: Limit,
                before: *mut libc::rlimit,
            ) -> c_int {
                // SAFETY: the caller's arguments.
                unsafe {
                    heed(process, resource, limit, || match if real::known() { real::$of() } else { None } {
                        Some(set) => set(process, resource, limit, before),
                        None => by_the_kernel(process, resource, limit, before),
                    })
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
/// The requirements are the same as for `prlimit`.
unsafe fn by_the_kernel(process: libc::pid_t, resource: c_uint, limit: Limit, before: *mut libc::rlimit) -> c_int {
    // SAFETY: the caller's arguments.
    let result = unsafe { libc::syscall(libc::SYS_prlimit64, process, resource, limit, before) };
    c_int::try_from(result).unwrap_or(-1)
}
