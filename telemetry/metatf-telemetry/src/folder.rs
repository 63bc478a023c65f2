//! Buffers files in a directory to which others may write, such as `/dev/shm`. This module determines which files
//! belong to this user, and whether their processes are running or dead.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::layout::{MAGIC, MAGIC_CHUNKS, VERSION};
use crate::sys;

/// Number of files of dead processes to keep for `metatfc telemetry`.
const KEPT: usize = 4;

/// A file whose name matches the pattern for buffers files.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) process: u32,
    /// The creation time.
    pub(crate) made: u64,
    pub(crate) path: PathBuf,
}

/// Returns the files in a directory whose names match the pattern for buffers files, with the newest file of each
/// process first.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<Named>> {
    let named = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let (process, made) = name.to_str()?.strip_prefix("metatf.")?.split_once('.')?;
        Some(Named { process: process.parse().ok()?, made: made.parse().ok()?, path: entry.path() })
    };
    let mut files: Vec<_> = fs::read_dir(folder)?.filter_map(Result::ok).filter_map(named).collect();
    files.sort_by_key(|file| core::cmp::Reverse(file.made));
    Ok(files)
}

/// Opens a regular file, also for writing if that is allowed. Does not block on a pipe.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_with(path, 0)
}

/// Opens a regular file of this user. Symbolic links are not followed.
pub(crate) fn open_own(path: &Path) -> io::Result<File> {
    let file = open_with(path, libc::O_NOFOLLOW)?;
    let owner = file.metadata()?.uid();
    if owner == sys::user() {
        return Ok(file);
    }
    let message = format!("the file belongs to user {owner}; if you trust the file, specify its path");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

fn open_with(path: &Path, flags: libc::c_int) -> io::Result<File> {
    let open = |write| OpenOptions::new().read(true).write(write).custom_flags(flags | libc::O_NONBLOCK).open(path);
    let file = open(true).or_else(|_| open(false))?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Returns whether no process has mapped these buffers. Every process that has mapped them holds a lock on the file.
pub(crate) fn is_abandoned(file: &File) -> bool {
    let is_free = sys::lock(file, libc::LOCK_SH);
    if is_free {
        sys::lock(file, libc::LOCK_UN);
    }
    is_free
}

/// Removes the buffers files of this user's dead processes, except for the newest files. Does not touch files that may
/// not be buffers files.
pub(crate) fn sweep(folder: &Path) {
    let Ok(files) = files(folder) else { return };
    let made = |path: &Path| {
        let file = open_own(path).ok()?;
        let mut first = [0; 12];
        file.read_exact_at(&mut first, 0).ok()?;
        let is_known = [MAGIC, MAGIC_CHUNKS].iter().any(|magic| first[..8] == magic.to_ne_bytes());
        let is_buffers = is_known && first[8..] == VERSION.to_ne_bytes();
        if is_buffers && is_abandoned(&file) { file.metadata().ok()?.modified().ok() } else { None }
    };
    let mut dead: Vec<_> = files.into_iter().filter_map(|file| Some((made(&file.path)?, file.path))).collect();
    dead.sort();
    let gone = dead.len().saturating_sub(KEPT);
    for (_, path) in dead.into_iter().take(gone) {
        // Another process may have removed the file.
        let _ = fs::remove_file(path);
    }
}
