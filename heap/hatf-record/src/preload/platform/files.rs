//! Files of the recording, accessed through the C library alone.

use core::ffi::{CStr, c_int, c_void};

/// Opens a file for reading and writing. It must be a regular file owned by this user: a file of another user is never
/// written to, whatever path led to it.
pub(crate) fn open_own(path: &CStr) -> Option<(libc::c_int, usize)> {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: a C string; a place for the result, for which all zeros are a valid value; a file that was opened here.
    unsafe {
        let mut file = libc::open(path.as_ptr(), flags);
        while file < 0 && *libc::__errno_location() == libc::EINTR {
            file = libc::open(path.as_ptr(), flags);
        }
        if file < 0 {
            return None;
        }
        let mut about: libc::stat = core::mem::zeroed();
        let known = libc::fstat(file, &raw mut about) == 0;
        let is_own = about.st_uid == libc::geteuid() && about.st_mode & libc::S_IFMT == libc::S_IFREG;
        match usize::try_from(about.st_size) {
            Ok(bytes) if known && is_own => Some((file, bytes)),
            _ => {
                libc::close(file);
                *libc::__errno_location() = libc::EACCES;
                None
            }
        }
    }
}

/// Creates a file for reading and writing that only this user can open.
pub(crate) fn create(path: &CStr) -> Option<c_int> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: a C string.
    let file = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    (file >= 0).then_some(file)
}

/// Copies a file as far as possible.
pub(crate) fn copy(from: &CStr, to: &CStr) {
    let Some(to) = create(to) else { return };
    // SAFETY: a C string; a buffer and its length; files that were opened here.
    unsafe {
        let from = libc::open(from.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let mut bytes = [0_u8; 4096];
        // The arguments of a program are at most 2 MiB, or a quarter of its stack.
        loop {
            let read = libc::read(from, bytes.as_mut_ptr().cast(), bytes.len());
            let Some(length) = usize::try_from(read).ok().filter(|length| *length > 0) else { break };
            if libc::write(to, bytes.as_ptr().cast(), length) != read {
                break;
            }
        }
        libc::close(from);
        libc::close(to);
    }
}

/// Reads the beginning of a file.
pub(crate) fn read<'b>(path: &CStr, bytes: &'b mut [u8]) -> Option<&'b [u8]> {
    // SAFETY: a C string, and a buffer with its length.
    let length = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let length = libc::read(file, bytes.as_mut_ptr().cast::<c_void>(), bytes.len());
        libc::close(file);
        length
    };
    bytes.get(..usize::try_from(length).ok()?)
}

/// Calls a function with all bytes of a file, piece by piece. Returns `false` if the file cannot be opened. Preserves
/// `errno`.
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
pub(crate) fn read_all(path: &CStr, mut use_bytes: impl FnMut(&[u8])) -> bool {
    // SAFETY: `errno` of this thread; a C string; a buffer with its length, and a file that is opened here.
    unsafe {
        let errno = *libc::__errno_location();
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file >= 0 {
            let mut bytes = [0_u8; 1024];
            while let Ok(length @ 1..) = usize::try_from(libc::read(file, bytes.as_mut_ptr().cast(), bytes.len())) {
                use_bytes(bytes.get(..length).unwrap_or_default());
            }
            libc::close(file);
        }
        *libc::__errno_location() = errno;
        file >= 0
    }
}
