//! A directory for output files, which are created through its file descriptor.
//!
//! Another user may rename a directory or replace it with a link while we write to it, and may already have placed
//! links in it. A file is therefore opened relative to the descriptor of the directory, without following links, and
//! replaces any file with the same name.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempPath;

/// The prefix of temporary names.
const PREFIX: &str = ".metatf-";

/// An open directory in which output files are created.
#[derive(Clone, Debug)]
pub struct OutputFolder {
    path: PathBuf,
    handle: Arc<Handle>,
}

impl OutputFolder {
    /// Opens a directory named by the user, creating it if necessary.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Self::open(path)
    }

    /// Opens a directory whose name is derived from the name of another output, and creates it if necessary. It must
    /// not have been created by another user.
    ///
    /// # Errors
    /// Returns the system error, or an error if the directory is a link or belongs to another user.
    pub fn create_own(path: &Path) -> io::Result<Self> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => created?,
        }
        Self::open_own(path)
    }

    /// Opens a directory created by [`OutputFolder::create_own`].
    ///
    /// # Errors
    /// Fails like [`OutputFolder::create_own`], or if the directory does not exist.
    pub fn open_own(path: &Path) -> io::Result<Self> {
        let is_link = || fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
        let handle = Handle::open(path, false).map_err(|error| {
            if is_link() { refused("it is a link; remove it or choose another output") } else { error }
        })?;
        let folder = Self { path: path.to_owned(), handle: Arc::new(handle) };
        if !folder.is_own()? {
            return Err(refused("it belongs to another user; remove it or choose another output"));
        }
        Ok(folder)
    }

    /// Opens the directory of a file, which need not exist.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn of(file: &Path) -> io::Result<Self> {
        Self::open(file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
    }

    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), handle: Arc::new(Handle::open(path, true)?) })
    }

    /// Opens a directory below this one, given the components of its relative path, and creates missing directories.
    ///
    /// # Errors
    /// Returns the system error, or an error if one of the names is a link.
    pub fn folders(&self, names: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Self> {
        names.into_iter().try_fold(self.clone(), |folder, name| {
            let name = name.as_ref();
            Ok(Self { path: folder.path.join(name), handle: Arc::new(folder.handle.folder(name)?) })
        })
    }

    /// Returns the path by which the directory was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a file for reading and writing that has its name from the start. An existing file of that name is
    /// removed.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn new_file(&self, name: &OsStr) -> io::Result<File> {
        self.remove(name);
        self.handle.create(name)
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// Returns the system error, or an error if it is not a regular file.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        let file = self.handle.read(name)?;
        if !file.metadata()?.is_file() {
            return Err(refused("it is not a regular file"));
        }
        Ok(file)
    }

    /// Removes a file if it exists.
    pub fn remove(&self, name: &OsStr) {
        let _ = self.handle.remove(name);
    }

    /// Renames a file, replacing any existing file of that name.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.handle.rename(from, to)
    }

    /// Gives a file an additional name, which must not exist yet.
    ///
    /// # Errors
    /// Returns the system error, or an error if a file has that name.
    pub(crate) fn link_name(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.handle.link_name(from, to)
    }

    /// Waits until the directory entries are on disk.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn sync(&self) -> io::Result<()> {
        self.handle.sync()
    }

    /// Returns the permissions of the file that `new` will replace, if both have the same owner.
    pub(crate) fn permissions(&self, name: &OsStr, new: &File) -> Option<fs::Permissions> {
        self.handle.permissions(name, new)
    }

    /// Returns whether a file still has this name.
    #[cfg(unix)]
    pub(crate) fn has(&self, file: &File, name: &OsStr) -> bool {
        self.handle.has(file, name)
    }

    /// Creates an unnamed file. Returns `None` if the operating system or the file system does not support this, or
    /// cannot name the file later.
    pub(crate) fn unnamed(&self) -> Option<File> {
        self.handle.unnamed()
    }

    /// Creates a file with a temporary name.
    pub(crate) fn temporary(&self) -> io::Result<(File, TempPath)> {
        self.temporarily(|name| self.handle.create(name))
    }

    /// Gives an unnamed file this name, which must not exist yet.
    pub(crate) fn link(&self, file: &File, name: &OsStr) -> io::Result<()> {
        self.handle.link(file, name)
    }

    /// Gives an unnamed file a temporary name.
    pub(crate) fn link_temporarily(&self, file: &File) -> io::Result<TempPath> {
        Ok(self.temporarily(|name| self.link(file, name))?.1)
    }

    /// Calls `make` with temporary names until it finds a free one.
    fn temporarily<T>(&self, mut make: impl FnMut(&OsStr) -> io::Result<T>) -> io::Result<(T, TempPath)> {
        let mut builder = tempfile::Builder::new();
        let made = builder.prefix(PREFIX).make_in(&self.path, |path| make(path.file_name().unwrap_or_default()))?;
        Ok(made.into_parts())
    }

    /// Returns whether the directory belongs to this user, that is, whether a file created in it has the same owner.
    /// This also holds if a network file system maps user IDs.
    #[cfg(unix)]
    fn is_own(&self) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt as _;
        let owner = self.handle.0.metadata()?.uid();
        if owner == rustix::process::geteuid().as_raw() {
            return Ok(true);
        }
        let probe = match self.unnamed() {
            Some(file) => file.metadata(),
            None => self.temporary().and_then(|(file, _name)| file.metadata()),
        };
        Ok(probe.is_ok_and(|probe| probe.uid() == owner))
    }

    #[cfg(not(unix))]
    fn is_own(&self) -> io::Result<bool> {
        Ok(true)
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Opens a file relative to a directory. A signal interrupts this on some file systems, such as NFS.
#[cfg(unix)]
fn openat(
    folder: impl std::os::fd::AsFd,
    name: impl rustix::path::Arg + Copy,
    flags: rustix::fs::OFlags,
    mode: rustix::fs::Mode,
) -> rustix::io::Result<std::os::fd::OwnedFd> {
    rustix::io::retry_on_intr(|| rustix::fs::openat(&folder, name, flags, mode))
}

/// The file descriptor of a directory.
#[cfg(unix)]
#[derive(Debug)]
struct Handle(File);

#[cfg(unix)]
impl Handle {
    fn open(path: &Path, follow: bool) -> io::Result<Self> {
        Self::open_at(rustix::fs::CWD, path, follow)
    }

    fn open_at(parent: impl std::os::fd::AsFd, path: &Path, follow: bool) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let link = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | link;
        let opened = openat(&parent, path, flags | OFlags::RDONLY, Mode::empty());
        // Files can be created in a directory that this user cannot list.
        #[cfg(target_os = "linux")]
        let opened = match opened {
            Err(rustix::io::Errno::ACCESS) => openat(&parent, path, flags | OFlags::PATH, Mode::empty()),
            other => other,
        };
        Ok(Self(opened?.into()))
    }

    fn stat(&self, name: &OsStr) -> Option<rustix::fs::Stat> {
        rustix::fs::statat(&self.0, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    fn permissions(&self, name: &OsStr, new: &File) -> Option<fs::Permissions> {
        use std::os::unix::fs::PermissionsExt as _;
        let (old, new) = (self.stat(name)?, rustix::fs::fstat(new).ok()?);
        let is_regular = rustix::fs::FileType::from_raw_mode(old.st_mode).is_file();
        (is_regular && old.st_uid == new.st_uid).then(|| fs::Permissions::from_mode(old.st_mode & 0o7777))
    }

    fn has(&self, file: &File, name: &OsStr) -> bool {
        let id = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        self.stat(name).map(id) == rustix::fs::fstat(file).ok().map(id)
    }

    fn folder(&self, name: &OsStr) -> io::Result<Self> {
        match rustix::fs::mkdirat(&self.0, name, rustix::fs::Mode::from_raw_mode(0o777)) {
            Err(rustix::io::Errno::EXIST) => {}
            created => created?,
        }
        Self::open_at(&self.0, Path::new(name), false)
    }

    fn create(&self, name: &OsStr) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::from_raw_mode(0o666))?.into())
    }

    fn read(&self, name: &OsStr) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags};
        // If the file is a pipe, do not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::empty())?.into())
    }

    fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, rustix::fs::AtFlags::empty())?)
    }

    fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    fn link_name(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::linkat(&self.0, from, &self.0, to, rustix::fs::AtFlags::empty())?)
    }

    fn sync(&self) -> io::Result<()> {
        match rustix::io::retry_on_intr(|| rustix::fs::fsync(&self.0)) {
            // The user cannot list this directory, or the file system does not support this.
            Err(rustix::io::Errno::BADF | rustix::io::Errno::INVAL) => Ok(()),
            synced => Ok(synced?),
        }
    }

    #[cfg(target_os = "linux")]
    fn unnamed(&self) -> Option<File> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, ".", flags, Mode::from_raw_mode(0o666)).ok()?);
        fs::exists(descriptor(&file)).is_ok_and(|exists| exists).then_some(file)
    }

    #[cfg(target_os = "linux")]
    fn link(&self, file: &File, name: &OsStr) -> io::Result<()> {
        use rustix::fs::{AtFlags, CWD};
        Ok(rustix::fs::linkat(CWD, descriptor(file), &self.0, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}

/// Returns a path that refers to an unnamed file.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// The path of a directory, for systems without directory descriptors.
#[cfg(not(unix))]
#[derive(Debug)]
struct Handle(PathBuf);

#[cfg(not(unix))]
impl Handle {
    fn open(path: &Path, _: bool) -> io::Result<Self> {
        fs::metadata(path).map(|_| Self(path.to_owned()))
    }

    fn folder(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.0.join(name);
        fs::create_dir_all(&path).map(|()| Self(path))
    }

    fn permissions(&self, name: &OsStr, _: &File) -> Option<fs::Permissions> {
        fs::metadata(self.0.join(name)).ok().map(|metadata| metadata.permissions())
    }

    fn create(&self, name: &OsStr) -> io::Result<File> {
        File::create_new(self.0.join(name))
    }

    fn read(&self, name: &OsStr) -> io::Result<File> {
        File::open(self.0.join(name))
    }

    fn remove(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn link_name(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::hard_link(self.0.join(from), self.0.join(to))
    }

    fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
impl Handle {
    fn unnamed(&self) -> Option<File> {
        None
    }

    fn link(&self, _: &File, _: &OsStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};

    use super::*;

    fn write(folder: &OutputFolder, name: &str) -> io::Result<()> {
        let (output, mut sink) = folder.file(name.as_ref())?;
        sink.write_all(b"new")?;
        output.keep(sink)
    }

    #[test]
    fn links_in_a_folder_are_replaced() {
        let outside = tempfile::tempdir().unwrap();
        let [victim, path] = ["victim", "folder"].map(|name| outside.path().join(name));
        fs::write(&victim, "old").unwrap();
        fs::create_dir(&path).unwrap();
        for name in ["a", "b"] {
            symlink(&victim, path.join(name)).unwrap();
        }
        symlink(outside.path().join("missing"), path.join("c")).unwrap();
        let folder = OutputFolder::create(&path).unwrap();
        write(&folder, "a").unwrap();
        folder.new_file("b".as_ref()).unwrap().write_all(b"new").unwrap();
        assert!(folder.read("c".as_ref()).is_err());
        write(&folder, "c").unwrap();
        for name in ["a", "b", "c"] {
            let file = path.join(name);
            assert_eq!((fs::read_to_string(&file).unwrap().as_str(), file.is_symlink()), ("new", false), "{name}");
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 2);
    }

    #[test]
    fn the_folder_stays_the_same_when_its_name_is_taken() {
        let outside = tempfile::tempdir().unwrap();
        let [path, elsewhere, other] = ["folder", "elsewhere", "other"].map(|name| outside.path().join(name));
        let folder = OutputFolder::create_own(&path).unwrap();
        let inner = folder.folders(["inner"]).unwrap();
        fs::rename(&path, &elsewhere).unwrap();
        fs::create_dir_all(other.join("inner")).unwrap();
        symlink(&other, &path).unwrap();
        write(&folder, "a").unwrap();
        write(&inner, "b").unwrap();
        folder.rename("a".as_ref(), "c".as_ref()).unwrap();
        assert!(elsewhere.join("c").exists() && elsewhere.join("inner/b").exists());
        folder.remove("c".as_ref());
        assert!(!elsewhere.join("c").exists());
        assert_eq!(fs::read_dir(&other).unwrap().count() + fs::read_dir(other.join("inner")).unwrap().count(), 1);
    }

    #[test]
    fn a_derived_folder_is_neither_a_link_nor_of_another_user() {
        let outside = tempfile::tempdir().unwrap();
        let [path, link] = ["folder", "link"].map(|name| outside.path().join(name));
        OutputFolder::create_own(&path).unwrap();
        write(&OutputFolder::create_own(&path).unwrap(), "a").unwrap();
        symlink(&path, &link).unwrap();
        let error = OutputFolder::create_own(&link).unwrap_err();
        assert!(error.to_string().contains("it is a link"), "{error}");
        let of_link = OutputFolder::create(outside.path()).unwrap().folders(["link"]);
        assert!(of_link.is_err());
        // The user may specify a directory by a link to it.
        write(&OutputFolder::create(&link).unwrap(), "b").unwrap();
        // Only root can change the owner of a directory.
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(65534), None).unwrap();
            let error = OutputFolder::create_own(&path).unwrap_err();
            assert!(error.to_string().contains("another user"), "{error}");
            assert!(OutputFolder::create(&path).is_ok());
        }
    }

    /// Does not apply the permissions of another user's file.
    #[test]
    fn permissions_of_the_file_that_is_replaced() {
        let outside = tempfile::tempdir().unwrap();
        let folder = OutputFolder::create(outside.path()).unwrap();
        let mode = |name: &str| fs::metadata(outside.path().join(name)).unwrap().permissions().mode() & 0o777;
        for name in ["own", "other"] {
            fs::write(outside.path().join(name), "old").unwrap();
            fs::set_permissions(outside.path().join(name), fs::Permissions::from_mode(0o602)).unwrap();
        }
        write(&folder, "own").unwrap();
        assert_eq!(mode("own"), 0o602);
        if rustix::process::geteuid().is_root() {
            lchown(outside.path().join("other"), Some(65534), None).unwrap();
            write(&folder, "other").unwrap();
            assert_eq!(mode("other") & 0o002, 0);
        }
    }
}
