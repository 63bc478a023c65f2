//! Names of threads, as the kernel has them.

use core::ffi::CStr;

/// Bytes of a name, with the zero behind it.
pub(crate) const BYTES: usize = 16;

/// Returns the name that the calling thread has.
pub(crate) fn own(bytes: &mut [u8; BYTES]) -> Option<&[u8]> {
    // SAFETY: a place for as many bytes as the kernel gives, and `errno` of this thread, which stays; `prctl` itself is interposed.
    let asked = unsafe {
        let errno = *libc::__errno_location();
        let asked = libc::syscall(libc::SYS_prctl, libc::PR_GET_NAME, bytes.as_mut_ptr(), 0, 0, 0);
        *libc::__errno_location() = errno;
        asked
    };
    let name = CStr::from_bytes_until_nul(bytes).ok().filter(|_| asked == 0)?;
    Some(name.to_bytes())
}

/// Returns whether a main thread has a name by itself: that of the program's file, of which the kernel keeps the beginning.
pub(crate) fn is_of_file(name: &[u8], program: &[u8]) -> bool {
    let file = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name == file.get(..BYTES - 1).unwrap_or(file)
}
