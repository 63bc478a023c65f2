//! Trace files in Meta-TF.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::OnceLock;

use metatf::container::Reader;

use crate::{Error, Result};

/// The functions that open a trace by its path. The default reads files without mapping them, so that another process
/// can truncate them in the meantime.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The function that opens the file.
    pub open: fn(&Path) -> metatf::Result<Reader<'static>>,
    /// A function called with each trace before it is read, and with the name of the trace for messages. For example,
    /// it can receive the trace's [warnings](Reader::on_warning).
    pub opened: fn(&mut Reader<'static>, &str),
}

static OPENING: OnceLock<Opening> = OnceLock::new();

/// Sets how traces are opened. A command can call this once, because the setting applies to the whole process.
pub fn set_opening(opening: Opening) {
    let _ = OPENING.set(opening);
}

/// The file in a spool directory that contains the events.
pub const SPOOLED_EVENTS: &str = "events";

/// Checks that a path can be a trace; `-` is standard input.
pub(crate) fn check_file(path: &Path) -> Result<()> {
    if path == Path::new("-") {
        return Ok(());
    }
    let name = path.display().to_string();
    // A missing file is reported in the system's own words.
    let found = std::fs::metadata(path).map_err(Error::system(name.clone()))?;
    if found.is_dir() && path.join(SPOOLED_EVENTS).is_file() {
        let advice = format!("{name} is a spool, not a trace: run `hatf recover {name}` to create its trace");
        return Err(Error::Trace(advice.into()));
    }
    if found.is_dir() {
        return Err(Error::System(name, io::ErrorKind::IsADirectory.into()));
    }
    Ok(())
}

/// Opens a Meta-TF trace file.
pub(crate) fn open(path: &Path) -> metatf::Result<Reader<'static>> {
    OPENING.get().map_or_else(|| Reader::read(path), |opening| (opening.open)(path))
}

/// Passes an opened trace to the configured callback.
pub(crate) fn opened(mut reader: Reader<'static>, name: &str) -> Reader<'static> {
    if let Some(opening) = OPENING.get() {
        (opening.opened)(&mut reader, name);
    }
    reader
}

/// Returns whether the DTD embedded in a trace contains a word.
pub(crate) fn dtd_has(trace: &Reader<'_>, word: &str) -> bool {
    let text = trace.dtd_text().unwrap_or_default();
    text.windows(word.len()).any(|window| window == word.as_bytes())
}

/// Creates a buffered file for a trace, replacing any existing file.
///
/// # Errors
/// The file could not be created.
pub fn create(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).map_err(Error::system(path.display().to_string()))?;
    Ok(BufWriter::with_capacity(1 << 18, file))
}

/// Flushes a file and returns its length.
///
/// # Errors
/// The rest of the buffer could not be written.
pub fn written(file: BufWriter<File>, path: &Path) -> Result<u64> {
    let length = |file: File| file.metadata().map(|metadata| metadata.len());
    let bytes = file.into_inner().map_err(io::IntoInnerError::into_error).and_then(length);
    bytes.map_err(Error::system(path.display().to_string()))
}
