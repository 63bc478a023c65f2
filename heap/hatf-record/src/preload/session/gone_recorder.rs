//! The recorder's file, or the recording process, may disappear before a recorded process ends. A program started by
//! such a process must not look for the recorder. Otherwise, the dynamic linker would print an error, or load a
//! different file that has been created under the same name.
//!
//! The name is overwritten with colons in `LD_PRELOAD`, in place: nothing is allocated, and no pointer changes.

use core::ffi::{CStr, c_char};

use super::origin::{self, VARIABLES};

type List = *const *const c_char;

unsafe extern "C" {
    static environ: List;
}

/// Removes the recorder from a program's environment, and from this process's own, if its file is gone.
///
/// # Safety
/// `list` must be null, or a list of C strings that ends with null.
pub(crate) unsafe fn forget(list: List) {
    let Some(library) = origin::gone_library() else { return };
    // SAFETY: by the caller's promise, and the C library's.
    unsafe {
        forget_in(list, library);
        if list != environ {
            forget_in(environ, library);
        }
    }
}

/// Removes the recorder from the environment of programs that the C library starts itself.
pub(crate) fn forget_own() {
    // SAFETY: null, or a list.
    unsafe { forget(environ) };
}

/// # Safety
/// The requirements are the same as for [`forget`].
unsafe fn forget_in(mut list: List, library: &[u8]) {
    let [.., preload] = VARIABLES;
    let name = preload.to_bytes();
    // SAFETY: by the caller's promise. Strings of an environment are the process's to change.
    unsafe {
        while !list.is_null() && !(*list).is_null() {
            let entry = CStr::from_ptr(*list).to_bytes();
            if let Some(value) = entry.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
                for place in value.split(|byte| b": ".contains(byte)).filter(|place| *place == library) {
                    place.as_ptr().cast_mut().write_bytes(b':', place.len());
                }
            }
            list = list.add(1);
        }
    }
}
