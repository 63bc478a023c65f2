//! `prctl`: a program may give up what recording needs, and names threads.

use core::ffi::{c_int, c_ulong};

use super::{attach, only, push, real, session};
use crate::reasons::Stop;

/// `SECCOMP_MODE_STRICT`: hardly any system call, and the processor's counter is not to be read.
const STRICT: c_ulong = 1;

/// `prctl`. Ends the recording where the clock is about to become unreadable: reading it would end the program.
///
/// # Safety
/// As the function of this name.
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
    let function = if real::known() { real::prctl() } else { None };
    let result = match function {
        // SAFETY: the caller's arguments. Those that it did not give are not looked at.
        Some(prctl) => unsafe { prctl(option, two, three, four, five) },
        None => {
            // SAFETY: as above.
            let result = unsafe { libc::syscall(libc::SYS_prctl, option, two, three, four, five) };
            c_int::try_from(result).unwrap_or(-1)
        }
    };
    if option == libc::PR_SET_NAME && result == 0 {
        only::names_changed();
        if let Some(session) = attach::session() {
            push::own_name(session);
        }
    }
    result
}
