//! Trace files in Meta-TF.
//!
//! # Examples
//!
//! ```
//! use hatf_trace::heap::{HeapOptions, HeapWriter};
//! use hatf_trace::trace::{create, written};
//! use hatf_trace::{Event, EventSink};
//!
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("grep.mtf");
//! let mut file = create(&path)?;
//! let mut writer = HeapWriter::new(&mut file, &HeapOptions::default())?;
//! writer.event(&Event::malloc(0x1000, 24))?;
//! writer.finish()?;
//! assert_eq!(written(file, &path)?, std::fs::metadata(&path)?.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use metatf::container::Reader;

use crate::{Error, Result};

/// The functions that open a Meta-TF trace. The default reads files without mapping them, so that another process can
/// truncate them in the meantime.
///
/// # Examples
///
/// Mapping the file is faster, but requires that no other process truncates it:
///
/// ```
/// use hatf_trace::forms::{OpenOptions, open};
/// use hatf_trace::trace::Opening;
/// use hatf_trace::{Event, EventSource, Item};
/// use metatf::container::Reader;
/// # use hatf_trace::EventSink;
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("grep.mtf");
/// # let mut writer = hatf_trace::heap::HeapWriter::new(std::fs::File::create(&path)?, &Default::default())?;
/// # writer.event(&Event::malloc(0x1000, 24))?;
/// # writer.finish()?;
///
/// let opening = Opening { open: |path| Reader::open(path), ..Opening::default() };
/// let mut trace = open(&path, &OpenOptions { opening, ..OpenOptions::default() })?;
/// assert_eq!(trace.next()?, Some(Item::Event(Event::malloc(0x1000, 24))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The function that opens an uncompressed file.
    pub open: fn(&Path) -> metatf::Result<Reader<'static>>,
    /// A function called with each trace before it is read, and with the name of the trace for messages. For example,
    /// it can receive the trace's [warnings](Reader::on_warning).
    pub opened: fn(&mut Reader<'static>, &str),
}

impl Default for Opening {
    fn default() -> Self {
        Self { open: |path| Reader::read(path), opened: |_, _| () }
    }
}

/// The file in a spool directory that contains the events.
pub const SPOOLED_EVENTS: &str = "events";

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
