//! Standard output, or a file that appears only when it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use metatf::container::{Forward, Sink};
use tempfile::TempPath;

use crate::{OutputFolder, Shown, Style, stdout_is_terminal};

/// The number of bytes written in one call.
const BUFFER: usize = 1 << 18;

/// Maximum number of links followed in a row, as on Linux.
#[cfg(unix)]
const MOST_LINKS: usize = 40;

/// An output being written.
#[derive(Debug)]
pub struct OutputFile {
    pending: Option<Pending>,
    /// The file, after it has appeared under its name.
    placed: Option<Placed>,
    error: Arc<OnceLock<io::Error>>,
}

/// A sink that remembers its first error, so that a failed write is reported with the name of its file.
struct Watched<S> {
    sink: S,
    error: Arc<OnceLock<io::Error>>,
}

/// A file that has not appeared yet.
#[derive(Debug)]
struct Pending {
    file: File,
    /// The temporary name. If `None`, the file is unnamed, and disappears when the process ends, even by a signal.
    temporary: Option<TempPath>,
    folder: OutputFolder,
    name: OsString,
    /// Whether it is an error if another file has the same name.
    is_new: bool,
}

/// A file that has appeared.
#[derive(Debug)]
struct Placed {
    file: File,
    folder: OutputFolder,
    name: OsString,
}

impl OutputFolder {
    /// Creates an output file, like [`OutputFile::create`]. A link of the same name is replaced, not followed.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn file(&self, name: &OsStr) -> io::Result<(OutputFile, Box<dyn Sink + Send>)> {
        OutputFile::create_in(self, name)
    }
}

