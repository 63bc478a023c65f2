//! Reader for `dtds/heap.dtd` traces.

use hashbrown::HashMap;
use metatf::container::Reader;
use metatf::typed::{Event as TraceEvent, TraceOptions, Unmatched};

use super::format::{Free, Heap, Malloc, Protocol, Realloc, Record, Trace};
use super::{Decoded, VERSION, decode, failed};
use crate::event::{Call, Event, EventKind, EventSink, EventSource, Function, Item, Stack, UserMetadata};
use crate::{Error, Result, user_metadata};

/// A reader of a heap trace.
///
/// The [module's example](crate::heap#examples) reads a trace in memory.
pub struct HeapReader<'t> {
    trace: Trace<'t>,
    resolution: u64,
    thread: u64,
    heap: u64,
    tables: Tables,
    comment: Vec<u8>,
    /// The first item, read ahead because the user metadata precedes it.
    first: Option<Result<Option<Next>>>,
}

/// An item of the trace.
enum Next {
    /// A record that represents an event.
    Event(Decoded),
    /// A comment, whose bytes are stored in the reader.
    Comment,
}

/// The stacks and names read so far, by offset.
#[derive(Default)]
struct Tables {
    stacks: HashMap<u64, (u32, Vec<u64>)>,
    /// The total number of frames in these stacks.
    frames: usize,
    /// The number of the stack added last.
    number: u32,
    names: HashMap<u64, Vec<u8>>,
}

/// The values that records share.
#[derive(Clone, Copy)]
struct Context {
    thread: u64,
    heap: u64,
    /// Nanoseconds in a tick.
    resolution: u64,
}

impl<'t> HeapReader<'t> {
    /// Creates a reader for an opened container.
    ///
    /// # Errors
    /// The head of the trace is corrupt, its DTD is not compatible with `heap.dtd`, or it has a later version of the
    /// format.
    pub fn of(container: Reader<'t>) -> Result<Self> {
        let trace = TraceOptions::new().read::<Protocol>(container);
        let trace = trace.map_err(|error| Error::Trace(error.to_string().into()))?;
        let reader = Self::new(Trace::from_opened(trace));
        let format = reader.user_metadata().remove("format").unwrap_or_default();
        let is_heap = format.get("name").is_some_and(|name| name == "heap");
        match format.get("version").filter(|_| is_heap).and_then(serde_json::Value::as_u64) {
            Some(later) if later > VERSION => Err(Error::Trace(
                format!("unsupported heap trace version {later}: this program reads version {VERSION}").into(),
            )),
            _ => Ok(reader),
        }
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
        if let Some(clock) = reader.user_metadata().get("clock").and_then(|clock| clock.get("resolution_ns")) {
            reader.resolution = clock.as_u64().unwrap_or(1).max(1);
        }
        reader
    }

    /// Returns the mismatches between the trace's DTD and this reader; see [`metatf::typed::Trace::unmatched`].
    #[must_use]
    pub fn unmatched(&self) -> Option<&Unmatched> {
        self.trace.unmatched()
    }

    /// Reads the next event record or comment.
    #[inline]
    fn advance(&mut self) -> Result<Option<Next>> {
        loop {
            match self.trace.next_event().map_err(failed)? {
                None => return Ok(None),
                Some(TraceEvent::Record(Record::Heap(Heap::Thread(switch)))) => self.thread = switch.id,
                Some(TraceEvent::Record(Record::Heap(record))) => {
                    if let Some(decoded) = decode(&record) {
                        return Ok(Some(Next::Event(decoded)));
                    }
                }
                Some(TraceEvent::Comment(_, text)) => {
                    self.comment.clear();
                    self.comment.extend_from_slice(text);
                    return Ok(Some(Next::Comment));
                }
                Some(_) => {}
            }
        }
    }

    /// Reads the stack and the name of a record unless they were read before.
    fn load(&mut self, decoded: &Decoded) -> Result<()> {
        let Decoded { stack, name, .. } = *decoded;
        if stack != 0 && !self.tables.stacks.contains_key(&stack) {
            let item = self.trace.stacks().get(stack).map_err(failed)?;
            self.tables.frames += item.frame.len();
            if self.tables.frames > super::MOST_FRAMES {
                self.tables.stacks.clear();
                self.tables.frames = item.frame.len();
            }
            self.tables.number = self.tables.number.saturating_add(1);
            self.tables.stacks.insert(stack, (self.tables.number, item.frame));
        }
        if let Some(name) = name
            && !self.tables.names.contains_key(&name)
        {
            let item = self.trace.names().get(name).map_err(failed)?;
            self.tables.names.insert(name, item.vfield);
        }
        Ok(())
    }

