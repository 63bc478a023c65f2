//! The ring, mapped in this process.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::null_mut;

use hatf_record::{Ring, bytes_for};

use super::shared_file::SharedFile;
use crate::{Error, Result};

/// 2^17 slots, 8 MiB: about 10 ms of a program that does nothing but allocate.
const LOG2_SLOTS: u32 = 17;

/// A ring in a file that the program can open.
#[derive(Debug)]
pub(super) struct RingFile {
    file: SharedFile,
    memory: *mut u8,
}

impl RingFile {
    pub(super) fn create() -> Result<Self> {
        let bytes = bytes_for(LOG2_SLOTS);
        let file = SharedFile::zeroed("hatf-ring", bytes)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let fd = file.file().as_raw_fd();
        // SAFETY: the whole of a file just made, mapped where the kernel likes.
        let memory = unsafe { libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, fd, 0) };
        if memory == libc::MAP_FAILED {
            return Err(Error::system("cannot map the ring")(io::Error::last_os_error()));
        }
        let memory = memory.cast();
        // SAFETY: fresh zeroed memory of the ring's size, used through rings only.
        unsafe { Ring::create(memory, LOG2_SLOTS) }.touch();
        Ok(Self { file, memory })
    }

    pub(super) fn path(&self) -> &OsStr {
        self.file.path()
    }

    pub(super) fn ring(&self) -> Ring<'_> {
        // SAFETY: the memory that `create` mapped and made a ring of, for as long as `self` lives.
        // Making it again changes no slot.
        unsafe { Ring::create(self.memory, LOG2_SLOTS) }
    }
}

impl Drop for RingFile {
    fn drop(&mut self) {
        // SAFETY: the mapping that `create` made. No ring outlives `self`.
        unsafe { libc::munmap(self.memory.cast(), bytes_for(LOG2_SLOTS)) };
    }
}
