//! Writer for `dtds/HATF10.dtd` traces.

use metatf::Change;
use metatf::container::{Sink, WriteOptions};
use metatf::format::Interpretation;

use super::failed;
use super::format::{Alloc, CreateHeap, CreateThread, DestroyHeap, DestroyThread, Free, Realloc, Writer};
use super::{Dialect, Encoded, Encoder, Record, RecordKind};
use crate::event::{Event, EventSink, UserMetadata, has_sizes_only, user_metadata_lines};
use crate::loss::Losses;
use crate::{Error, Result};

/// The number of the only section in the DTD.
const SECTION: u8 = 1;

/// For each record, the leaves whose encoding the writer sets.
const LEAVES: &[(&str, &[&str])] = &[
    ("alloc", &["address", "time", "thread", "heap"]),
    ("realloc", &["address", "address_2", "time", "thread", "heap"]),
    ("free", &["address", "time", "thread", "heap"]),
    ("createHeap", &["thread", "heap"]),
    ("destroyHeap", &["thread", "heap"]),
    ("createThread", &["thread"]),
    ("destroyThread", &["thread"]),
];

/// A writer of HATF 1.0 traces in Meta-TF.
///
/// In the DTD, addresses occupy 4 bytes, and times, threads and heaps occupy none. Metadata at the start widens
/// addresses to 8 bytes, and threads and heaps to 1 byte, and stores times as 4-byte differences. If a value does not
/// fit, the writer widens its field.
///
/// The [module's example](crate::hatf10#examples) writes a trace to memory.
pub struct Hatf10Writer<'w> {
    writer: Writer<&'w mut dyn Sink>,
    encoder: Encoder,
}

impl<'w> Hatf10Writer<'w> {
    /// Starts a trace.
    ///
    /// # Errors
    /// The sink failed.
    pub fn new(sink: &'w mut dyn Sink, options: &WriteOptions) -> Result<Self> {
        let writer = Writer::with_options(sink, options).map_err(failed)?;
        let mut trace = Self { writer, encoder: Encoder::new(Dialect::MetaTf) };
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

    /// Finishes the trace. Returns counts of the event data that it could not store.
    ///
    /// # Errors
    /// The sink failed.
    pub fn finish(self) -> Result<Losses> {
        self.writer.finish().map_err(failed)?;
        Ok(self.encoder.losses)
    }

    /// Abandons the trace without the warning about a dropped writer. The sink contains an incomplete trace.
    pub fn abandon(self) {
        self.writer.abandon();
    }
}

fn put(writer: &mut Writer<&mut dyn Sink>, record: &Record<'_>) -> Result<()> {
    let Record { kind, time, thread, heap, attributes: vfield } = *record;
    match kind {
        RecordKind::Alloc { size, address } => writer.alloc(&Alloc { size, address, time, thread, heap, vfield }),
        RecordKind::Realloc { old, address: address_2, .. } => {
            writer.realloc(&Realloc { address: old, address_2, time, thread, heap, vfield })
        }
        RecordKind::Free { address } => writer.free(&Free { address, time, thread, heap, vfield }),
        RecordKind::CreateHeap => writer.create_heap(&CreateHeap { thread, heap, vfield }),
        RecordKind::DestroyHeap => writer.destroy_heap(&DestroyHeap { thread, heap, vfield }),
        RecordKind::CreateThread => writer.create_thread(&CreateThread { thread, vfield }),
        RecordKind::DestroyThread => writer.destroy_thread(&DestroyThread { thread, vfield }),
    }
    .map_err(failed)
}

impl EventSink for Hatf10Writer<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let writer = &mut self.writer;
        self.encoder.encode(event, &mut |item| match item {
            Encoded::Record(record) => put(writer, &record),
            Encoded::Comment(text) => writer.comment(SECTION, text).map_err(failed),
        })
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.writer.comment(SECTION, text).map_err(failed)
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(failed)
    }

    /// Writes user metadata as one comment per line, as HATF 1.0 has no other place for it.
    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        if has_sizes_only(user_metadata) {
            let why = "the trace was recorded with --sizes-only, but HATF10 requires addresses";
            return Err(Error::Trace(why.into()));
        }
        user_metadata_lines(user_metadata).iter().try_for_each(|line| self.comment(line.as_bytes()))
    }
}
