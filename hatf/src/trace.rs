//! Trace files: a sink that writes `dtds/HATF10.dtd`, and a source that reads it.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use metatf::Change;
use metatf::format::Interpretation;
use metatf::typed::Event;

use crate::{Error, EventSink, EventSource, Item, Record, Result, What};

/// What the build script made of `dtds/HATF10.dtd`.
mod format {
    include!(concat!(env!("OUT_DIR"), "/hatf10.rs"));
}

use format::{Alloc, CreateHeap, CreateThread, DestroyHeap, DestroyThread, Free, Heap, Realloc, Trace, Writer};

/// The number of the DTD's one section.
const SECTION: u8 = 1;

/// The leaves that each record has of those whose encoding we set.
const LEAVES: &[(&str, &[&str])] = &[
    ("alloc", &["address", "time", "thread", "heap"]),
    ("realloc", &["address", "address_2", "time", "thread", "heap"]),
    ("free", &["address", "time", "thread", "heap"]),
    ("createHeap", &["thread", "heap"]),
    ("destroyHeap", &["thread", "heap"]),
    ("createThread", &["thread"]),
    ("destroyThread", &["thread"]),
];

/// What a finished trace is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Bytes in the file.
    pub bytes: u64,
}

/// Writes a trace.
///
/// The DTD's addresses have 4 bytes, and its times, threads and heaps none: metadata at the start gives
/// addresses 8 bytes, times a difference of 4, threads and heaps 1. Where a value does not fit, the
/// writer widens its field.
pub struct TraceWriter {
    writer: Writer<BufWriter<File>>,
    path: PathBuf,
}

impl TraceWriter {
    /// A new trace in a new file; one that is there is replaced.
    ///
    /// # Errors
    /// The file could not be made.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(Error::system(path.display().to_string()))?;
        let mut trace = Self { writer: Writer::new(BufWriter::new(file)).map_err(failed)?, path: path.to_owned() };
        for (record, leaves) in LEAVES {
            for leaf in *leaves {
                trace.set_encoding(record, leaf).map_err(failed)?;
            }
        }
        Ok(trace)
    }

    fn set_encoding(&mut self, record: &str, leaf: &str) -> metatf::Result<()> {
        let (width, interpretation) = match leaf {
            "time" => (4, Interpretation::Delta(0)),
            "thread" | "heap" => (1, Interpretation::None),
            _ => (8, Interpretation::None),
        };
        let mut set = |change| self.writer.set("heap", record, leaf, change);
        set(Change::Width(width))?;
        set(Change::Interpretation(interpretation))
    }

    /// Finishes the trace.
    ///
    /// # Errors
    /// The rest could not be written.
    pub fn finish(self) -> Result<Written> {
        let buffer = self.writer.finish().map_err(failed)?;
        let system = Error::system(self.path.display().to_string());
        let length = |file: File| file.metadata().map(|metadata| metadata.len());
        let bytes = buffer.into_inner().map_err(|error| error.into_error()).and_then(length);
        Ok(Written { bytes: bytes.map_err(system)? })
    }
}

impl EventSink for TraceWriter {
    fn record(&mut self, record: &Record<'_>) -> Result<()> {
        let Record { what, time, thread, heap, attributes: vfield } = *record;
        let writer = &mut self.writer;
        match what {
            What::Alloc { size, address } => writer.alloc(&Alloc { size, address, time, thread, heap, vfield }),
            What::Realloc { old, address } => {
                let address_2 = address;
                writer.realloc(&Realloc { address: old, address_2, time, thread, heap, vfield })
            }
            What::Free { address } => writer.free(&Free { address, time, thread, heap, vfield }),
            What::CreateHeap => writer.create_heap(&CreateHeap { thread, heap, vfield }),
            What::DestroyHeap => writer.destroy_heap(&DestroyHeap { thread, heap, vfield }),
            What::CreateThread => writer.create_thread(&CreateThread { thread, vfield }),
            What::DestroyThread => writer.destroy_thread(&DestroyThread { thread, vfield }),
        }
        .map_err(failed)
    }

    fn comment(&mut self, text: &str) -> Result<()> {
        self.writer.comment(SECTION, text).map_err(failed)
    }
}

/// Reads a trace.
pub struct TraceReader(Trace<'static>);

impl TraceReader {
    /// Opens a trace, of a file or a pipe.
    ///
    /// # Errors
    /// There is none, it is damaged at its head, or its DTD is no kind of HATF 1.0.
    pub fn open(path: &Path) -> Result<Self> {
        let trace = Trace::open(path);
        trace.map(Self).map_err(|error| Error::Trace(format!("{}: {error}", path.display()).into()))
    }
}

impl EventSource for TraceReader {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        Ok(match self.0.next_event().map_err(failed)? {
            None => None,
            Some(Event::Record(format::Record::Heap(record))) => Some(Item::Record(said(record))),
            Some(Event::Comment(_, text)) => Some(Item::Comment(text)),
            Some(_) => Some(Item::Other),
        })
    }
}

/// A record as this crate says it.
fn said(record: Heap<&[u8]>) -> Record<'_> {
    let (what, time, thread, heap, attributes) = match record {
        Heap::Alloc(Alloc { size, address, time, thread, heap, vfield }) => {
            (What::Alloc { size, address }, time, thread, heap, vfield)
        }
        Heap::Realloc(Realloc { address, address_2, time, thread, heap, vfield }) => {
            (What::Realloc { old: address, address: address_2 }, time, thread, heap, vfield)
        }
        Heap::Free(Free { address, time, thread, heap, vfield }) => {
            (What::Free { address }, time, thread, heap, vfield)
        }
        Heap::CreateHeap(CreateHeap { thread, heap, vfield }) => (What::CreateHeap, 0, thread, heap, vfield),
        Heap::DestroyHeap(DestroyHeap { thread, heap, vfield }) => (What::DestroyHeap, 0, thread, heap, vfield),
        Heap::CreateThread(CreateThread { thread, vfield }) => (What::CreateThread, 0, thread, 0, vfield),
        Heap::DestroyThread(DestroyThread { thread, vfield }) => (What::DestroyThread, 0, thread, 0, vfield),
    };
    Record { what, time, thread, heap, attributes }
}

/// The runtime's error, with the DTD's names put to its numbers.
fn failed(error: metatf::Error) -> Error {
    Error::Trace(metatf::explain(&format::FORMAT, &error).to_string().into())
}
