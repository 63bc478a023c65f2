//! `dlclose`: discards the data about an unloaded module.

use core::ffi::{c_int, c_void};

use crate::preload::accesses::known;
use crate::preload::elf::real;
use crate::preload::stacks::met_modules::note_unloaded;
use crate::preload::stacks::{python, unwind};

/// # Safety
/// The requirements are those of the real function with this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    let Some(dlclose) = (if real::known() { real::dlclose() } else { None }) else { return -1 };
    let paused = python::pause();
    known::before_unload();
    // SAFETY: the caller's argument.
    let result = unsafe { dlclose(handle) };
    known::after_unload();
    python::resume(paused);
    if unwind::is_on() {
        note_unloaded();
    }
    result
}
