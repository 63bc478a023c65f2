//! What a program says of itself: marks and phases. The functions of `include/hatf.h`, under the names that the header
//! looks for.

use core::ffi::c_char;

use super::log::{self, TEXT_MOST};
use crate::event::Kind;

/// Records a name. `errno` stays as it is; so does everything where the process is not recorded.
///
/// # Safety
/// `name` is null, which is no name and not recorded, or a C string.
unsafe fn say(kind: Kind, name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: a C string, of which no byte behind its end is looked at.
    let name = unsafe { core::slice::from_raw_parts(name.cast::<u8>(), libc::strnlen(name, TEXT_MOST)) };
    log::said(kind, name);
}

/// The program is at a place of this name.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hatf_recorder_mark(name: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe { say(Kind::Mark, name) }
}

/// A phase of this name begins.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hatf_recorder_phase_begin(name: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe { say(Kind::PhaseBegin, name) }
}

/// The phase that began last under this name ends.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hatf_recorder_phase_end(name: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe { say(Kind::PhaseEnd, name) }
}