impl OutputFile {
    /// Opens an output; `-` is standard output, which is escaped like text if it is a terminal. A file gets its name when it is complete. Until then, it is unnamed or,
    /// if the file system requires a name, has a temporary name in the same directory. A path that is not a regular
    /// file (a pipe, `/dev/null`) is written directly.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn create(path: &Path) -> io::Result<(Self, Box<dyn Sink + Send>)> {
        if path == Path::new("-") {
            let out = BufWriter::with_capacity(BUFFER, io::stdout());
            return Ok(match stdout_is_terminal() {
                true => Self::watched(None, Forward(Shown::new(out, Style::Text))),
                false => Self::watched(None, Forward(out)),
            });
        }
        // Replace the target of a link, not the link. If the target does not exist, create it, as a shell does.
        let place = follow_links(path)?;
        if fs::metadata(&place).is_ok_and(|m| !m.is_file()) {
            let file = OpenOptions::new().write(true).open(&place)?;
            return Ok(Self::watched(None, Forward(BufWriter::with_capacity(BUFFER, file))));
        }
        // If the directory does not exist, return the system's error.
        let folder = OutputFolder::of(&place)?;
        Self::create_in(&folder, place.file_name().ok_or(io::ErrorKind::IsADirectory)?)
    }

    /// Opens an output file in an open directory.
    fn create_in(folder: &OutputFolder, name: &OsStr) -> io::Result<(Self, Box<dyn Sink + Send>)> {
        let (file, temporary) = match folder.unnamed() {
            Some(file) => (file, None),
            None => folder.temporary().map(|(file, name)| (file, Some(name)))?,
        };
        if let Some(permissions) = folder.permissions(name, &file) {
            file.set_permissions(permissions)?;
        }
        let sink = BufWriter::with_capacity(BUFFER, file.try_clone()?);
        let pending = Pending { file, temporary, folder: folder.clone(), name: name.to_owned(), is_new: false };
        Ok(Self::watched(Some(pending), sink))
    }

    /// Opens an output like [`create`](Self::create), for a file that must not exist yet. If a file of that name exists
    /// by the time the output gets its name, completing the output fails and leaves that file unchanged.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn create_new(path: &Path) -> io::Result<(Self, Box<dyn Sink + Send>)> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (mut output, sink) = Self::create(path)?;
        output.pending.iter_mut().for_each(|pending| pending.is_new = true);
        Ok((output, sink))
    }

    fn watched(pending: Option<Pending>, sink: impl Sink + Send + 'static) -> (Self, Box<dyn Sink + Send>) {
        let error = Arc::new(OnceLock::new());
        (Self { pending, placed: None, error: Arc::clone(&error) }, Box::new(Watched { sink, error }))
    }

    /// Returns the first error of the sink, even if its writer did not report it.
    #[must_use]
    pub fn error(&self) -> Option<io::Error> {
        self.error.get().map(copy)
    }

    /// Returns whether the file appears only when it is complete. Nobody can read it earlier, so it need not be
    /// flushed.
    #[must_use]
    pub fn appears_whole(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns the directory for temporary files of this output. This is the directory of the file, or the system's
    /// temporary directory if the output is a pipe or a device.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.pending.as_ref().map_or_else(std::env::temp_dir, |pending| pending.folder.path().to_owned())
    }

    /// Changes the name that the file will get. Does nothing if the file has already appeared.
    pub fn rename(&mut self, name: &OsStr) {
        if let Some(pending) = &mut self.pending {
            pending.name = name.to_owned();
        }
    }

    /// Flushes the sink, gives the file its name, and waits until the content and the name are on disk. If the output
    /// is dropped instead, a file that has not appeared is removed.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn keep(mut self, mut sink: Box<dyn Sink + '_>) -> io::Result<()> {
        sink.flush()?;
        drop(sink);
        if let Some(pending) = &self.pending {
            pending.file.sync_all()?;
        }
        self.appear()?;
        self.sync()
    }

    /// Waits until the file that has [appeared](Self::appear) is on disk, with its name. A full network file system may
    /// report its error only here.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn sync(&self) -> io::Result<()> {
        let Some(Placed { file, folder, .. }) = &self.placed else { return Ok(()) };
        file.sync_all()?;
        folder.sync()
    }

    /// Gives the file its name now, while it is still being written. The file replaces any file of that name, and is
    /// kept even if it is not completed. Does nothing if the output is not a file or already has its name.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn appear(&mut self) -> io::Result<()> {
        let Some(Pending { file, temporary, folder, name, is_new }) = self.pending.take() else { return Ok(()) };
        let linked = if temporary.is_none() { folder.link(&file, &name) } else { Ok(()) };
        let temporary = match temporary {
            Some(temporary) => Some(temporary),
            None if linked.is_ok() => None,
            None if is_new => return linked,
            // A link cannot replace an existing file, but a rename can.
            None => Some(folder.link_temporarily(&file)?),
        };
        if let Some(temporary) = temporary {
            let temporary_name = temporary.file_name().unwrap_or_default();
            if is_new {
                // Dropping `temporary` removes the temporary name.
                folder.link_name(temporary_name, &name)?;
            } else {
                folder.rename(temporary_name, &name)?;
                // The temporary name no longer exists.
                temporary.keep().map_err(|error| error.error)?;
            }
        }
        self.placed = Some(Placed { file, folder, name });
        Ok(())
    }

    /// Returns the size of the file that has [appeared](Self::appear), even if its name now belongs to another file.
    /// Returns `None` if no file has appeared.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let Placed { file, .. } = self.placed.as_ref()?;
        file.metadata().map(|metadata| metadata.len()).ok()
    }

    /// Returns whether the file that has [appeared](Self::appear) has lost its name because another program replaced,
    /// renamed or removed it.
    #[cfg(unix)]
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        self.placed.as_ref().is_some_and(|Placed { file, folder, name }| !folder.has(file, name))
    }

    /// Copies the file that has [appeared](Self::appear), even if it has lost its name.
    ///
    /// # Errors
    /// Returns the system error.
    #[cfg(unix)]
    pub fn copy(&self, to: &mut dyn Write) -> io::Result<()> {
        use std::os::unix::fs::FileExt as _;
        let Some(Placed { file, .. }) = &self.placed else { return Ok(()) };
        let (mut at, mut bytes) = (0, vec![0; BUFFER]);
        loop {
            match file.read_at(&mut bytes, at) {
                Ok(0) => return Ok(()),
                Ok(read) => {
                    to.write_all(bytes.get(..read).unwrap_or_default())?;
                    at += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Marks the file as being written until the output is dropped.
    pub fn mark_as_written(&self) {
        let pending = self.pending.as_ref().map(|pending| &pending.file);
        if let Some(file) = pending.or_else(|| self.placed.as_ref().map(|placed| &placed.file)) {
            // On a file system without locks, the file is not marked.
            let _ = file.try_lock();
        }
    }

    /// Returns whether another process is [writing](Self::mark_as_written) the file of this name.
    #[must_use]
    pub fn is_being_written(path: &Path) -> bool {
        let is_regular = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        let file = if is_regular { File::open(path).ok() } else { None };
        file.is_some_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
    }
}

impl<S> Watched<S> {
    /// Fails if the sink has failed before. After an error, nothing more may be written, especially not the footer that
    /// marks a trace as complete.
    fn check(&self) -> io::Result<()> {
        self.error.get().map_or(Ok(()), |error| Err(copy(error)))
    }

    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            // Writers retry after an interrupt. The first other error is the cause of any later errors.
            if error.kind() != io::ErrorKind::Interrupted {
                let _ = self.error.set(copy(error));
            }
        })
    }
}

