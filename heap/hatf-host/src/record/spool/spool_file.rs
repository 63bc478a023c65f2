//! The spool directory. It contains the file that the program maps, and the data needed to convert this file to a trace
//! later.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use hatf_record::names::{COMMAND, EVENTS, LINKED, ONLY_MODULES, ONLY_THREADS, PROCESS, PROGRAMS, REFUSED, STACKS};
use hatf_record::{CHUNK_BYTES, CHUNK_SLOTS, CHUNKS_MAX, Chunk, SLOT_BYTES, Spool, bytes_for, offset_of};
use rustix::process::{Resource, getrlimit};
use serde_json::Value;

use super::mapping::Mapping;
use super::memory_limit;
use super::own_folder::{self, Access, OwnFolder};
use hatf_trace::{Error, Result};

/// The name of the file that describes the origin of the events.
pub(crate) const ORIGIN: &str = "recording.json";
/// The name of the file that contains the lasting events of returned chunks.
const LASTING: &str = "lasting.json";
/// The name of a control file, monitored like the file passed to `hatf record --control`.
pub(crate) const CONTROL: &str = "control";
/// The name of a file that is touched while a command watches the recording.
pub(crate) const WATCHED: &str = "watched";
/// The name of the file that contains the path of the recorder library. With this path, the library of a killed
/// recording can be removed.
pub(crate) const LIBRARY: &str = "library";
/// The prefix of the name of the recorder's directory.
pub(crate) const LIBRARY_FOLDER: &str = "hatf-library-";
/// The prefix of the names of spool directories.
const PREFIX: &str = "hatf-spool-";
/// Maximum size in bytes of a file next to the spool. The arguments of a program can take up 6 MiB, and more as JSON.
/// The lasting events of a recording contain the names of all modules and Python functions.
const BESIDE_MOST: u64 = 64 << 20;
/// Minimum number of chunks. A spool is not created if there is room for fewer.
const CHUNKS_MIN: usize = 32;

/// Default maximum size of a spool in bytes.
pub const SPOOL_BYTES: u64 = 1 << 30;

/// A spool mapped into this process, in a separate directory that only this user can open.
#[derive(Debug)]
pub(crate) struct SpoolFile {
    folder: OwnFolder,
    /// A view of the mapping, which lives as long as this value.
    spool: Spool<'static>,
    mapping: Mapping,
    /// Whether the directory is removed on drop.
    temporary: bool,
}

/// Returns the directories in which spools are created, the best first. Memory is best, because data need not be on a
/// disk to outlive a process.
fn parents() -> Vec<PathBuf> {
    vec!["/dev/shm".into(), std::env::temp_dir(), "/var/tmp".into()]
}

impl SpoolFile {
    /// Creates a spool of at most this many bytes in the given directory or, if `parent` is `None`, in a default
    /// directory with enough room.
    pub(crate) fn create(parent: Option<&Path>, bytes: u64) -> Result<Self> {
        let parents = parent.map_or_else(parents, |parent| vec![parent.to_owned()]);
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for parent in &parents {
            match Self::create_in(parent, bytes) {
                Ok(spool) => return Ok(spool),
                Err(error) => last = error,
            }
        }
        let shown: Vec<_> = parents.iter().map(|parent| parent.display().to_string()).collect();
        Err(Error::system(format!("cannot create a spool in {}", shown.join(", ")))(last))
    }

