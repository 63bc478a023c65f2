//! The file of a trace, which belongs to one process at a time and never replaces a file of another kind.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use metatf::container::Sink;

use crate::error::Error;
use crate::sys;

/// The destination of a trace.
pub type TraceSink = Box<dyn Sink + Send>;

/// Number of bytes to write to a file at a time.
const BUFFER: usize = 1 << 18;

/// Opens the file of a trace.
///
/// # Errors
/// Returns an error if the file cannot be opened, another process is writing to it, or it is not a trace.
pub(crate) fn create(path: &Path) -> Result<TraceSink, Error> {
    match open(path)? {
        Some(file) => Ok(sink(file)),
        None => Err(fail(path, "another process is writing a trace to this file")),
    }
}

/// Opens the file of a trace. If another process is writing to it, opens a file with this process's ID in its name.
/// Also returns the path.
pub(crate) fn create_own(path: &Path) -> Result<(PathBuf, TraceSink), Error> {
    if let Some(file) = open(path)? {
        return Ok((path.to_owned(), sink(file)));
    }
    let numbered = numbered(path, sys::process());
    eprintln!(
        "telemetry: another process is writing to {}, so this process writes its trace to {}",
        path.display(),
        numbered.display()
    );
    create(&numbered).map(|sink| (numbered, sink))
}

/// Inserts a process ID into a path: `events.mtf` becomes `events.1234.mtf`.
pub(crate) fn numbered(path: &Path, process: u32) -> PathBuf {
    match path.extension() {
        Some(extension) => path.with_extension(format!("{process}.{}", extension.to_string_lossy())),
        None => path.with_extension(process.to_string()),
    }
}

fn sink(file: File) -> TraceSink {
    Box::new(BufWriter::with_capacity(BUFFER, file))
}

fn fail(path: &Path, why: &'static str) -> Error {
    Error::File("write the trace", path.to_owned(), io::Error::other(why))
}

/// Opens a file and truncates it. Returns `None` if another process has locked it. The lock lasts as long as the file
/// is open.
fn open(path: &Path) -> Result<Option<File>, Error> {
    let failed = |error| Error::File("create", path.to_owned(), error);
    // Writing to a terminal or a pipe does not replace anything.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return OpenOptions::new().write(true).open(path).map(Some).map_err(failed);
    }
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
    if !sys::lock(&file, libc::LOCK_EX) && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock {
        return Ok(None);
    }
    let mut first = [0; 4];
    let read = file.read_at(&mut first, 0).map_err(failed)?;
    if !b"\x7fMTF".starts_with(&first[..read]) {
        return Err(fail(path, "the file exists and is not a trace: delete the file or choose another name"));
    }
    file.set_len(0).map_err(failed)?;
    Ok(Some(file))
}
