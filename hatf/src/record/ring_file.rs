//! The ring's file, mapped in this process.

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
    /// Makes a ring.
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
        unsafe { Ring::create(memory, LOG2_SLOTS) }.prefault();
        Ok(Self { file, memory })
    }

    /// Returns the path by which the program opens it.
    pub(super) fn path(&self) -> &OsStr {
        self.file.path()
    }

    /// Attaches to the ring.
    ///
    /// # Errors
    /// Its header was overwritten.
    pub(super) fn ring(&self) -> Result<Ring<'_>> {
        // SAFETY: the memory that `create` mapped and made a ring of, for as long as `self` lives.
        let ring = unsafe { Ring::attach(self.memory, bytes_for(LOG2_SLOTS)) };
        ring.ok_or_else(|| Error::Trace("the ring of the recording was overwritten".into()))
    }
}

impl Drop for RingFile {
    fn drop(&mut self) {
        // SAFETY: the mapping that `create` made. No ring outlives `self`.
        unsafe { libc::munmap(self.memory.cast(), bytes_for(LOG2_SLOTS)) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use hatf_record::{Consumer, Poll};

    use super::*;

    #[test]
    fn a_ring_that_exists_is_attached_to() {
        let file = RingFile::create().unwrap();
        assert!(file.ring().unwrap().push(&[7; 7], || false));
        assert_eq!(Consumer::new(file.ring().unwrap()).poll(), Poll::Event([7; 7]));
        // Magic, version, bytes of a slot, number of slots.
        for at in [0, 8, 12, 16] {
            let file = RingFile::create().unwrap();
            file.file.file().write_all_at(&[9], at).unwrap();
            assert!(file.ring().is_err(), "{at}");
        }
    }

    #[test]
    fn a_program_cannot_shorten_the_ring() {
        let file = RingFile::create().unwrap();
        if file.path().to_string_lossy().starts_with("/proc/") {
            let opened = std::fs::OpenOptions::new().write(true).open(file.path()).unwrap();
            assert!(opened.set_len(0).is_err() && opened.set_len(1 << 30).is_err());
        }
    }
}
