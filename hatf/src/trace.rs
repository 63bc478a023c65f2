//! Trace files of either DTD: `dtds/heap.dtd`, or `dtds/HATF10.dtd`; and of others, by the names of their records.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::OnceLock;

use metatf::container::Reader;
use metatf::typed::Unmatched;

use crate::event::{EventSink, EventSource, Item, UserMetadata, copy};
use crate::hatf10::Hatf10Reader;
use crate::heap::HeapReader;
use crate::named::NamedReader;
use crate::pipeline::EventFeed;
use crate::{Error, Result};

/// Reads a trace of any of these DTDs.
pub enum TraceReader<'t> {
    /// Of `dtds/heap.dtd`.
    Heap(HeapReader<'t>),
    /// Of `dtds/HATF10.dtd`.
    Hatf10(Hatf10Reader<'t>),
    /// Of another DTD.
    Named(Box<NamedReader<'t>>),
}

/// Is given each trace that this library opens by its path, and its name in messages.
pub type OnOpen = fn(&mut Reader<'static>, &str);

static ON_OPEN: OnceLock<OnOpen> = OnceLock::new();

/// Has each trace that this library opens by its path looked at before it is read, for instance to hear of its
/// [warnings](Reader::on_warning). It can be set once, by a command, as it holds for the process.
pub fn set_on_open(on_open: OnOpen) {
    let _ = ON_OPEN.set(on_open);
}

/// Opens a file of a trace of any kind; `-` is standard input. One that other users could cut is not mapped.
///
/// # Errors
/// There is none, or it is damaged at its head.
pub fn open(path: &Path) -> Result<Reader<'static>> {
    let name = path.display().to_string();
    if path != Path::new("-") {
        // The system's own words for a file that is not there.
        let found = std::fs::metadata(path).map_err(Error::system(name.clone()))?;
        if found.is_dir() && path.join(hatf_record::names::EVENTS).is_file() {
            let advice = format!("{name}: a spool, not a trace: `hatf recover {name}` makes its trace");
            return Err(Error::Trace(advice.into()));
        }
        if found.is_dir() {
            return Err(Error::System(name, io::ErrorKind::IsADirectory.into()));
        }
    }
    let reader = metatf_cli::open_trace(path, false);
    Ok(opened(reader.map_err(|error| Error::Trace(format!("{name}: {error}").into()))?, &name))
}

/// Has a trace looked at that was opened.
pub(crate) fn opened(mut reader: Reader<'static>, name: &str) -> Reader<'static> {
    if let Some(on_open) = ON_OPEN.get() {
        on_open(&mut reader, name);
    }
    reader
}

impl TraceReader<'static> {
    /// Opens a trace, of a file or a pipe; `-` is standard input.
    ///
    /// # Errors
    /// There is none, it is damaged at its head, or it is not about a heap.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of(open(path)?).map_err(|error| Error::Trace(format!("{}: {error}", path.display()).into()))
    }
}

impl<'t> TraceReader<'t> {
    /// Reads a trace whose container is open.
    ///
    /// # Errors
    /// It is damaged at its head, or it is not about a heap.
    pub fn of(container: Reader<'t>) -> Result<Self> {
        match dtd(&container) {
            Some(Dtd::Hatf10) => Hatf10Reader::of(container).map(Self::Hatf10),
            Some(Dtd::Heap) => HeapReader::of(container).map(Self::Heap),
            None => NamedReader::of(container).map(|reader| Self::Named(Box::new(reader))),
        }
    }
}

impl TraceReader<'_> {
    /// What the trace has and this reader does not, and the other way, where the trace is of another version of its DTD.
    #[must_use]
    pub fn unmatched(&self) -> Option<&Unmatched> {
        match self {
            Self::Heap(reader) => reader.unmatched(),
            Self::Hatf10(reader) => reader.unmatched(),
            Self::Named(_) => None,
        }
    }

    /// Formats [`unmatched`](Self::unmatched) as warnings about a trace of this name. Records that the trace's DTD lacks are none: an earlier recorder
    /// did not write them.
    #[must_use]
    pub fn warnings(&self, name: &str) -> Vec<String> {
        if let Self::Named(reader) = self {
            return vec![format!("{name}: {}", reader.reading())];
        }
        let mut unmatched = self.unmatched().cloned().unwrap_or_default();
        unmatched.absent.retain(|place| place.matches('.').count() > 1);
        let text = unmatched.to_string();
        text.lines().map(|line| format!("{name}: warning: {line}")).collect()
    }

    /// Gives all that is left to a sink.
    ///
    /// # Errors
    /// The trace is damaged; the sink's.
    pub fn give(&mut self, sink: &mut dyn EventSink) -> Result<()> {
        copy(self, sink)
    }

    /// As [`give`](Self::give), for a sink in another thread.
    ///
    /// # Errors
    /// As for [`give`](Self::give).
    pub fn feed(&mut self, feed: &mut EventFeed) -> Result<()> {
        copy(self, feed)
    }
}

/// The DTDs that a heap trace may have.
enum Dtd {
    Heap,
    Hatf10,
}

/// Determines the DTD of a trace: by its name, or else by a record that only it has.
fn dtd(container: &Reader<'_>) -> Option<Dtd> {
    let text = container.dtd_text().unwrap_or_default();
    let has = |word: &[u8]| text.windows(word.len()).any(|window| window == word);
    match container.header().dtd_url.rsplit('/').next() {
        Some("HATF10.dtd") => Some(Dtd::Hatf10),
        Some("heap.dtd") => Some(Dtd::Heap),
        _ if has(b"createHeap") => Some(Dtd::Hatf10),
        // `malloc` is a name that others may use, too.
        _ if has(b"malloc") && has(b"thread_start") => Some(Dtd::Heap),
        _ => None,
    }
}

impl EventSource for TraceReader<'_> {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        match self {
            Self::Heap(reader) => reader.next(),
            Self::Hatf10(reader) => reader.next(),
            Self::Named(reader) => reader.next(),
        }
    }

    fn pour<T: EventSink + ?Sized>(&mut self, sink: &mut T) -> Result<()> {
        match self {
            Self::Heap(reader) => reader.pour(sink),
            Self::Hatf10(reader) => reader.pour(sink),
            Self::Named(reader) => reader.pour(sink),
        }
    }

    fn user_metadata(&self) -> UserMetadata {
        match self {
            Self::Heap(reader) => reader.user_metadata(),
            Self::Hatf10(reader) => reader.user_metadata(),
            Self::Named(reader) => reader.user_metadata(),
        }
    }
}

/// Creates a file for a trace, buffered; one that is there is replaced.
///
/// # Errors
/// The file could not be made.
pub fn create(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).map_err(Error::system(path.display().to_string()))?;
    Ok(BufWriter::with_capacity(1 << 18, file))
}

/// Flushes a file, and returns its length.
///
/// # Errors
/// The rest of its buffer could not be written.
pub fn written(file: BufWriter<File>, path: &Path) -> Result<u64> {
    let length = |file: File| file.metadata().map(|metadata| metadata.len());
    let bytes = file.into_inner().map_err(io::IntoInnerError::into_error).and_then(length);
    bytes.map_err(Error::system(path.display().to_string()))
}
