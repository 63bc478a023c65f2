//! Standard output, or a file that appears only once it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use metatf::container::{Forward, Sink};
use tempfile::{NamedTempFile, TempPath};

/// Bytes that are written at once.
const BUFFER: usize = 1 << 18;

/// How temporary files begin.
const PREFIX: &str = ".metatf-";

/// Links that are followed one after the other, as by Linux.
#[cfg(unix)]
const MOST_LINKS: usize = 40;

/// An output that is being written.
#[derive(Debug)]
pub struct OutputFile {
    pending: Option<Pending>,
    /// The file, and where it appeared.
    placed: Option<(File, PathBuf)>,
    error: Arc<OnceLock<io::Error>>,
}

/// A sink that remembers its first error, so that a failed write is reported with the name of the file it was for.
struct Watched<S> {
    sink: S,
    error: Arc<OnceLock<io::Error>>,
}

/// A file that is not in its place yet.
#[derive(Debug)]
struct Pending {
    file: File,
    /// Its name until then. `None`: it has none, and is gone when the process ends, by whatever signal.
    temporary: Option<TempPath>,
    place: PathBuf,
    /// No other file may have its name.
    is_new: bool,
}

impl OutputFile {
    /// Opens an output; `-` is standard output. A file gets its name when it is whole: until then it has none, or, where the
    /// file system needs one, another in the same folder. What is not a plain file (a pipe, `/dev/null`) is written as it is.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path) -> io::Result<(Self, Box<dyn Sink + Send>)> {
        if path == Path::new("-") {
            return Ok(Self::watched(None, Forward(BufWriter::with_capacity(BUFFER, io::stdout()))));
        }
        // The file that a link leads to is replaced, not the link; if it does not exist, it is created there, as a shell does.
        let place = follow_links(path)?;
        if fs::metadata(&place).is_ok_and(|m| !m.is_file()) {
            let file = OpenOptions::new().write(true).open(&place)?;
            return Ok(Self::watched(None, Forward(BufWriter::with_capacity(BUFFER, file))));
        }
        // The system's error for a folder that is not there.
        fs::metadata(folder(&place))?;
        let (file, temporary) = match unnamed(folder(&place)) {
            Some(file) => (file, None),
            None => named(folder(&place)).map(|(file, path)| (file, Some(path)))?,
        };
        if let Ok(old) = fs::metadata(&place) {
            file.set_permissions(old.permissions())?;
        }
        let sink = BufWriter::with_capacity(BUFFER, file.try_clone()?);
        Ok(Self::watched(Some(Pending { file, temporary, place, is_new: false }), sink))
    }

    /// Opens an output like [`create`](Self::create), for a file that must not exist yet. If there is one when the output gets its name, that
    /// is an error, and the file stays as it is.
    ///
    /// # Errors
    /// The system's.
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

    /// Returns the first error of the sink, however its writer reported it.
    #[must_use]
    pub fn error(&self) -> Option<io::Error> {
        self.error.get().map(copy)
    }

    /// Whether the file appears once it is whole. Nobody reads it before, so that nothing has to be flushed.
    #[must_use]
    pub fn appears_whole(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns the folder for temporary files of this output, whose content goes to it in the end: that of the file, or the system's
    /// folder for temporary files if the output is a pipe or a device.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.pending.as_ref().map_or_else(std::env::temp_dir, |pending| folder(&pending.place).to_owned())
    }

    /// Flushes the sink, waits until the file is on the disk, and gives it its name. Dropped without this, the file is removed.
    ///
    /// # Errors
    /// The system's.
    pub fn keep(mut self, mut sink: Box<dyn Sink + '_>) -> io::Result<()> {
        sink.flush()?;
        drop(sink);
        if let Some(pending) = &self.pending {
            pending.file.sync_all()?;
        }
        self.appear()
    }

    /// Gives the file its name now, while it is still being written: it stays, whole or not. The file that had the name is
    /// replaced. Does nothing where there is nothing to name.
    ///
    /// # Errors
    /// The system's.
    pub fn appear(&mut self) -> io::Result<()> {
        let Some(Pending { file, temporary, place, is_new }) = self.pending.take() else { return Ok(()) };
        let linked = if temporary.is_none() { link(&file, &place) } else { Ok(()) };
        let temporary = match temporary {
            Some(temporary) => Some(temporary),
            None if linked.is_ok() => None,
            None if is_new => return linked,
            // There is a file already: a link cannot take its place, a rename can.
            None => {
                let mut builder = tempfile::Builder::new();
                Some(builder.prefix(PREFIX).make_in(folder(&place), |path| link(&file, path))?.into_temp_path())
            }
        };
        if let Some(temporary) = temporary {
            let placed = if is_new { temporary.persist_noclobber(&place) } else { temporary.persist(&place) };
            placed.map_err(|error| error.error)?;
        }
        self.placed = Some((file, place));
        Ok(())
    }

    /// Returns how many bytes the file has that [appeared](Self::appear), whatever has its name now. `None`: none did.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let (file, _) = self.placed.as_ref()?;
        file.metadata().map(|metadata| metadata.len()).ok()
    }

    /// Returns whether the file that [appeared](Self::appear) has lost its name: another program has put its own there, or removed it.
    #[cfg(unix)]
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        self.placed
            .as_ref()
            .is_some_and(|(file, place)| file.metadata().ok().map(id) != fs::metadata(place).ok().map(id))
    }
}

