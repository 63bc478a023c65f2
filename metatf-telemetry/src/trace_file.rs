//! The file of a trace: of one process at a time, and never put over a file of another kind.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use metatf::container::Sink;

use crate::error::Error;
use crate::sys;

/// Where a trace goes.
pub type TraceSink = Box<dyn Sink + Send>;

/// Bytes that are written to a file at once.
const BUFFER: usize = 1 << 18;

/// Opens the file of a trace.
///
/// # Errors
/// The system's; another process writes to it; it is a file of another kind.
pub(crate) fn create(path: &Path) -> Result<TraceSink, Error> {
    match open(path)? {
        Some(file) => Ok(sink(file)),
        None => Err(fail(path, "another trace is being written there")),
    }
}

/// Opens the file of a trace; where another process writes to it, one with this process's number in its name. Returns its path, too.
pub(crate) fn create_own(path: &Path) -> Result<(PathBuf, TraceSink), Error> {
    if let Some(file) = open(path)? {
        return Ok((path.to_owned(), sink(file)));
    }
    let numbered = numbered(path, sys::process());
    eprintln!("telemetry: another process writes to {}: this one's trace is {}", path.display(), numbered.display());
    create(&numbered).map(|sink| (numbered, sink))
}

/// Puts the number of a process into a path: `events.mtf` becomes `events.1234.mtf`.
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

/// Opens a file and empties it; `None` if another process has it. The lock lasts as long as it is open.
fn open(path: &Path) -> Result<Option<File>, Error> {
    let failed = |error| Error::File("create", path.to_owned(), error);
    // A terminal, a pipe: what is written there replaces nothing.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return OpenOptions::new().write(true).open(path).map(Some).map_err(failed);
    }
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
    if !sys::lock(&file, libc::LOCK_EX) && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock {
        return Ok(None);
    }
    let mut first = [0; 4];
    let read = file.read_at(&mut first, 0).map_err(failed)?;
    if read > 0 && first != *b"\x7fMTF" {
        return Err(fail(path, "a file is there that is no trace; remove it, or name another"));
    }
    file.set_len(0).map_err(failed)?;
    Ok(Some(file))
}
