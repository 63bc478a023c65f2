//! Paths that are put together without allocating, and what they lead to.

use core::ffi::CStr;
use core::mem::MaybeUninit;

/// Bytes of the longest path, and the zero behind it.
const BYTES: usize = 4096;

/// A path, with a zero behind it.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    bytes: [u8; BYTES],
    length: usize,
}

impl Path {
    /// Makes an empty one.
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; BYTES], length: 0 }
    }

    /// Puts bytes behind it; `None` if it becomes too long.
    pub(crate) fn with(mut self, more: &[u8]) -> Option<Self> {
        let end = self.length.checked_add(more.len()).filter(|end| *end < BYTES)?;
        self.bytes.get_mut(self.length..end)?.copy_from_slice(more);
        self.length = end;
        Some(self)
    }

    /// Puts a number behind it.
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

    /// Returns it without what stands behind its last slash.
    pub(crate) fn folder(mut self) -> Option<Self> {
        let slash = self.bytes.get(..self.length)?.iter().rposition(|byte| *byte == b'/')?;
        self.bytes.get_mut(slash + 1..self.length)?.fill(0);
        self.length = slash + 1;
        Some(self)
    }

    /// Returns its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Returns it as the C library takes it.
    pub(crate) fn as_c(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// What tells a file from all others: its device and its number there.
pub(crate) type Identity = (libc::dev_t, libc::ino_t);

/// Returns what the file of this name is. Keeps `errno`.
pub(crate) fn identity(name: &CStr) -> Option<Identity> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: a C string, and room for the answer, which is whole where the call succeeds; `errno` of this thread.
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
