//! A file that others have mapped, too, and may cut off.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::null_mut;

use hatf_record::CHUNK_BYTES;

use super::bus_error::Guard;

/// The mapped bytes of a file. Those that cannot be read are zeros: see [`super::bus_error`].
#[derive(Debug)]
pub(super) struct Mapping {
    file: File,
    guard: Option<&'static Guard>,
    /// The file's bytes, amid what is reserved.
    memory: *mut u8,
    bytes: usize,
    reserved: *mut libc::c_void,
    whole: usize,
}

// SAFETY: the memory is used through atomics alone: that is what those promise who take its address.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps this many bytes of a file that was opened for reading and writing, at a multiple of a chunk's length.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn new(file: File, bytes: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let nowhere = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let whole = bytes.next_multiple_of(CHUNK_BYTES) + CHUNK_BYTES;
        // SAFETY: addresses that nobody has are reserved, more than are needed.
        let reserved = unsafe { libc::mmap(null_mut(), whole, libc::PROT_NONE, nowhere, -1, 0) };
        if reserved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let before = (reserved as usize).next_multiple_of(CHUNK_BYTES) - reserved as usize;
        // SAFETY: inside of what is reserved, as that is longer by a chunk.
        let memory = unsafe { reserved.byte_add(before) };
        let mut mapping = Self { file, guard: None, memory: memory.cast(), bytes, reserved, whole };
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let file = mapping.file.as_raw_fd();
        // SAFETY: an open file, in place of addresses that are reserved.
        if unsafe { libc::mmap(memory, bytes, access, flags, file, 0) } == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        mapping.guard = Guard::new(memory as usize, bytes, file);
        Ok(mapping)
    }

    /// Returns the file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns how many bytes were touched that could not be read.
    pub(super) fn unreadable(&self) -> u64 {
        self.guard.map_or(0, Guard::unreadable)
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
        if let Some(guard) = self.guard {
            guard.release();
        }
        // SAFETY: what `new` reserved, with the file in it. Nothing that looks at it outlives `self`.
        unsafe { libc::munmap(self.reserved, self.whole) };
    }
}
