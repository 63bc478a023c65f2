//! Conversion of events to HATF 1.0 records.

use super::{Dialect, Record, RecordKind, attributes};
use crate::Result;
use crate::event::{Call, Event, EventKind, UNKNOWN_SIZE};
use crate::loss::{Loss, Losses};

/// An encoder of events as records in a dialect of HATF 1.0.
///
/// # Examples
///
/// ```
/// use hatf_trace::event::{Call, Event, EventKind, Function};
/// use hatf_trace::hatf10::{Dialect, Encoded, Encoder};
///
/// let call = Call { detail: 4, size: 40, address: 0x1000, ..Call::new(Function::Calloc) };
/// let mut attributes = Vec::new();
/// Encoder::new(Dialect::MetaTf).encode(&Event::new(EventKind::Call(call)), &mut |item| {
///     if let Encoded::Record(record) = item {
///         attributes.extend_from_slice(record.attributes);
///     }
///     Ok(())
/// })?;
/// assert_eq!(attributes, b"calloc count=4");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Encoder {
    dialect: Dialect,
    /// The current image, or 0 before the first image.
    image: u64,
    attributes: Vec<u8>,
    /// Counts of the event data that the records could not store.
    pub losses: Losses,
}

/// An encoded item.
#[derive(Clone, Copy, Debug)]
pub enum Encoded<'a> {
    /// A record.
    Record(Record<'a>),
    /// A comment.
    Comment(&'a str),
}

impl Encoder {
    /// Creates an encoder in the state before the first event.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, image: 0, attributes: Vec::new(), losses: Losses::default() }
    }

    /// Encodes an event, usually as one record, sometimes as two records, a comment, or nothing.
    ///
    /// # Errors
    /// `put`, which is called for each item, returned an error.
    pub fn encode(&mut self, event: &Event<'_>, put: &mut dyn FnMut(Encoded<'_>) -> Result<()>) -> Result<()> {
        self.losses.note_if(!event.stack.is_empty(), Loss::Stack);
        let kind = match event.kind {
            EventKind::Call(ref call) => {
                self.losses.note_if(call.usable != 0, Loss::Usable);
                if call.address == 0 && !call.old_is_gone() {
                    return self.failed(event, call, put);
                }
                self.kind_of_call(call)
            }
            EventKind::Free { address } => RecordKind::Free { address },
            EventKind::ReallocBegin { old } => RecordKind::Free { address: old },
            EventKind::ReallocEnd(Call { usable, address: 0, .. }) => {
                self.losses.note(Loss::Halves);
                self.losses.note_if(usable != 0, Loss::Usable);
                return Ok(());
            }
            EventKind::ReallocEnd(Call { size, address, usable, .. }) => {
                self.losses.note_if(usable != 0, Loss::Usable);
                RecordKind::Alloc { size, address }
            }
            EventKind::Failed(ref call) => return self.failed(event, call, put),
            EventKind::CreateHeap => RecordKind::CreateHeap,
            EventKind::DestroyHeap | EventKind::Exit { .. } | EventKind::Killed { .. } => RecordKind::DestroyHeap,
            EventKind::ThreadStart { .. } => RecordKind::CreateThread,
            EventKind::ThreadEnd => RecordKind::DestroyThread,
            EventKind::Image { .. } => {
                self.end_image(event, put)?;
                self.image += 1;
                RecordKind::CreateHeap
            }
            EventKind::ThreadName { name } => {
                self.losses.note(Loss::ThreadNames);
                return self.named("name", name, event, put);
            }
            EventKind::Pages(_) | EventKind::Resident(_) | EventKind::Untouched { .. } => {
                self.losses.note(Loss::Pages);
                return Ok(());
            }
            EventKind::Mark { name } => return self.comment("mark", name, event, put),
            EventKind::PhaseBegin { name } => return self.comment("phase begins:", name, event, put),
            EventKind::PhaseEnd { name } => return self.comment("phase ends:", name, event, put),
            EventKind::ModuleLoad { .. }
            | EventKind::ModuleUnload { .. }
            | EventKind::Source { .. }
            | EventKind::Symbol { .. } => {
                self.losses.note(Loss::Modules);
                return Ok(());
            }
            EventKind::Accesses(_) | EventKind::LastAccess { .. } => {
                self.losses.note(Loss::Accesses);
                return Ok(());
            }
            EventKind::Enter { .. } | EventKind::Leave => {
                self.losses.note(Loss::Functions);
                return Ok(());
            }
            EventKind::Processor { .. } => {
                self.losses.note(Loss::Processors);
                return Ok(());
            }
            EventKind::Recording { on } => {
                self.losses.note(Loss::Recording);
                let what = if on { "resumes" } else { "stops" };
                return put(Encoded::Comment(&format!("recording {what}: time {}", event.time)));
            }
            EventKind::Lost { events } => {
                self.losses.note(Loss::Lost);
                return put(Encoded::Comment(&format!("{events} events were lost: time {}", event.time)));
            }
        };
        self.attributes.clear();
        attributes::write(event, self.dialect, &mut self.attributes);
        if matches!(event.kind, EventKind::Exit { .. } | EventKind::Killed { .. }) {
            self.image = 0;
        }
        self.put_record(kind, event, put)
    }

    fn kind_of_call(&mut self, call: &Call) -> RecordKind {
        let Call { function, mut size, old, address, .. } = *call;
        if self.dialect == Dialect::Native && function.is_realloc() {
            if size == UNKNOWN_SIZE {
                self.losses.note(Loss::Size);
                size = 0;
            }
            return RecordKind::Realloc { old, address, size };
        }
        match (old, address) {
            (0, _) => RecordKind::Alloc { size, address },
            (old, 0) => RecordKind::Free { address: old },
            _ => RecordKind::Realloc { old, address, size },
        }
    }

    /// Ends the current image, which executes another one.
    fn end_image(&mut self, event: &Event<'_>, put: &mut dyn FnMut(Encoded<'_>) -> Result<()>) -> Result<()> {
        if self.image == 0 {
            return Ok(());
        }
        self.attributes.clear();
        self.attributes.extend_from_slice(b"exec");
        if self.dialect == Dialect::MetaTf {
            self.attributes.extend_from_slice(format!(" time={}", event.time).as_bytes());
        }
        let heap = event.heap.saturating_sub(1);
        self.put_record(RecordKind::DestroyHeap, &Event { heap, ..*event }, put)
    }

    fn put_record(
        &self,
        kind: RecordKind,
        event: &Event<'_>,
        put: &mut dyn FnMut(Encoded<'_>) -> Result<()>,
    ) -> Result<()> {
        let Event { time, thread, heap, .. } = *event;
        put(Encoded::Record(Record { kind, time, thread, heap, attributes: &self.attributes }))
    }

    fn failed(&mut self, event: &Event<'_>, call: &Call, put: &mut dyn FnMut(Encoded<'_>) -> Result<()>) -> Result<()> {
        self.losses.note(Loss::Failed);
        let Event { thread, time, .. } = event;
        let (name, Call { size, old, .. }) = (call.function.name(), call);
        put(Encoded::Comment(&match old {
            0 => format!("{name} of {size} bytes failed: thread {thread}, time {time}"),
            _ => format!("{name} of 0x{old:x} to {size} bytes failed: thread {thread}, time {time}"),
        }))
    }

    fn comment(
        &mut self,
        kind: &str,
        name: &[u8],
        event: &Event<'_>,
        put: &mut dyn FnMut(Encoded<'_>) -> Result<()>,
    ) -> Result<()> {
        self.losses.note(Loss::Marks);
        self.named(kind, name, event, put)
    }

    fn named(
        &self,
        kind: &str,
        name: &[u8],
        event: &Event<'_>,
        put: &mut dyn FnMut(Encoded<'_>) -> Result<()>,
    ) -> Result<()> {
        let name = String::from_utf8_lossy(name);
        put(Encoded::Comment(&format!("{kind} {name}: thread {}, time {}", event.thread, event.time)))
    }
}
