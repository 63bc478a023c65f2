//! Names of threads in the kernel.

use core::ffi::CStr;

/// The maximum length of a name in bytes, including the terminating zero.
pub(crate) const BYTES: usize = 16;

/// Returns the name of the calling thread.
pub(crate) fn own(bytes: &mut [u8; BYTES]) -> Option<&[u8]> {
    // SAFETY: a place for as many bytes as the kernel returns, and `errno` of this thread, which is preserved; `prctl`
    // itself is interposed.
    let asked = unsafe {
        let errno = *libc::__errno_location();
        let asked = libc::syscall(libc::SYS_prctl, libc::PR_GET_NAME, bytes.as_mut_ptr(), 0, 0, 0);
        *libc::__errno_location() = errno;
        asked
    };
    let name = CStr::from_bytes_until_nul(bytes).ok().filter(|_| asked == 0)?;
    Some(name.to_bytes())
}

/// Returns whether a main thread has its default name, which is the beginning of its program's file name.
pub(crate) fn is_of_file(name: &[u8], program: &[u8]) -> bool {
    let file = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name == file.get(..BYTES - 1).unwrap_or(file)
}
