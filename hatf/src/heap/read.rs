//! Reading `dtds/heap.dtd`.

use std::collections::HashMap;
use std::path::Path;

use metatf::container::Reader;
use metatf::typed::{Event as TraceEvent, TraceOptions};
use serde_json::Value;

use super::failed;
use super::format::{Free, Heap, Malloc, Protocol, Realloc, Record, Trace};
use crate::event::{About, Call, Event, EventSink, EventSource, Function, Item, What};
use crate::{Error, Result};

/// Reads a trace.
pub struct HeapReader<'t> {
    trace: Trace<'t>,
    resolution: u64,
    thread: u64,
    heap: u64,
    stacks: HashMap<u64, Vec<u64>>,
    names: HashMap<u64, Vec<u8>>,
    comment: Vec<u8>,
    /// What comes first: it was read ahead, because what the trace says about itself stands before it.
    first: Option<Result<Option<Next>>>,
}

/// What the trace gives.
enum Next {
    /// A record that is an event.
    Said(Said),
    /// A comment, whose bytes are kept.
    Comment,
}

/// Where an event's stack and name are found.
#[derive(Clone, Copy, Default)]
struct Offsets {
    stack: u64,
    name: Option<u64>,
}

/// What a record of the trace says.
struct Said {
    what: What<'static>,
    ticks: u64,
    /// The thread that began or ended.
    thread: Option<u64>,
    offsets: Offsets,
}

impl HeapReader<'static> {
    /// Opens a trace, of a file or a pipe.
    ///
    /// # Errors
    /// There is none, it is damaged at its head, or its DTD is no kind of `heap.dtd`.
    pub fn open(path: &Path) -> Result<Self> {
        let trace = TraceOptions::new().open::<Protocol>(path);
        let trace = trace.map_err(|error| Error::Trace(format!("{}: {error}", path.display()).into()))?;
        Ok(Self::new(Trace::with_options(trace)))
    }
}

impl<'t> HeapReader<'t> {
    /// Reads a trace whose container is open.
    ///
    /// # Errors
    /// It is damaged at its head, or its DTD is no kind of `heap.dtd`.
    pub fn of(container: Reader<'t>) -> Result<Self> {
        let trace = TraceOptions::new().read::<Protocol>(container);
        let trace = trace.map_err(|error| Error::Trace(error.to_string().into()))?;
        Ok(Self::new(Trace::with_options(trace)))
    }

    fn new(trace: Trace<'t>) -> Self {
        let mut reader = Self {
            trace,
            resolution: 1,
            thread: 1,
            heap: 0,
            stacks: HashMap::new(),
            names: HashMap::new(),
            comment: Vec::new(),
            first: None,
        };
        reader.first = Some(reader.advance());
        if let Some(clock) = reader.about().get("clock").and_then(|clock| clock.get("resolution_ns")) {
            reader.resolution = clock.as_u64().unwrap_or(1).max(1);
        }
        reader
    }

    /// Nanoseconds in a tick of the trace's clock.
    #[must_use]
    pub fn resolution(&self) -> u64 {
        self.resolution
    }

    /// The next record that is an event, or comment.
    #[inline]
    fn advance(&mut self) -> Result<Option<Next>> {
        loop {
            match self.trace.next_event().map_err(failed)? {
                None => return Ok(None),
                Some(TraceEvent::Record(Record::Heap(Heap::Thread(switch)))) => self.thread = switch.id,
                Some(TraceEvent::Record(Record::Heap(record))) => return Ok(Some(Next::Said(said(&record)))),
                Some(TraceEvent::Comment(_, text)) => {
                    self.comment.clear();
                    self.comment.extend_from_slice(text);
                    return Ok(Some(Next::Comment));
                }
                Some(_) => {}
            }
        }
    }

    fn load_stack(&mut self, offset: u64) -> Result<()> {
        if !self.stacks.contains_key(&offset) {
            let item = self.trace.stacks().get(offset).map_err(failed)?;
            self.stacks.insert(offset, item.frame);
        }
        Ok(())
    }

    fn load_name(&mut self, offset: u64) -> Result<()> {
        if !self.names.contains_key(&offset) {
            let item = self.trace.names().get(offset).map_err(failed)?;
            self.names.insert(offset, item.vfield);
        }
        Ok(())
    }

    /// The event of a record, its stack and name looked up.
    #[inline]
    fn event(&mut self, said: Said) -> Result<Event<'_>> {
        let Said { what, ticks, thread, offsets } = said;
        if offsets.stack != 0 {
            self.load_stack(offsets.stack)?;
        }
        if let Some(name) = offsets.name {
            self.load_name(name)?;
        }
        if let What::Image { .. } = what {
            self.heap += 1;
        }
        let time = ticks.saturating_mul(self.resolution);
        let thread = thread.unwrap_or(self.thread);
        let stack = match offsets.stack {
            0 => &[],
            offset => self.stacks.get(&offset).map_or(&[][..], Vec::as_slice),
        };
        let what = match offsets.name {
            Some(offset) => what.named(self.names.get(&offset).map_or(&[], Vec::as_slice)),
            None => what,
        };
        Ok(Event { what, time, thread, heap: self.heap, stack, attributes: &[] })
    }
}

