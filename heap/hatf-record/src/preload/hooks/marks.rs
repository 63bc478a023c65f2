//! Marks and phases reported by a program: the functions behind `include/hatf.h`, under the names that the header looks
//! up.

use core::ffi::c_char;

use crate::event::{Kind, TEXT_MAX};
use crate::preload::events::record;

/// Records a mark or phase. Preserves `errno`. Does nothing if the process is not being recorded.
///
/// # Safety
/// `name` must be a C string or null. Null is not a name and is not recorded.
unsafe fn record(kind: Kind, name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: a C string, of which no byte past its end is read.
    let name = unsafe { core::slice::from_raw_parts(name.cast::<u8>(), libc::strnlen(name, TEXT_MAX)) };
    record::mark(kind, name);
}

/// Records a mark.
///
/// # Safety
/// `name` must be a C string or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hatf_recorder_mark(name: *const c_char) {
    // SAFETY: by the caller's promise.
    unsafe { record(Kind::Mark, name) }
}

/// Records the start of a phase.
///
/// # Safety
/// `name` must be a C string or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hatf_recorder_phase_begin(name: *const c_char) {
    // SAFETY: by the caller's promise.
    unsafe { record(Kind::PhaseBegin, name) }
}

/// Records the end of the most recently started phase with this name.
///
/// # Safety
/// `name` must be a C string or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hatf_recorder_phase_end(name: *const c_char) {
    // SAFETY: by the caller's promise.
    unsafe { record(Kind::PhaseEnd, name) }
}
