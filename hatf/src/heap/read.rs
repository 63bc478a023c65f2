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
    tables: Tables,
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

/// The stacks and names that were met, by offset.
#[derive(Default)]
struct Tables {
    stacks: HashMap<u64, Vec<u64>>,
    names: HashMap<u64, Vec<u8>>,
}

/// What holds for records that do not say otherwise.
#[derive(Clone, Copy)]
struct Now {
    thread: u64,
    heap: u64,
    /// Nanoseconds in a tick.
    resolution: u64,
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
            tables: Tables::default(),
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

    fn load(&mut self, offsets: Offsets) -> Result<()> {
        let Offsets { stack, name } = offsets;
        if stack != 0 && !self.tables.stacks.contains_key(&stack) {
            let item = self.trace.stacks().get(stack).map_err(failed)?;
            self.tables.stacks.insert(stack, item.frame);
        }
        if let Some(name) = name
            && !self.tables.names.contains_key(&name)
        {
            let item = self.trace.names().get(name).map_err(failed)?;
            self.tables.names.insert(name, item.vfield);
        }
        Ok(())
    }

    /// Gives a run of records to a sink.
    fn pour_run<T: EventSink + ?Sized>(&mut self, sink: &mut T) -> std::result::Result<(), Stop> {
        let mut now = self.now();
        let Self { trace, tables, .. } = self;
        let run = trace.try_for_run(|Record::Heap(record)| {
            let plain = |what, ticks: u64| {
                let (time, Now { thread, heap, .. }) = (ticks.saturating_mul(now.resolution), now);
                Event { what, time, thread, heap, stack: &[], attributes: &[] }
            };
            let given = match record {
                Heap::Free(Free { time, stack: 0, address }) => sink.event(&plain(What::Free { address }, time)),
                Heap::Malloc(Malloc { time, stack: 0, size, usable, address }) => {
                    let call = Call { size, usable, address, ..Call::new(Function::Malloc) };
                    sink.event(&plain(What::Call(call), time))
                }
                Heap::Realloc(Realloc { time, stack: 0, size, usable, old, address }) => {
                    let call = Call { size, usable, old, address, ..Call::new(Function::Realloc) };
                    sink.event(&plain(What::Call(call), time))
                }
                Heap::Thread(switch) => {
                    now.thread = switch.id;
                    Ok(())
                }
                record => {
                    let said = said(&record);
                    match tables.event(&said, now) {
                        Some(event) if !matches!(event.what, What::Image { .. }) => sink.event(&event),
                        _ => return Err(Stop::Record(said)),
                    }
                }
            };
            given.map_err(Stop::Failed)
        });
        self.thread = now.thread;
        run
    }

    fn now(&self) -> Now {
        Now { thread: self.thread, heap: self.heap, resolution: self.resolution }
    }

    /// The event of a record, its stack and name looked up.
    #[inline]
    fn event(&mut self, said: Said) -> Result<Event<'_>> {
        self.load(said.offsets)?;
        if let What::Image { .. } = said.what {
            self.heap += 1;
        }
        let now = self.now();
        let missing = || Error::Trace("a stack or a name of a heap trace was not looked up".into());
        self.tables.event(&said, now).ok_or_else(missing)
    }
}

impl Tables {
    /// The event of a record; `None` where its stack or its name is not here.
    #[inline]
    fn event(&self, said: &Said, now: Now) -> Option<Event<'_>> {
        let Said { what, ticks, thread, offsets } = *said;
        let stack = match offsets.stack {
            0 => &[],
            offset => self.stacks.get(&offset)?.as_slice(),
        };
        let what = match offsets.name {
            Some(offset) => what.named(self.names.get(&offset)?),
            None => what,
        };
        let (time, thread) = (ticks.saturating_mul(now.resolution), thread.unwrap_or(now.thread));
        Some(Event { what, time, thread, heap: now.heap, stack, attributes: &[] })
    }
}

/// Why a run of records ends before its end.
enum Stop {
    /// For this record, which needs a look at the trace's tables, or begins a heap.
    Record(Said),
    Failed(Error),
}

impl From<metatf::Error> for Stop {
    fn from(error: metatf::Error) -> Self {
        Self::Failed(failed(error))
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
            match self.pour_run(sink) {
                Ok(()) => {}
                Err(Stop::Record(said)) => {
                    sink.event(&self.event(said)?)?;
                    continue;
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
            match self.advance()? {
                None => return Ok(()),
                Some(Next::Comment) => sink.comment(&self.comment)?,
                Some(Next::Said(said)) => sink.event(&self.event(said)?)?,
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