impl EventSource for HeapReader<'_> {
    #[inline]
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        let next = match self.first.take() {
            Some(first) => first,
            None => self.advance(),
        };
        match next? {
            None => Ok(None),
            Some(Next::Comment) => Ok(Some(Item::Comment(&self.comment))),
            Some(Next::Said(said)) => self.event(said).map(|event| Some(Item::Event(event))),
        }
    }

    /// Events of the commonest records are made where they are read.
    fn pour<T: EventSink + ?Sized>(&mut self, sink: &mut T) -> Result<()> {
        if self.first.is_some() {
            match self.next()? {
                None => return Ok(()),
                Some(Item::Event(event)) => sink.event(&event)?,
                Some(Item::Comment(text)) => sink.comment(text)?,
            }
        }
        loop {
            let record = match self.trace.next_event().map_err(failed)? {
                None => return Ok(()),
                Some(TraceEvent::Record(Record::Heap(record))) => record,
                Some(TraceEvent::Comment(_, text)) => {
                    sink.comment(text)?;
                    continue;
                }
                Some(_) => continue,
            };
            let (thread, heap, resolution) = (self.thread, self.heap, self.resolution);
            let plain = |what, ticks: u64| {
                let time = ticks.saturating_mul(resolution);
                Event { what, time, thread, heap, stack: &[], attributes: &[] }
            };
            match record {
                Heap::Free(Free { time, stack: 0, address }) => sink.event(&plain(What::Free { address }, time))?,
                Heap::Malloc(Malloc { time, stack: 0, size, usable, address }) => {
                    let call = Call { size, usable, address, ..Call::new(Function::Malloc) };
                    sink.event(&plain(What::Call(call), time))?;
                }
                Heap::Realloc(Realloc { time, stack: 0, size, usable, old, address }) => {
                    let call = Call { size, usable, old, address, ..Call::new(Function::Realloc) };
                    sink.event(&plain(What::Call(call), time))?;
                }
                Heap::Thread(switch) => self.thread = switch.id,
                record => sink.event(&self.event(said(&record))?)?,
            }
        }
    }

    fn about(&self) -> About {
        let mut about = About::new();
        for text in self.trace.user_metadata() {
            if let Ok(Value::Object(object)) = serde_json::from_slice(text) {
                about.extend(object);
            }
        }
        about
    }
}

/// What a record says; thread switches are not asked about.
#[inline]
fn said(record: &Heap) -> Said {
    let call = |function, detail, size, usable, old, address| Call { function, detail, size, usable, old, address };
    let at = |what, ticks, stack| Said { what, ticks, thread: None, offsets: Offsets { stack, name: None } };
    let named = |what, ticks, name| Said { what, ticks, thread: None, offsets: Offsets { stack: 0, name: Some(name) } };
    let of = |what, ticks, id| Said { what, ticks, thread: Some(id), offsets: Offsets::default() };
    let allocated = |call: Call, ticks, stack| at(What::Call(call), ticks, stack);
    match record {
        Heap::Malloc(r) => allocated(call(Function::Malloc, 0, r.size, r.usable, 0, r.address), r.time, r.stack),
        Heap::Calloc(r) => allocated(call(Function::Calloc, r.count, r.size, r.usable, 0, r.address), r.time, r.stack),
        Heap::Realloc(r) => allocated(call(Function::Realloc, 0, r.size, r.usable, r.old, r.address), r.time, r.stack),
        Heap::Reallocarray(r) => {
            allocated(call(Function::Reallocarray, r.count, r.size, r.usable, r.old, r.address), r.time, r.stack)
        }
        Heap::Memalign(r) => {
            allocated(call(Function::Memalign, r.alignment, r.size, r.usable, 0, r.address), r.time, r.stack)
        }
        Heap::PosixMemalign(r) => {
            allocated(call(Function::PosixMemalign, r.alignment, r.size, r.usable, 0, r.address), r.time, r.stack)
        }
        Heap::AlignedAlloc(r) => {
            allocated(call(Function::AlignedAlloc, r.alignment, r.size, r.usable, 0, r.address), r.time, r.stack)
        }
        Heap::Valloc(r) => allocated(call(Function::Valloc, 0, r.size, r.usable, 0, r.address), r.time, r.stack),
        Heap::Pvalloc(r) => allocated(call(Function::Pvalloc, 0, r.size, r.usable, 0, r.address), r.time, r.stack),
        Heap::Free(r) => at(What::Free { address: r.address }, r.time, r.stack),
        Heap::ReallocBegin(r) => at(What::ReallocBegin { old: r.old }, r.time, r.stack),
        Heap::ReallocEnd(r) => {
            let function = if r.count == 0 { Function::Realloc } else { Function::Reallocarray };
            at(What::ReallocEnd(call(function, r.count, r.size, r.usable, 0, r.address)), r.time, r.stack)
        }
        Heap::Failed(r) => {
            let index = usize::try_from(r.function.wrapping_sub(4)).unwrap_or(usize::MAX);
            let function = Function::ALL.get(index).copied().unwrap_or(Function::Malloc);
            at(What::Failed(call(function, r.count.max(r.alignment), r.size, 0, r.block, 0)), r.time, r.stack)
        }
        Heap::Thread(r) => of(What::ThreadEnd, 0, r.id),
        Heap::ThreadStart(r) => of(What::ThreadStart { creator: r.creator }, r.time, r.id),
        Heap::ThreadEnd(r) => of(What::ThreadEnd, r.time, r.id),
        Heap::Mark(r) => named(What::Mark { name: &[] }, r.time, r.name),
        Heap::PhaseBegin(r) => named(What::PhaseBegin { name: &[] }, r.time, r.name),
        Heap::PhaseEnd(r) => named(What::PhaseEnd { name: &[] }, r.time, r.name),
        Heap::Image(r) => named(What::Image { process: r.process, path: &[] }, r.time, r.name),
        Heap::Exit(r) => at(What::Exit { status: r.status }, r.time, 0),
        Heap::Killed(r) => at(What::Killed { signal: r.signal }, r.time, 0),
        Heap::Lost(r) => at(What::Lost { events: r.events }, r.time, 0),
    }
}
