//! Reader for `dtds/HATF10.dtd` traces.

use metatf::container::Reader;
use metatf::typed::{Event as TraceEvent, TraceOptions, Unmatched};

use super::format::{
    Alloc, CreateHeap, CreateThread, DestroyHeap, DestroyThread, Free, Heap, Protocol, Realloc, Record as Read, Trace,
};
use super::{Dialect, Record, RecordKind, decode, failed, is_exec};
use crate::event::{EventSink, EventSource, Item, UNKNOWN_SIZE};
use crate::{Error, Result};

/// A reader of HATF 1.0 traces in Meta-TF.
///
/// The [module's example](crate::hatf10#examples) reads a trace in memory.
pub struct Hatf10Reader<'t> {
    trace: Trace<'t>,
    /// The bytes of the item returned last.
    bytes: Vec<u8>,
    words: Vec<u8>,
}

/// An item of the trace, whose bytes are stored in the reader.
enum Next {
    Record(Record<'static>),
    Comment,
}

impl<'t> Hatf10Reader<'t> {
    /// Creates a reader for an opened container.
    ///
    /// # Errors
    /// The head of the trace is corrupt, or its DTD is not compatible with HATF 1.0.
    pub fn of(container: Reader<'t>) -> Result<Self> {
        let trace = TraceOptions::new().read::<Protocol>(container);
        let trace = trace.map_err(|error| Error::Trace(error.to_string().into()))?;
        Ok(Self { trace: Trace::from_opened(trace), bytes: Vec::new(), words: Vec::new() })
    }

    /// Returns the mismatches between the trace's DTD and this reader; see [`metatf::typed::Trace::unmatched`].
    #[must_use]
    pub fn unmatched(&self) -> Option<&Unmatched> {
        self.trace.unmatched()
    }

    fn advance(&mut self) -> Result<Option<Next>> {
        loop {
            let (bytes, next) = match self.trace.next_event().map_err(failed)? {
                None => return Ok(None),
                Some(TraceEvent::Record(Read::Heap(heap))) => {
                    let record = record(&heap);
                    (record.attributes, Next::Record(Record { attributes: &[], ..record }))
                }
                Some(TraceEvent::Comment(_, text)) => (text, Next::Comment),
                Some(_) => continue,
            };
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            return Ok(Some(next));
        }
    }
}

impl EventSource for Hatf10Reader<'_> {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        let (kind, time, thread, heap) = loop {
            match self.advance()? {
                None => return Ok(None),
                Some(Next::Comment) => return Ok(Some(Item::Comment(&self.bytes))),
                Some(Next::Record(Record { kind, time, thread, heap, .. })) => {
                    let record = Record { kind, time, thread, heap, attributes: &self.bytes };
                    if !is_exec(&record) {
                        break (kind, time, thread, heap);
                    }
                }
            }
        };
        let record = Record { kind, time, thread, heap, attributes: &self.bytes };
        Ok(Some(Item::Event(decode(&record, Dialect::MetaTf, &mut self.words))))
    }

    /// Reads records in runs and without copying attributes.
    fn pour<T: EventSink + ?Sized>(&mut self, sink: &mut T) -> Result<()> {
        loop {
            let words = &mut self.words;
            self.trace.try_for_run(|Read::Heap(heap)| {
                let record = record(&heap);
                if is_exec(&record) {
                    return Ok(());
                }
                sink.event(&decode(&record, Dialect::MetaTf, words)).map_err(Stop)
            })?;
            match self.next()? {
                None => return Ok(()),
                Some(Item::Event(event)) => sink.event(&event)?,
                Some(Item::Comment(text)) => sink.comment(text)?,
            }
        }
    }
}

/// The reason why a run of records stopped early.
struct Stop(Error);

impl From<metatf::Error> for Stop {
    fn from(error: metatf::Error) -> Self {
        Self(failed(error))
    }
}

impl From<Stop> for Error {
    fn from(Stop(error): Stop) -> Self {
        error
    }
}

fn record<'a>(heap: &Heap<&'a [u8]>) -> Record<'a> {
    let (kind, time, thread, heap, attributes) = match *heap {
        Heap::Alloc(Alloc { size, address, time, thread, heap, vfield }) => {
            (RecordKind::Alloc { size, address }, time, thread, heap, vfield)
        }
        Heap::Realloc(Realloc { address, address_2, time, thread, heap, vfield }) => {
            let kind = RecordKind::Realloc { old: address, address: address_2, size: UNKNOWN_SIZE };
            (kind, time, thread, heap, vfield)
        }
        Heap::Free(Free { address, time, thread, heap, vfield }) => {
            (RecordKind::Free { address }, time, thread, heap, vfield)
        }
        Heap::CreateHeap(CreateHeap { thread, heap, vfield }) => (RecordKind::CreateHeap, 0, thread, heap, vfield),
        Heap::DestroyHeap(DestroyHeap { thread, heap, vfield }) => (RecordKind::DestroyHeap, 0, thread, heap, vfield),
        Heap::CreateThread(CreateThread { thread, vfield }) => (RecordKind::CreateThread, 0, thread, 0, vfield),
        Heap::DestroyThread(DestroyThread { thread, vfield }) => (RecordKind::DestroyThread, 0, thread, 0, vfield),
    };
    Record { kind, time, thread, heap, attributes }
}
