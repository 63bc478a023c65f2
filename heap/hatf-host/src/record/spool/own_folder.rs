//! A directory that belongs to this user alone, and the files in it. Spools are created in world-writable directories
//! and found there again, so anything that belongs to another user must be ignored.
//!
//! Owner and permissions are checked on the opened directory, even if its name is reused later, and files are opened
//! relative to this directory. Links are not followed, and anything other than a regular file is rejected before it is
//! read.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};

/// The permission bits of the group and of other users. None of them may be set on our directories.
const OTHERS: u32 = 0o077;

/// A directory that only this user can access.
#[derive(Debug)]
pub(crate) struct OwnFolder {
    path: PathBuf,
    folder: File,
}

/// The purpose for which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// Opens an existing file for reading and writing.
    Edit,
    /// Creates a new file for reading and writing.
    Create,
}

impl OwnFolder {
    /// Opens a directory.
    ///
    /// # Errors
    /// Returns an error if the directory does not exist, belongs to another user, or grants permissions to other users.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let folder = File::options().read(true).custom_flags(flags).open(path)?;
        let metadata = folder.metadata()?;
        if !is_own(&metadata) {
            return Err(refused("it belongs to another user"));
        }
        if metadata.permissions().mode() & OTHERS != 0 {
            return Err(refused("other users can read or change it: if you trust its contents, run `chmod 700` on it"));
        }
        Ok(Self { path: path.to_owned(), folder })
    }

    /// Returns the path by which the directory was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file in the directory.
    ///
    /// # Errors
    /// Returns an error if a system call failed, or the file is not a regular file of this user.
    pub(super) fn file(&self, name: &str, access: Access) -> io::Result<File> {
        let how = match access {
            Access::Read => OFlags::RDONLY,
            Access::Edit => OFlags::RDWR,
            Access::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        // Open the file without blocking, in case it is a pipe without a peer.
        let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open = || openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR);
        let file = File::from(rustix::io::retry_on_intr(open)?);
        let metadata = file.metadata()?;
        if !metadata.is_file() || !is_own(&metadata) {
            return Err(refused("it is not a regular file owned by this user"));
        }
        Ok(file)
    }

    /// Reads a file of at most `most` bytes in the directory.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`OwnFolder::file`], and if the file is longer than `most` bytes.
    pub(super) fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file(name, Access::Read)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("the file is larger than {most} bytes")));
        }
        Ok(bytes)
    }

    /// Writes a file in the directory, replacing an existing one atomically.
    ///
    /// # Errors
    /// Returns an error if a system call failed.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = format!("{name}.new");
        self.remove(&new);
        self.file(&new, Access::Create)?.write_all(bytes)?;
        Ok(renameat(&self.folder, &new, &self.folder, name)?)
    }

    /// Removes a file in the directory, if it exists.
    pub(super) fn remove(&self, name: &str) {
        let _ = unlinkat(&self.folder, name, AtFlags::empty());
    }
}

/// Returns whether a path currently names a directory of this user.
pub(super) fn is_named(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir() && is_own(&metadata))
}

fn is_own(metadata: &Metadata) -> bool {
    // SAFETY: the call cannot fail.
    metadata.uid() == unsafe { libc::geteuid() }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Creates a directory for a test, which is removed when the first value is dropped.
#[cfg(test)]
pub(super) fn temporary() -> io::Result<(tempfile::TempDir, OwnFolder)> {
    let folder = tempfile::tempdir()?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700))?;
    let own = OwnFolder::open(folder.path())?;
    Ok((folder, own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_of_a_folder() {
        let (outside, folder) = temporary().unwrap();
        folder.write("a", b"one").unwrap();
        folder.write("a", b"three").unwrap();
        assert_eq!(folder.read("a", 5).unwrap(), b"three");
        assert_eq!(folder.read("a", 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(folder.file("a", Access::Create).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let victim = outside.path().join("a");
        symlink(&victim, outside.path().join("b")).unwrap();
        symlink(&victim, outside.path().join("c.new")).unwrap();
        assert!(folder.file("b", Access::Edit).is_err() && folder.read("b", 9).is_err());
        // The target of the link is not written either.
        folder.write("b", b"two").unwrap();
        folder.write("c", b"four").unwrap();
        assert_eq!((folder.read("a", 9).unwrap(), folder.read("b", 9).unwrap()), (b"three".to_vec(), b"two".to_vec()));
        folder.remove("a");
        assert!(!victim.exists() && folder.read("c", 9).unwrap() == b"four");
        // The opened directory stays the same, even if another one takes its name.
        let elsewhere = outside.path().with_extension("elsewhere");
        fs::rename(outside.path(), &elsewhere).unwrap();
        fs::create_dir(outside.path()).unwrap();
        assert!(folder.read("c", 9).is_ok());
        fs::remove_dir_all(elsewhere).unwrap();
    }
}