    fn create_in(parent: &Path, bytes: u64) -> io::Result<Self> {
        // Most of a container's memory is left to the program.
        let bytes = bytes.min(free(parent)? / 2).min(memory_limit::left() / 8).min(own_limits());
        let chunks = usize::try_from(bytes / CHUNK_BYTES as u64).unwrap_or(usize::MAX).min(CHUNKS_MAX);
        if chunks < CHUNKS_MIN {
            let least = CHUNKS_MIN as u64 * CHUNK_BYTES as u64;
            // Use the system's error codes for these limits, so that the message identifies the limit.
            let error = match () {
                () if file_size_limit() < least => libc::EFBIG,
                () if own_limits() < least => libc::ENOMEM,
                () => libc::ENOSPC,
            };
            return Err(io::Error::from_raw_os_error(error));
        }
        let folder = unique(parent)?;
        let opened = OwnFolder::open(&folder).inspect_err(|_| drop(fs::remove_dir(&folder)))?;
        let sized = |file: &File| {
            file.set_len(bytes_for(chunks) as u64)?;
            // Reserves disk blocks for the area before the chunks.
            reserve(file, 0, offset_of(chunks, 0))?;
            Ok(bytes_for(chunks))
        };
        // SAFETY: this is new zeroed memory of the spool's size, used only through spools as long as the file lives.
        let make = |mapping: &Mapping| Some(unsafe { Spool::create(mapping.memory(), chunks) });
        let made = Self::map(opened, Access::Create, true, sized, make);
        made.and_then(|made| made.ok_or_else(|| io::ErrorKind::InvalidData.into()))
            .inspect_err(|_| drop(fs::remove_dir_all(&folder)))
    }