    /// Passes a run of records to a sink.
    fn pour_run<T: EventSink + ?Sized>(&mut self, sink: &mut T) -> std::result::Result<(), Stop> {
        let mut context = self.context();
        let Self { trace, tables, .. } = self;
        let run = trace.try_for_run(|Record::Heap(record)| {
            let plain = |kind, ticks: u64, stack: Stack<'_>, sink: &mut T| {
                let (time, Context { thread, heap, .. }) = (ticks.saturating_mul(context.resolution), context);
                sink.event(&Event { kind, time, thread, heap, stack, attributes: &[] })
            };
            let given = match record {
                Heap::Free(Free { time, stack: 0, address }) => {
                    plain(EventKind::Free { address }, time, Stack::NONE, sink)
                }
                Heap::Malloc(Malloc { time, stack, size, usable, address })
                    if let Some(stack) = tables.stack(stack) =>
                {
                    let call = Call { size, usable, address, ..Call::new(Function::Malloc) };
                    plain(EventKind::Call(call), time, stack, sink)
                }
                Heap::Realloc(Realloc { time, stack, size, usable, old, address })
                    if let Some(stack) = tables.stack(stack) =>
                {
                    let call = Call { size, usable, old, address, ..Call::new(Function::Realloc) };
                    plain(EventKind::Call(call), time, stack, sink)
                }
                Heap::Thread(switch) => {
                    context.thread = switch.id;
                    Ok(())
                }
                record => {
                    let Some(decoded) = decode(&record) else { return Ok(()) };
                    match tables.event(&decoded, context) {
                        Some(event) if !matches!(event.kind, EventKind::Image { .. }) => sink.event(&event),
                        _ => return Err(Stop::Record(decoded)),
                    }
                }
            };
            given.map_err(Stop::Failed)
        });
        self.thread = context.thread;
        run
    }

    fn context(&self) -> Context {
        Context { thread: self.thread, heap: self.heap, resolution: self.resolution }
    }

    /// Returns the event of a record with its stack and name resolved.
    #[inline]
    fn event(&mut self, decoded: Decoded) -> Result<Event<'_>> {
        self.load(&decoded)?;
        if let EventKind::Image { .. } = decoded.kind {
            self.heap += 1;
        }
        let context = self.context();
        let missing = || Error::Trace("a stack or a name of a heap trace was not loaded".into());
        self.tables.event(&decoded, context).ok_or_else(missing)
    }
}

impl Tables {
    /// Returns the stack at an offset, or `None` if it has not been read yet.
    #[inline]
    fn stack(&self, offset: u64) -> Option<Stack<'_>> {
        if offset == 0 {
            return Some(Stack::NONE);
        }
        self.stacks.get(&offset).map(|(number, frames)| Stack::numbered(frames, *number))
    }

    /// Returns the event of a record, or `None` if its stack or its name has not been read yet.
    #[inline]
    fn event(&self, decoded: &Decoded, context: Context) -> Option<Event<'_>> {
        let Decoded { kind, ticks, thread, stack, name } = *decoded;
        let stack = self.stack(stack)?;
        let kind = match name {
            Some(offset) => kind.named(self.names.get(&offset)?),
            None => kind,
        };
        let nanoseconds = |ticks: u64| ticks.saturating_mul(context.resolution);
        let kind = match kind {
            EventKind::LastAccess { address, last } => EventKind::LastAccess { address, last: nanoseconds(last) },
            kind => kind,
        };
        let (time, thread) = (nanoseconds(ticks), thread.unwrap_or(context.thread));
        Some(Event { kind, time, thread, heap: context.heap, stack, attributes: &[] })
    }
}

/// The reason why a run of records stops early.
enum Stop {
    /// This record needs a lookup in the trace's tables or begins a heap.
    Record(Decoded),
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
            Some(Next::Event(decoded)) => self.event(decoded).map(|event| Some(Item::Event(event))),
        }
    }

    /// Converts the most frequent records to events during decoding.
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
                Err(Stop::Record(decoded)) => {
                    sink.event(&self.event(decoded)?)?;
                    continue;
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
            match self.advance()? {
                None => return Ok(()),
                Some(Next::Comment) => sink.comment(&self.comment)?,
                Some(Next::Event(decoded)) => sink.event(&self.event(decoded)?)?,
            }
        }
    }

    fn resolution(&self) -> u64 {
        self.resolution
    }

    fn user_metadata(&self) -> UserMetadata {
        user_metadata::read(self.trace.user_metadata())
    }
}
