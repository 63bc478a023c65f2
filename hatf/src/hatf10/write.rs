//! Writing `dtds/HATF10.dtd`.

use metatf::Change;
use metatf::container::{Sink, WriteOptions};
use metatf::format::Interpretation;

use super::failed;
use super::format::{Alloc, CreateHeap, CreateThread, DestroyHeap, DestroyThread, Free, Realloc, Writer};
use super::say::Said;
use super::{Dialect, Record, Speaker, What};
use crate::Result;
use crate::event::{About, Event, EventSink, about_lines};
use crate::loss::Losses;

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

/// Writes a trace.
///
/// The DTD's addresses have 4 bytes, and its times, threads and heaps none: metadata at the start gives
/// addresses 8 bytes, times a difference of 4, threads and heaps 1. Where a value does not fit, the
/// writer widens its field.
pub struct Hatf10Writer<'w> {
    writer: Writer<&'w mut dyn Sink>,
    speaker: Speaker,
}

impl<'w> Hatf10Writer<'w> {
    /// Starts a trace.
    ///
    /// # Errors
    /// The sink's.
    pub fn new(sink: &'w mut dyn Sink, options: &WriteOptions) -> Result<Self> {
        let writer = Writer::with_options(sink, options).map_err(failed)?;
        let mut trace = Self { writer, speaker: Speaker::new(Dialect::MetaTf) };
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

    /// Finishes the trace; what of the events it could not hold.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(self) -> Result<Losses> {
        self.writer.finish().map_err(failed)?;
        Ok(self.speaker.losses)
    }
}

fn put(writer: &mut Writer<&mut dyn Sink>, record: &Record<'_>) -> Result<()> {
    let Record { what, time, thread, heap, attributes: vfield } = *record;
    match what {
        What::Alloc { size, address } => writer.alloc(&Alloc { size, address, time, thread, heap, vfield }),
        What::Realloc { old, address: address_2, .. } => {
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

impl EventSink for Hatf10Writer<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let writer = &mut self.writer;
        self.speaker.say(event, &mut |said| match said {
            Said::Record(record) => put(writer, &record),
            Said::Comment(text) => writer.comment(SECTION, text).map_err(failed),
        })
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.writer.comment(SECTION, text).map_err(failed)
    }

    /// As comments, a line each: HATF 1.0 has no other place for it.
    fn about(&mut self, about: &About) -> Result<()> {
        about_lines(about).iter().try_for_each(|line| self.comment(line.as_bytes()))
    }
}