    /// Opens a spool that was left behind. The spool is not removed on drop.
    ///
    /// # Errors
    /// Returns an error if the directory contains no spool, does not belong to this user alone, or is used by another
    /// process.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        Self::open_locked(folder, true)
    }

    /// Opens a spool that another process may be recording into, in order to inspect it. The spool is not removed on
    /// drop.
    ///
    /// # Errors
    /// Returns an error if the directory contains no spool or does not belong to this user alone.
    pub(crate) fn look(folder: &Path) -> Result<Self> {
        Self::open_locked(folder, false)
    }

    fn open_locked(folder: &Path, locked: bool) -> Result<Self> {
        let name = folder.join(EVENTS).display().to_string();
        let own = OwnFolder::open(folder).map_err(Error::system(folder.display().to_string()))?;
        let length =
            |file: &File| usize::try_from(file.metadata()?.len()).map_err(|_| io::ErrorKind::FileTooLarge.into());
        // SAFETY: this many bytes are mapped as long as the file lives, and they are used only through spools.
        let find = |mapping: &Mapping| unsafe { Spool::attach(mapping.memory(), mapping.bytes()) };
        let opened = Self::map(own, Access::Edit, locked, length, find).map_err(Error::system(name.clone()))?;
        let mut spool = opened
            .ok_or_else(|| Error::Trace(format!("{name}: expected a complete spool of this version of hatf").into()))?;
        spool.temporary = false;
        // Finds the chunks that contain events.
        spool.spool.taken().for_each(drop);
        if spool.mapping.unreadable() > 0 {
            return Err(Error::Trace(format!("{name}: the beginning of the spool cannot be read").into()));
        }
        Ok(spool)
    }

    /// Maps the file in a directory. With `locked`, the file is locked as long as this value lives. Returns `None` if
    /// `find` finds no spool.
    fn map(
        folder: OwnFolder,
        access: Access,
        locked: bool,
        bytes: impl FnOnce(&File) -> io::Result<usize>,
        find: impl FnOnce(&Mapping) -> Option<Spool<'static>>,
    ) -> io::Result<Option<Self>> {
        let file = folder.file(EVENTS, access)?;
        // SAFETY: the file is open.
        if locked && unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let bytes = bytes(&file)?;
        let mapping = Mapping::new(file, bytes)?;
        Ok(find(&mapping).map(|spool| Self { folder, spool, mapping, temporary: true }))
    }

    /// Returns whether another process has locked the spool, because it is being recorded or recovered.
    pub(crate) fn is_in_use(&self) -> bool {
        // SAFETY: the file is open.
        let locked = |how| unsafe { libc::flock(self.mapping.file().as_raw_fd(), how | libc::LOCK_NB) } == 0;
        let free = locked(libc::LOCK_SH);
        if free {
            locked(libc::LOCK_UN);
        }
        !free
    }

    /// Allocates the memory of a chunk.
    pub(crate) fn reserve_chunk(&self, chunk: usize) -> io::Result<()> {
        reserve(self.mapping.file(), offset_of(self.spool.chunks(), chunk), CHUNK_BYTES)
    }

    /// Releases the memory of a chunk, which then contains zeros. Returns false if the file system does not support
    /// this.
    pub(crate) fn punch_chunk(&self, chunk: usize) -> bool {
        let at = libc::off_t::try_from(offset_of(self.spool.chunks(), chunk)).unwrap_or_default();
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the file is open, and the other arguments are numbers.
        at > 0 && unsafe { libc::fallocate(self.mapping.file().as_raw_fd(), mode, at, CHUNK_BYTES as libc::off_t) } == 0
    }

    /// Returns the spool. The number of chunks was read only once, because the program can overwrite it.
    pub(crate) fn spool(&self) -> Spool<'_> {
        self.spool
    }

    /// Returns the number of slots that may have contained events and cannot be read. They are in chunks after the end
    /// of the file, in touched pages that are unreadable, and in chunks whose head names no thread.
    pub(crate) fn unreadable_slots(&self) -> u64 {
        let (missing, there): (Vec<_>, Vec<_>) = self.spool.taken().partition(|chunk| *chunk >= self.spool.mapped());
        let chunks = there.into_iter().filter_map(|chunk| self.spool.chunk(chunk));
        let headless = chunks.filter(|chunk| chunk.head().owner.load(Ordering::Acquire) == 0);
        let written = |chunk: Chunk<'_>| (0..CHUNK_SLOTS).filter(|slot| chunk.slot(*slot).is_some()).count() as u64;
        let headless: u64 = headless.map(written).sum();
        let pages = self.mapping.unreadable() / SLOT_BYTES as u64;
        ((missing.len() * CHUNK_SLOTS) as u64).saturating_add(headless).saturating_add(pages)
    }

    /// Returns the path by which the program opens the spool.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(EVENTS)
    }

    /// Returns the directory of the spool.
    pub(crate) fn folder(&self) -> &OwnFolder {
        &self.folder
    }

    /// Writes the origin of the events.
    ///
    /// # Errors
    /// Returns an error if a system call failed.
    pub(crate) fn write_origin(&self, origin: &Value) -> Result<()> {
        self.write(ORIGIN, format!("{origin:#}\n").as_bytes())
    }

    /// Writes the lasting events of returned chunks.
    ///
    /// # Errors
    /// Returns an error if a system call failed.
    pub(crate) fn write_lasting(&self, lasting: &Value) -> Result<()> {
        self.write(LASTING, format!("{lasting}\n").as_bytes())
    }

    /// Writes a file next to the events.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let written = self.folder.write(name, content);
        written.map_err(Error::system(self.folder.path().join(name).display().to_string()))
    }

    /// Returns the lasting events of returned chunks, or null if there are no lasting events.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub(crate) fn lasting(&self) -> Result<Value> {
        let name = || self.folder.path().join(LASTING).display().to_string();
        match self.folder.read(LASTING, BESIDE_MOST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Value::Null),
            Err(error) => Err(Error::system(name())(error)),
            Ok(text) => {
                serde_json::from_slice(&text).map_err(|error| Error::Trace(format!("{}: {error}", name()).into()))
            }
        }
    }

    /// Returns the reason why a program could not open the spool, if the program reported a reason.
    pub(crate) fn refusal(&self) -> Option<io::Error> {
        let number = fs::read_link(self.folder.path().join(REFUSED)).ok()?;
        number.to_str()?.parse().ok().map(io::Error::from_raw_os_error)
    }

    /// Returns the origin of the events.
    ///
    /// # Errors
    /// Returns an error if the origin was not written.
    pub(crate) fn origin(&self) -> Result<Value> {
        read_origin(&self.folder)
    }

    /// Returns the origin of the events of the spool in a directory.
    pub(crate) fn origin_of(folder: &Path) -> Result<Value> {
        read_origin(&OwnFolder::open(folder).map_err(Error::system(folder.display().to_string()))?)
    }

    /// Returns the existing directories of processes that the program created.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub(crate) fn processes(&self) -> Result<Vec<PathBuf>> {
        spools_in(self.folder.path(), PROCESS).map_err(Error::system(self.folder.path().display().to_string()))
    }

    /// Returns the arguments of a process that the program created.
    pub(crate) fn command(&self) -> Vec<String> {
        let bytes = self.folder.read(COMMAND, BESIDE_MOST).unwrap_or_default();
        let words = bytes.strip_suffix(&[0]).unwrap_or(&bytes).split(|byte| *byte == 0);
        words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    /// Returns the time at which the spool was created, for a process that created its own spool.
    pub(crate) fn made_at(&self) -> SystemTime {
        let made = self.folder.file(COMMAND, Access::Read).and_then(|file| file.metadata()?.modified());
        made.unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// Writes a list of names for the recorder.
    pub(crate) fn write_names(&self, file: &str, list: &[String]) -> Result<()> {
        let list: String = list.iter().flat_map(|name| [name, "\n"]).collect();
        self.write(file, list.as_bytes())
    }

    /// Removes the spool, but keeps the spools of other processes in its directory.
    pub(crate) fn remove_alone(self) {
        remove(&self.folder);
    }

    /// Sets whether the directory is removed on drop.
    pub(crate) fn set_temporary(&mut self, temporary: bool) {
        self.temporary = temporary;
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        if self.temporary {
            // Remove the spools that remain of processes that could not be recorded.
            self.processes()
                .unwrap_or_default()
                .iter()
                .filter_map(|folder| OwnFolder::open(folder).ok())
                .for_each(|folder| remove(&folder));
            remove_empty(self.folder.path());
            remove(&self.folder);
        }
    }
}

/// Removes a spool directory. If it contains files that are not ours, these files and the directory are kept.
fn remove(folder: &OwnFolder) {
    remove_library(folder);
    for name in [
        EVENTS,
        LIBRARY,
        ORIGIN,
        LASTING,
        STACKS,
        COMMAND,
        PROGRAMS,
        ONLY_THREADS,
        ONLY_MODULES,
        CONTROL,
        WATCHED,
        REFUSED,
    ] {
        folder.remove(name);
    }
    let names = fs::read_dir(folder.path()).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(LINKED)).for_each(|name| folder.remove(&name));
    let _ = fs::remove_dir(folder.path());
}

