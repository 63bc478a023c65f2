//! Names of threads.

use core::ffi::{CStr, c_char, c_int};

use super::attach::session;
use super::push;
#[cfg(feature = "preload")]
use super::real;
use super::session::Session;
use crate::event::{Event, Kind};

/// Bytes of a name, with the zero behind it.
const BYTES: usize = 16;

/// Records that a thread is named: the calling one, or the one of a `pthread_t`.
pub(crate) fn record(session: &Session, name: &[u8], other: u64) {
    let event = Event::new(Kind::ThreadName, push::thread_number(session), session.clock.now());
    push::event(session, Event { extra: other, ..event }, name);
}

/// Records the name that the calling thread has.
pub(crate) fn record_own(session: &Session) {
    let mut bytes = [0_u8; BYTES];
    if let Some(name) = own(&mut bytes) {
        record(session, name, 0);
    }
}

/// Records the name that the main thread of a program has, unless it is that of the program's file, as it is by itself.
pub(crate) fn record_main(session: &Session, program: &[u8]) {
    let mut bytes = [0_u8; BYTES];
    let file = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if let Some(name) = own(&mut bytes)
        && name != file.get(..BYTES - 1).unwrap_or(file)
    {
        record(session, name, 0);
    }
}

/// Returns the name that the calling thread has.
fn own(bytes: &mut [u8; BYTES]) -> Option<&[u8]> {
    // SAFETY: a place for as many bytes as the kernel gives; `prctl` itself is interposed.
    let asked = unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_NAME, bytes.as_mut_ptr(), 0, 0, 0) };
    let name = CStr::from_bytes_until_nul(bytes).ok().filter(|_| asked == 0)?;
    Some(name.to_bytes())
}

/// `pthread_setname_np`, of which the name is recorded.
///
/// # Safety
/// As the function of this name.
#[cfg(feature = "preload")]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_setname_np(thread: libc::pthread_t, name: *const c_char) -> c_int {
    let function = if real::known() { real::pthread_setname_np() } else { None };
    let Some(set) = function else { return libc::ENOSYS };
    // SAFETY: the caller's arguments.
    let result = unsafe { set(thread, name) };
    if result == 0
        && let Some(session) = session()
    {
        // SAFETY: cannot fail; the name was one, of a few bytes.
        unsafe {
            let own = libc::pthread_equal(thread, libc::pthread_self()) != 0;
            record(session, CStr::from_ptr(name).to_bytes(), if own { 0 } else { thread as u64 });
        }
    }
    result
}
