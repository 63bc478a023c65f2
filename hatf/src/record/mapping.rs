//! A file that others have mapped, too, and may cut off.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::null_mut;

use hatf_record::CHUNK_BYTES;

use super::bus_error;

/// The mapped bytes of a file. Where it has no more of them they are zeros: see [`bus_error`].
#[derive(Debug)]
pub(super) struct Mapping {
    memory: *mut u8,
    bytes: usize,
}

// SAFETY: the memory is used through atomics alone: that is what those promise who take its address.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps so many bytes of a file that was opened for reading and writing, at a multiple of a chunk's length.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn new(file: &File, bytes: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let nowhere = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: addresses are reserved, more than are needed, and the file is mapped in place of some of them. The others stay
        // reserved, which costs nothing.
        let memory = unsafe {
            let whole = bytes.next_multiple_of(CHUNK_BYTES) + CHUNK_BYTES;
            let reserved = libc::mmap(null_mut(), whole, libc::PROT_NONE, nowhere, -1, 0);
            if reserved == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let before = (reserved as usize).next_multiple_of(CHUNK_BYTES) - reserved as usize;
            let flags = libc::MAP_SHARED | libc::MAP_FIXED;
            libc::mmap(reserved.byte_add(before), bytes, access, flags, file.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        bus_error::guard(memory as usize, bytes);
        Ok(Self { memory: memory.cast(), bytes })
    }

    /// Returns where it lies, for as long as it lives.
    pub(super) fn memory(&self) -> *mut u8 {
        self.memory
    }

    /// Returns its length.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        bus_error::release(self.memory as usize);
        // SAFETY: the mapping that `new` made. Nothing that looks at it outlives `self`.
        unsafe { libc::munmap(self.memory.cast(), self.bytes) };
    }
}
