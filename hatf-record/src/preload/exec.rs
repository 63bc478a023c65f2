//! `exec` with an environment of the program's own: the next image is recorded as well, so it gets the variables that it needs for that.
//!
//! Only of the recorded process: children get what they are given. Nothing is allocated: the longer list of variables lies in
//! pages of its own, which are gone with this image, or are given back where the call fails.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;

use super::{real, session};

/// The variables that an image needs.
const NEEDED: [&CStr; 3] = [c"HATF_SPOOL", c"HATF_LIBRARY", c"LD_PRELOAD"];

unsafe extern "C" {
    static environ: *const *const c_char;
}

type List = *const *const c_char;

/// Returns the entry of a variable in a list; null if it has none.
///
/// # Safety
/// `list` is null, or a list of C strings that ends with null.
unsafe fn entry(list: List, name: &CStr) -> *const c_char {
    let length = name.to_bytes().len();
    let mut at = list;
    // SAFETY: the caller's promise; no string is looked at behind its end, as the name has no zero in it.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            if libc::strncmp(*at, name.as_ptr(), length) == 0 && *(*at).add(length) == b'=' as c_char {
                return *at;
            }
            at = at.add(1);
        }
    }
    core::ptr::null()
}

/// A list that is longer than the program's, in pages of its own.
struct Longer {
    pages: *mut c_void,
    bytes: usize,
}

impl Longer {
    /// Makes the list with the variables that are missing; `None` if there is none to add, or no memory.
    ///
    /// # Safety
    /// `list` is null, or a list of C strings that ends with null.
    unsafe fn of(list: List) -> Option<Self> {
        let current = session::current()?;
        // SAFETY: cannot fail.
        if unsafe { libc::getpid().cast_unsigned() } != current.process {
            return None;
        }
        // SAFETY: the C library's own list, and the caller's promise.
        let ours = NEEDED.map(|name| unsafe { (entry(environ, name), entry(list, name)) });
        // A list that has the first has them all, or is to have its own of the others.
        let [(spool, has_spool), ..] = ours;
        if spool.is_null() || !has_spool.is_null() {
            return None;
        }
        let mut count = 0;
        // SAFETY: the caller's promise.
        while unsafe { !list.is_null() && !(*list.add(count)).is_null() } {
            count += 1;
        }
        let bytes = (count + NEEDED.len() + 1) * size_of::<*const c_char>();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a system call with valid arguments.
        let pages = unsafe { libc::mmap(null_mut(), bytes, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        if pages == libc::MAP_FAILED {
            return None;
        }
        let longer = pages.cast::<*const c_char>();
        // SAFETY: there is room for the old entries, the new ones, and the null that is there already.
        unsafe {
            if count > 0 {
                core::ptr::copy_nonoverlapping(list, longer, count);
            }
            for (ours, theirs) in ours {
                // A library that the program preloads itself stays as it is: then the image is not recorded.
                if theirs.is_null() {
                    longer.add(count).write(ours);
                    count += 1;
                }
            }
        }
        Some(Self { pages, bytes })
    }
}

/// Calls `exec` with the list, or a longer one.
///
/// # Safety
/// `list` is null, or a list of C strings that ends with null.
unsafe fn with_needed(list: List, exec: impl FnOnce(List) -> c_int) -> c_int {
    // SAFETY: the caller's promise.
    let Some(longer) = (unsafe { Longer::of(list) }) else { return exec(list) };
    let failed = exec(longer.pages.cast::<*const c_char>());
    // SAFETY: pages that were made for this; `errno` of this thread is the call's.
    unsafe {
        let errno = *libc::__errno_location();
        libc::munmap(longer.pages, longer.bytes);
        *libc::__errno_location() = errno;
    }
    failed
}

macro_rules! exec {
    ($($(#[$doc:meta])* $name:ident($file:ty);)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// As the function of this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(file: $file, arguments: List, list: List) -> c_int {
                let function = if real::known() { real::$name() } else { None };
                let Some(exec) = function else {
                    // SAFETY: `errno` of this thread.
                    unsafe { *libc::__errno_location() = libc::ENOSYS };
                    return -1;
                };
                // SAFETY: the caller's arguments.
                unsafe { with_needed(list, |list| exec(file, arguments, list)) }
            }
        )*
    };
}

exec! {
    /// `execve` that keeps the recording.
    execve(*const c_char);
    /// `execvpe` that keeps the recording.
    execvpe(*const c_char);
    /// `fexecve` that keeps the recording.
    fexecve(c_int);
}