/// Removes the recorder library of a killed recording.
fn remove_library(folder: &OwnFolder) {
    let Ok(path) = folder.read(LIBRARY, BESIDE_MOST) else { return };
    let path = Path::new(OsStr::from_bytes(&path));
    let Some(parent) = path.parent() else { return };
    let name = parent.file_name().unwrap_or_default();
    if name.as_bytes().starts_with(LIBRARY_FOLDER.as_bytes()) && own_folder::is_named(parent) {
        let _ = fs::remove_file(path);
        let _ = fs::remove_dir(parent);
    }
}

/// Removes the empty directories of processes that were not recorded.
fn remove_empty(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_bytes().starts_with(PROCESS.as_bytes())) {
        let _ = fs::remove_dir(entry.path());
    }
}

fn read_origin(folder: &OwnFolder) -> Result<Value> {
    let name = || folder.path().join(ORIGIN).display().to_string();
    let text = folder.read(ORIGIN, BESIDE_MOST).map_err(|error| Error::system(name())(error))?;
    serde_json::from_slice(&text).map_err(|error| Error::Trace(format!("{}: {error}", name()).into()))
}

/// Reserves disk blocks. Without them, touching the memory would kill the process.
fn reserve(file: &File, at: usize, bytes: usize) -> io::Result<()> {
    let place = |number: usize| libc::off_t::try_from(number).map_err(|_| io::ErrorKind::FileTooLarge);
    // SAFETY: the file is open, and the other arguments are numbers.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), place(at)?, place(bytes)?) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Creates a new directory for this user alone.
fn unique(parent: &Path) -> io::Result<PathBuf> {
    for number in 0..1000 {
        let folder = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns the directories of this user's spools that were left behind in the usual places.
pub(crate) fn left_behind() -> Vec<PathBuf> {
    let mut found: Vec<_> = parents().iter().flat_map(|parent| spools_in(parent, PREFIX).unwrap_or_default()).collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the spool directories in a directory whose names begin with a prefix.
fn spools_in(parent: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let folder = entry.path();
        let is_named = entry.file_name().as_bytes().starts_with(prefix.as_bytes()) && own_folder::is_named(&folder);
        if is_named && folder.join(EVENTS).symlink_metadata().is_ok() {
            found.push(folder);
        }
    }
    Ok(found)
}

/// Returns the free bytes of a file system.
fn free(folder: &Path) -> io::Result<u64> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: all zeros is a valid value of this struct of integers; the call fills it.
    let (result, answer) = unsafe {
        let mut answer: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &raw mut answer), answer)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

/// Returns the number of bytes that this process's limits on the file size and on the address space allow for a spool.
/// Most of the address space is reserved for other purposes.
fn own_limits() -> u64 {
    file_size_limit().min(limit(Resource::As, 1, 8))
}

/// Returns the bytes that the file size limit (`ulimit -f`) allows, minus the area before the chunks.
fn file_size_limit() -> u64 {
    limit(Resource::Fsize, 9, 10)
}

/// Returns a fraction of one of this process's resource limits.
fn limit(resource: Resource, part: u64, whole: u64) -> u64 {
    getrlimit(resource).current.map_or(u64::MAX, |limit| limit / whole * part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn made() -> SpoolFile {
        SpoolFile::create(None, 64 * CHUNK_BYTES as u64).unwrap()
    }

    #[test]
    fn a_folder_of_its_own() {
        let spool = made();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = spool.folder().path().to_owned();
        assert_eq!((mode(&folder), mode(&spool.path())), (0o700, 0o600));
        assert!(left_behind().contains(&folder));
        // Only one process can use a spool at a time.
        assert!(SpoolFile::open(&folder).is_err());
        drop(spool);
        assert!(!folder.exists());
    }

    #[test]
    fn what_is_left_behind_is_opened() {
        let mut spool = made();
        spool.set_temporary(false);
        spool.write_origin(&serde_json::json!({"a": 1})).unwrap();
        spool.reserve_chunk(7).unwrap();
        assert!(spool.spool().make_ready(7));
        let folder = spool.folder().path().to_owned();
        drop(spool);
        let mut again = SpoolFile::open(&folder).unwrap();
        assert_eq!((again.spool().ready(), again.spool().chunks()), (1, 64));
        assert_eq!(again.spool().take(), Some(7));
        assert_eq!(again.origin().unwrap()["a"], 1);
        again.set_temporary(true);
        drop(again);
        assert!(!folder.exists() && SpoolFile::open(&folder).is_err());
    }

    /// The recorder library of a killed recording is removed with its spool; any other file named there is kept.
    #[test]
    fn the_recorder_goes_with_its_spool() {
        let folder = tempfile::tempdir().unwrap();
        for (name, is_removed) in [("hatf-library-x", true), ("other", false)] {
            let library = folder.path().join(name).join("a.so");
            fs::create_dir(library.parent().unwrap()).unwrap();
            fs::write(&library, "code").unwrap();
            let spool = made();
            spool.write(LIBRARY, library.as_os_str().as_bytes()).unwrap();
            drop(spool);
            assert_eq!(library.parent().unwrap().exists(), !is_removed);
        }
    }

    #[test]
    fn a_chunk_is_zeros_again() {
        let file = made();
        file.reserve_chunk(3).unwrap();
        let chunk = file.spool().chunk(3).unwrap();
        chunk.write(5, &[[7, 8]]);
        assert_eq!(chunk.slot(5), Some([7, 8]));
        assert!(file.punch_chunk(3));
        assert_eq!(chunk.slot(5), None);
    }

    /// Bytes after the truncation of a file are zeros and do not kill this process.
    #[test]
    fn a_file_that_is_cut_off() {
        let file = made();
        fs::File::options().write(true).open(file.path()).unwrap().set_len(0).unwrap();
        assert_eq!(file.spool().chunk(9).unwrap().slot(5), None);
    }
}
