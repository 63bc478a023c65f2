//! Pages of the recorder's own: by system calls, as the functions of these names are interposed, and what they record is the program's.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

/// `mmap`.
///
/// # Safety
/// As the function of this name.
#[cfg(target_pointer_width = "64")]
pub(crate) unsafe fn map(
    address: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_mmap, address, bytes, access, flags, file, offset) };
    result as *mut c_void
}

/// `munmap`; 0 where it did.
///
/// # Safety
/// As the function of this name.
#[cfg(target_pointer_width = "64")]
pub(crate) unsafe fn unmap(address: *mut c_void, bytes: usize) -> c_int {
    // SAFETY: the caller's promise.
    status(unsafe { libc::syscall(libc::SYS_munmap, address, bytes) })
}

/// `madvise`; 0 where it did.
///
/// # Safety
/// As the function of this name.
#[cfg(target_pointer_width = "64")]
pub(crate) unsafe fn advise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    // SAFETY: the caller's promise.
    status(unsafe { libc::syscall(libc::SYS_madvise, address, bytes, advice) })
}

/// Where pages are not recorded, the functions of these names do.
#[cfg(not(target_pointer_width = "64"))]
pub(crate) use libc::{madvise as advise, mmap as map, munmap as unmap};

#[cfg(target_pointer_width = "64")]
fn status(result: libc::c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}

/// Returns fresh zeros, at least so many; keeps `errno`.
pub(crate) fn pages(bytes: usize) -> Option<*mut c_void> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a system call with valid arguments; `errno` of this thread.
    unsafe {
        let errno = *libc::__errno_location();
        let pages = map(null_mut(), bytes, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        *libc::__errno_location() = errno;
        (pages != libc::MAP_FAILED).then_some(pages)
    }
}
