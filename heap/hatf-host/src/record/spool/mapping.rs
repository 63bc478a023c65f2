//! A mapped file that other processes have mapped, too, and may truncate.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::null_mut;

use hatf_record::CHUNK_BYTES;

use super::bus_error::Guard;

/// The mapped bytes of a file. Bytes that cannot be read are zeros: see [`super::bus_error`].
#[derive(Debug)]
pub(super) struct Mapping {
    file: File,
    guard: Option<&'static Guard>,
    /// The file's bytes, within the reserved address range.
    memory: *mut u8,
    bytes: usize,
    reserved: *mut libc::c_void,
    whole: usize,
}

// SAFETY: the memory is used only through atomics, as everyone who takes its address must guarantee.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps this many bytes of a file opened for reading and writing, at a multiple of the chunk size.
    ///
    /// # Errors
    /// Returns an error if a system call failed.
    pub(super) fn new(file: File, bytes: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let nowhere = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let whole = bytes.next_multiple_of(CHUNK_BYTES) + CHUNK_BYTES;
        // SAFETY: this reserves unused addresses, more than are needed.
        let reserved = unsafe { libc::mmap(null_mut(), whole, libc::PROT_NONE, nowhere, -1, 0) };
        if reserved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let before = (reserved as usize).next_multiple_of(CHUNK_BYTES) - reserved as usize;
        // SAFETY: the address is within the reserved range, which is longer by a chunk.
        let memory = unsafe { reserved.byte_add(before) };
        let mut mapping = Self { file, guard: None, memory: memory.cast(), bytes, reserved, whole };
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let file = mapping.file.as_raw_fd();
        // SAFETY: this maps an open file over reserved addresses.
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

    /// Returns the number of touched bytes that could not be read.
    pub(super) fn unreadable(&self) -> u64 {
        self.guard.map_or(0, Guard::unreadable)
    }

    /// Returns the address of the mapping, which is valid as long as the mapping lives.
    pub(super) fn memory(&self) -> *mut u8 {
        self.memory
    }

    /// Returns the length of the mapping.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Some(guard) = self.guard {
            guard.release();
        }
        // SAFETY: this is the range that `new` reserved, with the file in it. No view of it outlives `self`.
        unsafe { libc::munmap(self.reserved, self.whole) };
    }
}