fn copy(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error)
}

impl<S: Sink> Write for Watched<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        let written = self.sink.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        let flushed = self.sink.flush();
        self.note(flushed)
    }
}

impl<S: Sink> Sink for Watched<S> {
    fn mark(&mut self) -> Option<u64> {
        self.sink.mark()
    }

    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.check()?;
        let written = self.sink.overwrite(at, bytes);
        self.note(written)
    }
}

/// Follows symbolic links and returns the path of the target, which need not exist, or the path itself if it is not a
/// link. Rejects a link created by another user, because it could point to any file of this user, and the path may have
/// been derived from the name of another output. The last component of the result is not followed again, so a link
/// created there later is replaced.
#[cfg(unix)]
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(metadata) = fs::symlink_metadata(&place) else { return Ok(place) };
        if !metadata.is_symlink() {
            return Ok(place);
        }
        // Pipes and devices are opened, not replaced. Some links to them, such as those in `/proc`, cannot be read as
        // paths.
        if fs::metadata(&place).is_ok_and(|target| !target.is_file()) {
            return Ok(place);
        }
        if !may_follow(metadata.uid(), rustix::process::geteuid().as_raw()) {
            let why = format!("{} is a link created by another user", place.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        place = place.parent().unwrap_or(&place).join(fs::read_link(&place)?);
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// Returns whether a user may follow a link of `owner` to replace a file. The link must belong to the user or to root.
#[cfg(unix)]
fn may_follow(owner: u32, user: u32) -> bool {
    owner == user || owner == 0
}

#[cfg(not(unix))]
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    Ok(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let entries = || fs::read_dir(folder.path()).unwrap().count();
        let (output, mut sink) = OutputFile::create(&path).unwrap();
        sink.write_all(b"first").unwrap();
        assert!(!path.exists() && output.appears_whole());
        output.keep(sink).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        // An abandoned output leaves the existing file unchanged.
        let (output, mut sink) = OutputFile::create(&path).unwrap();
        sink.write_all(b"second").unwrap();
        drop((output, sink));
        assert_eq!((fs::read(&path).unwrap().as_slice(), entries()), (&b"first"[..], 1));
        let (output, mut sink) = OutputFile::create(&path).unwrap();
        sink.write_all(b"third").unwrap();
        output.keep(sink).unwrap();
        assert_eq!((fs::read(&path).unwrap().as_slice(), entries()), (&b"third"[..], 1));
        assert!(OutputFile::create(&folder.path().join("no/such")).is_err());
    }

    #[test]
    fn a_file_that_appears_early() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        for name in ["first", "second"] {
            let (mut output, mut sink) = OutputFile::create(&path).unwrap();
            sink.write_all(name.as_bytes()).unwrap();
            output.appear().unwrap();
            assert!(path.exists() && !output.appears_whole());
            sink.write_all(b", all").unwrap();
            output.keep(sink).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{name}, all"));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Tests file systems on which every file needs a name.
    #[test]
    fn a_file_with_a_name_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("out");
        let own = OutputFolder::create(folder.path()).unwrap();
        let (file, temporary) = own.temporary().unwrap();
        (&file).write_all(b"all").unwrap();
        let pending =
            Some(Pending { file, temporary: Some(temporary), folder: own, name: "out".into(), is_new: false });
        let output = OutputFile { pending, placed: None, error: Arc::default() };
        output.keep(Box::new(io::Cursor::new(Vec::new()))).unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"all");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_new_file_replaces_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let (output, mut sink) = OutputFile::create_new(&path).unwrap();
        sink.write_all(b"first").unwrap();
        // Another program created the file first.
        fs::write(&path, "other").unwrap();
        assert_eq!(output.keep(sink).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(OutputFile::create_new(&path).err().map(|error| error.kind()), Some(io::ErrorKind::AlreadyExists));
        assert_eq!(fs::read(&path).unwrap(), b"other");
        fs::remove_file(&path).unwrap();
        let (output, mut sink) = OutputFile::create_new(&path).unwrap();
        sink.write_all(b"second").unwrap();
        output.keep(sink).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_dangling_link_gets_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let [link, second, target] = ["link", "second", "elsewhere/target"].map(|name| folder.path().join(name));
        fs::create_dir(folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere/target", &link).unwrap();
        std::os::unix::fs::symlink("link", &second).unwrap();
        let (output, mut sink) = OutputFile::create(&second).unwrap();
        sink.write_all(b"new").unwrap();
        output.keep(sink).unwrap();
        assert!(link.is_symlink() && second.is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
        std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
        let error = OutputFile::create(&folder.path().join("loop")).err().unwrap();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::LOOP.raw_os_error()));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_of_another_user() {
        use std::os::unix::fs::{lchown, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [victim, link, second, dangling] =
            ["victim", "link", "second", "dangling"].map(|name| folder.path().join(name));
        fs::write(&victim, "old").unwrap();
        symlink(&victim, &link).unwrap();
        symlink("link", &second).unwrap();
        symlink("missing", &dangling).unwrap();
        let write = |path: &Path| {
            let (output, mut sink) = OutputFile::create(path)?;
            sink.write_all(b"new")?;
            output.keep(sink)
        };
        // The user's own links are followed, even in a row.
        write(&second).unwrap();
        assert_eq!((fs::read_to_string(&victim).unwrap().as_str(), link.is_symlink()), ("new", true));
        write(&dangling).unwrap();
        // The target of a dangling link is created, as by a shell.
        assert!(dangling.is_symlink() && fs::read_dir(folder.path()).unwrap().count() == 5);
        assert!(may_follow(1000, 1000) && may_follow(0, 1000) && !may_follow(1000, 0) && !may_follow(1000, 1001));
        // Only root can change the owner of a link.
        if rustix::process::geteuid().is_root() {
            fs::write(&victim, "old").unwrap();
            lchown(&link, Some(65534), None).unwrap();
            for path in [&link, &second] {
                let error = write(path).unwrap_err();
                assert!(
                    error.kind() == io::ErrorKind::PermissionDenied && error.to_string().contains("another user"),
                    "{error}"
                );
            }
            assert_eq!(fs::read_to_string(&victim).unwrap(), "old");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_first_error_is_remembered() {
        let (output, mut sink) = OutputFile::create(Path::new("/dev/full")).unwrap();
        assert!(output.error().is_none());
        sink.write_all(&[0; 2 * BUFFER]).unwrap_err();
        assert_eq!(output.error().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_without_a_name_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (_output, mut sink) = OutputFile::create(&folder.path().join("out")).unwrap();
        sink.write_all(b"part").unwrap();
        sink.flush().unwrap();
        if OutputFolder::create(folder.path()).unwrap().unnamed().is_some() {
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}