impl<S> Watched<S> {
    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            // Writers try again after an interrupt. Of other errors the first is the cause.
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
        let written = self.sink.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.sink.flush();
        self.note(flushed)
    }
}

impl<S: Sink> Sink for Watched<S> {
    fn mark(&mut self) -> Option<u64> {
        self.sink.mark()
    }

    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let written = self.sink.overwrite(at, bytes);
        self.note(written)
    }
}

/// Returns the path that symbolic links lead to, whether or not there is a file.
///
/// Refuses a link that another user put into a folder to which anyone can write: it would lead to a file of this user. Linux refuses to
/// follow such a link when it opens a file (`fs.protected_symlinks`); here the link is followed to replace a file.
#[cfg(unix)]
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(link) = fs::symlink_metadata(&path) else { return Ok(path) };
        if !link.is_symlink() {
            return Ok(path);
        }
        // A pipe or a device is opened and not replaced. Some links to them, as those of `/proc`, cannot be read as paths.
        if fs::metadata(&path).is_ok_and(|target| !target.is_file()) {
            return Ok(path);
        }
        if !may_follow(&link, &fs::metadata(folder(&path))?, rustix::process::geteuid().as_raw()) {
            let why = format!("a link of another user, in a folder that all may write to: {}", path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        path = folder(&path).join(fs::read_link(&path)?);
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// Returns whether a user may follow a link in a folder: the rule of Linux.
#[cfg(unix)]
fn may_follow(link: &fs::Metadata, folder: &fs::Metadata, user: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let is_shared = folder.mode() & 0o1002 == 0o1002;
    !is_shared || link.uid() == user || link.uid() == folder.uid()
}

#[cfg(not(unix))]
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    Ok(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
}

/// Returns the folder of a file.
fn folder(place: &Path) -> &Path {
    place.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a file without a name; `None` where the system or the file system cannot, or cannot name it later.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let mode = Mode::from_raw_mode(0o666);
    let file = rustix::fs::open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode).ok()?;
    let file = File::from(file);
    fs::exists(descriptor(&file)).is_ok_and(|exists| exists).then_some(file)
}

/// Gives a file without a name one that nobody has.
#[cfg(target_os = "linux")]
fn link(file: &File, place: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD};
    Ok(rustix::fs::linkat(CWD, descriptor(file), CWD, place, AtFlags::SYMLINK_FOLLOW)?)
}

/// Returns the path by which a file without a name is found.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes a temporary file with the rights that a new file has.
fn named(folder: &Path) -> io::Result<(File, TempPath)> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder).map(NamedTempFile::into_parts)
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
        // One that is given up leaves what was there.
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

    /// The way of file systems where every file has a name.
    #[test]
    fn a_file_with_a_name_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("out");
        let (file, temporary) = named(folder.path()).unwrap();
        (&file).write_all(b"all").unwrap();
        let pending = Some(Pending { file, temporary: Some(temporary), place: place.clone(), is_new: false });
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
        // Another program was faster.
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
        use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [shared, victim, link, second] =
            ["shared", "victim", "shared/link", "shared/second"].map(|name| folder.path().join(name));
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        fs::write(&victim, "old").unwrap();
        symlink(&victim, &link).unwrap();
        symlink("link", &second).unwrap();
        let write = |path: &Path| {
            let (output, mut sink) = OutputFile::create(path)?;
            sink.write_all(b"new")?;
            output.keep(sink)
        };
        // One's own is followed.
        write(&second).unwrap();
        assert_eq!((fs::read_to_string(&victim).unwrap().as_str(), link.is_symlink()), ("new", true));
        let (link_of, folder_of) = (fs::symlink_metadata(&link).unwrap(), fs::metadata(&shared).unwrap());
        let own = rustix::process::geteuid().as_raw();
        assert!(may_follow(&link_of, &folder_of, own));
        // Only root can make one of another user.
        if own == 0 {
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
            assert!(!may_follow(&fs::symlink_metadata(&link).unwrap(), &folder_of, own));
            fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
            write(&second).unwrap();
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
        if unnamed(folder.path()).is_some() {
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}
