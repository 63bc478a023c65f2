//! Files that the recorded program opens.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use crate::record::spool::LIBRARY_FOLDER;
use hatf_trace::{Error, Result};

/// A file that other processes can open by its path as long as this value lives, even as another user or in another
/// namespace.
///
/// It is the only file in its directory. If this process is killed, the file and its directory remain and are removed
/// with the recording's spool. If no directory allows executable files, a memory file named `/proc/PROCESS/fd/N` is
/// used, which only processes of the same user can open.
#[derive(Debug)]
pub(super) struct SharedFile {
    /// The memory file, or `None` for a file in a directory, which needs no descriptor.
    memory: Option<File>,
    path: OsString,
    directory: Option<PathBuf>,
}

/// Returns the directories in which a file is created, the best first. Nobody else can create a file in these
/// directories. Otherwise, a program whose environment still contains the path after our file is gone would load that
/// other file. Programs that become another user can open the superuser's files.
fn parents() -> Vec<PathBuf> {
    // SAFETY: the call cannot fail.
    let user = unsafe { libc::geteuid() };
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let parents = if user == 0 {
        vec![Some("/run".into()), Some("/var/cache".into())]
    } else {
        let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
        vec![variable("XDG_RUNTIME_DIR"), cache]
    };
    let is_own = |path: &PathBuf| {
        path.metadata().is_ok_and(|metadata| metadata.uid() == user && metadata.permissions().mode() & 0o022 == 0)
    };
    parents.into_iter().flatten().filter(is_own).collect()
}

impl SharedFile {
    /// Creates a file with this content that can be mapped as code.
    pub(super) fn create(name: &str, content: &[u8]) -> Result<Self> {
        let attempt = |made: io::Result<(Self, File)>| -> io::Result<Self> {
            let (mut shared, mut file) = made?;
            file.write_all(content)?;
            check_code(&file)?;
            shared.memory = shared.directory.is_none().then_some(file);
            Ok(shared)
        };
        let mut parents = parents().into_iter();
        parents
            .find_map(|parent| attempt(Self::in_directory(&parent, name)).ok())
            .map_or_else(|| attempt(Self::in_memory(name)), Ok)
            .map_err(Error::system("cannot write the recorder to a file"))
    }

    /// Returns the path by which other processes open the file.
    pub(super) fn path(&self) -> &OsStr {
        &self.path
    }

    fn in_memory(name: &str) -> io::Result<(Self, File)> {
        let name = CString::new(name)?;
        // SAFETY: the argument is a C string, and the result is checked.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let file = unsafe { File::from_raw_fd(fd) };
        let path = format!("/proc/{}/fd/{fd}", std::process::id());
        File::open(&path)?;
        Ok((Self { memory: None, path: path.into(), directory: None }, file))
    }

    fn in_directory(parent: &Path, name: &str) -> io::Result<(Self, File)> {
        // A space or a colon would end the path in LD_PRELOAD.
        if parent.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte)) {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let directory = tempfile::Builder::new().prefix(LIBRARY_FOLDER).tempdir_in(parent)?;
        let path = directory.path().join(name);
        let file = File::create_new(&path)?;
        let made = Self { memory: None, path: path.into_os_string(), directory: Some(directory.keep()) };
        // These permissions are independent of this process's umask.
        let everybody = |mode| fs::Permissions::from_mode(mode);
        file.set_permissions(everybody(0o555))?;
        fs::set_permissions(made.directory.as_deref().unwrap_or(parent), everybody(0o755))?;
        Ok((made, file))
    }
}

/// Checks that the program's dynamic linker will be able to map the file as code.
fn check_code(file: &File) -> io::Result<()> {
    let access = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: this maps a page of an open file at an address chosen by the kernel, and unmaps it immediately.
    unsafe {
        let page = libc::mmap(null_mut(), 4096, access, libc::MAP_PRIVATE, file.as_raw_fd(), 0);
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        libc::munmap(page, 4096);
    }
    Ok(())
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
        for made in [SharedFile::in_memory("a"), SharedFile::in_directory(&std::env::temp_dir(), "a")] {
            let (shared, mut file) = made.unwrap();
            file.write_all(&[7; 5000]).unwrap();
            check_code(&file).unwrap();
            assert_eq!(fs::read(shared.path()).unwrap(), [7; 5000]);
            let (path, directory) = (shared.path().to_owned(), shared.directory.clone());
            drop(shared);
            assert!(directory.is_none_or(|directory| !Path::new(&path).exists() && !directory.exists()));
        }
    }
}
