//! Files that the recorded program opens.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::ptr::null_mut;

use crate::{Error, Result};

/// A file that another process of the same user can open by its path for as long as this lives.
///
/// It is a memory file, named `/proc/PROCESS/fd/N`: nothing stays behind, however we end. Where such
/// files may not be mapped as code, or do not exist, it is a file in a private temporary directory.
#[derive(Debug)]
pub(super) struct SharedFile {
    file: File,
    path: OsString,
    directory: Option<PathBuf>,
}

impl SharedFile {
    /// Makes a file with that content, which can be mapped as code.
    pub(super) fn create(name: &str, content: &[u8]) -> Result<Self> {
        let attempt = |made: io::Result<Self>| -> io::Result<Self> {
            let mut shared = made?;
            shared.file.write_all(content)?;
            shared.check_code()?;
            Ok(shared)
        };
        attempt(Self::in_memory(name))
            .or_else(|_| attempt(Self::in_directory(name)))
            .map_err(Error::system("cannot lay out the recorder"))
    }

    /// Returns the path by which other processes open it.
    pub(super) fn path(&self) -> &OsStr {
        &self.path
    }

    fn in_memory(name: &str) -> io::Result<Self> {
        let name = CString::new(name)?;
        // SAFETY: a C string; the answer is checked.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that was just made, and that nobody else has.
        let file = unsafe { File::from_raw_fd(fd) };
        let path = format!("/proc/{}/fd/{fd}", std::process::id());
        File::open(&path)?;
        Ok(Self { file, path: path.into(), directory: None })
    }

    fn in_directory(name: &str) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for parent in [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()] {
            match Self::in_directory_of(parent, name) {
                Ok(shared) => return Ok(shared),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn in_directory_of(parent: PathBuf, name: &str) -> io::Result<Self> {
        // A space or a colon would end the path in LD_PRELOAD.
        if parent.to_string_lossy().contains([' ', ':']) {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let directory = parent.join(format!("hatf-{}-{name}", std::process::id()));
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700).create(&directory)?;
        let path = directory.join(name);
        let mut options = File::options();
        let made = options.read(true).write(true).create_new(true).mode(0o700).open(&path);
        match made {
            Ok(file) => Ok(Self { file, path: path.into_os_string(), directory: Some(directory) }),
            Err(error) => {
                let _ = fs::remove_dir(&directory);
                Err(error)
            }
        }
    }

    /// Checks that the dynamic linker of the program will be able to map this as code.
    fn check_code(&self) -> io::Result<()> {
        let access = libc::PROT_READ | libc::PROT_EXEC;
        let fd = self.file.as_raw_fd();
        // SAFETY: a page of an open file, mapped where the kernel likes, and unmapped at once.
        unsafe {
            let page = libc::mmap(null_mut(), 4096, access, libc::MAP_PRIVATE, fd, 0);
            if page == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            libc::munmap(page, 4096);
        }
        Ok(())
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory {
            let _ = fs::remove_file(&self.path);
            let _ = fs::remove_dir(directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_can_be_opened_by_path() {
        for made in [SharedFile::in_memory("a"), SharedFile::in_directory("a")] {
            let mut shared = made.unwrap();
            shared.file.write_all(&[7; 5000]).unwrap();
            shared.check_code().unwrap();
            assert_eq!(fs::read(shared.path()).unwrap(), [7; 5000]);
            let (path, temporary) = (shared.path().to_owned(), shared.directory.is_some());
            drop(shared);
            assert!(!temporary || !PathBuf::from(path).exists());
        }
    }
}
