//! Paths assembled without allocation, and the identities of files.

use core::ffi::CStr;
use core::mem::MaybeUninit;

/// The maximum length of a path in bytes, including the terminating zero.
const BYTES: usize = 4096;

/// A zero-terminated path.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    bytes: [u8; BYTES],
    length: usize,
}

impl Path {
    /// Creates an empty path.
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; BYTES], length: 0 }
    }

    /// Appends bytes. Returns `None` if the path becomes too long.
    pub(crate) fn with(mut self, more: &[u8]) -> Option<Self> {
        let end = self.length.checked_add(more.len()).filter(|end| *end < BYTES)?;
        self.bytes.get_mut(self.length..end)?.copy_from_slice(more);
        self.length = end;
        Some(self)
    }

    /// Appends a number.
    pub(crate) fn with_number(self, mut number: u64) -> Option<Self> {
        let mut digits = [0; 20];
        let mut used = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
            number /= 10;
            used += 1;
            if number == 0 {
                break;
            }
        }
        self.with(digits.get(digits.len() - used..)?)
    }

    /// Returns the path up to and including its last slash.
    pub(crate) fn folder(mut self) -> Option<Self> {
        let slash = self.bytes.get(..self.length)?.iter().rposition(|byte| *byte == b'/')?;
        self.bytes.get_mut(slash + 1..self.length)?.fill(0);
        self.length = slash + 1;
        Some(self)
    }

    /// Returns the bytes of the path.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Returns the path as a C string.
    pub(crate) fn as_c(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// The identity of a file: its device and its inode number.
pub(crate) type Identity = (libc::dev_t, libc::ino_t);

/// Returns the identity of the file with this name. Preserves `errno`.
pub(crate) fn identity(name: &CStr) -> Option<Identity> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: a C string, and room for the result, which is complete if the call succeeds; `errno` of this thread.
    unsafe {
        let errno = *libc::__errno_location();
        let is_there = libc::stat(name.as_ptr(), found.as_mut_ptr()) == 0;
        *libc::__errno_location() = errno;
        is_there.then(|| {
            let found = found.assume_init();
            (found.st_dev, found.st_ino)
        })
    }
}
