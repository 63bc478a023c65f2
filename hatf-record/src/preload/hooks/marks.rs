//! Marks and phases that a program reports: the functions of `include/hatf.h`, under the names that the header looks up.

use core::ffi::c_char;

use crate::event::{Kind, TEXT_MAX};
use crate::preload::events::record;

/// Records a mark or a phase. Keeps `errno`; does nothing where the process is not recorded.
///
/// # Safety
/// `name` is null, which is no name and not recorded, or a C string.
unsafe fn record(kind: Kind, name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: a C string, of which no byte behind its end is looked at.
    let name = unsafe { core::slice::from_raw_parts(name.cast::<u8>(), libc::strnlen(name, TEXT_MAX)) };
    record::mark(kind, name);
}

/// Records a mark.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hatf_recorder_mark(name: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe { record(Kind::Mark, name) }
}

/// Records that a phase begins.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hatf_recorder_phase_begin(name: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe { record(Kind::PhaseBegin, name) }
}

/// Records that the phase that began last under this name ends.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hatf_recorder_phase_end(name: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe { record(Kind::PhaseEnd, name) }
}
