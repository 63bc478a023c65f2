//! `prctl`, with which a program may give up resources that recording needs, and which names threads.

use core::ffi::{c_int, c_ulong};

use crate::preload::choose::by_thread;
use crate::preload::elf::real;
use crate::preload::platform::{confined, thread_name};
use crate::preload::session::{begin, follow};
use crate::preload::spool::{push, session};
use crate::reasons::Stop;

/// `SECCOMP_MODE_STRICT`, which forbids nearly all system calls and reading the CPU's counter.
const STRICT: c_ulong = 1;

/// `prctl`, extended to end the recording if the clock is about to become unreadable, because reading it would kill the
/// program.
///
/// # Safety
/// The requirements are those of the real function with this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn prctl(
    option: c_int,
    two: c_ulong,
    three: c_ulong,
    four: c_ulong,
    five: c_ulong,
) -> c_int {
    let strict = option == libc::PR_SET_SECCOMP && two == STRICT;
    let no_clock = option == libc::PR_SET_TSC && two == libc::PR_TSC_SIGSEGV as c_ulong;
    if strict || no_clock {
        session::stop(Stop::Confined);
    }
    if matches!(option, libc::PR_SET_NO_NEW_PRIVS | libc::PR_SET_SECCOMP) {
        follow::silence();
        session::current().into_iter().for_each(|session| session.spool.header().silence());
    }
    let function = if real::known() { real::prctl() } else { None };
    let result = match function {
        // SAFETY: the caller's arguments. Those that the caller did not pass are not used.
        Some(prctl) => unsafe { prctl(option, two, three, four, five) },
        None => {
            // SAFETY: as above.
            let result = unsafe { libc::syscall(libc::SYS_prctl, option, two, three, four, five) };
            c_int::try_from(result).unwrap_or(-1)
        }
    };
    if result != 0 {
        return result;
    }
    match option {
        libc::PR_SET_NO_NEW_PRIVS | libc::PR_SET_SECCOMP => confined::note(),
        libc::PR_SET_NAME => named(two as *const u8),
        _ => {}
    }
    result
}

/// Records the new name of the calling thread. The kernel has read it, so no system call is needed.
fn named(name: *const u8) {
    by_thread::names_changed();
    let Some(session) = begin::session() else { return };
    let mut bytes = [0; thread_name::BYTES];
    for (place, to) in bytes.iter_mut().enumerate().take(thread_name::BYTES - 1) {
        // SAFETY: the kernel has read as much: up to a zero, and no more than these bytes.
        *to = unsafe { name.add(place).read() };
        if *to == 0 {
            break;
        }
    }
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or_default();
    push::thread_name(session, bytes.get(..length).unwrap_or_default(), 0);
}
