//! Writer for `dtds/heap.dtd` traces.

use hashbrown::HashMap;
use metatf::Change;
use metatf::container::{FlushEvery, Sink, WriteOptions};
use metatf::format::Interpretation;
use serde_json::{Value, json};

use super::failed;
use super::format::{
    Accesses, AlignedAlloc, Brk, Calloc, Enter, Exit, Failed, Free, Image, Killed, LastAccess, Leave, Lost, Madvise,
    Malloc, Mark, Memalign, Mmap, ModuleLoad, ModuleUnload, Mremap, Munmap, PhaseBegin, PhaseEnd, PosixMemalign,
    Processor, Pvalloc, Realloc, ReallocBegin, ReallocEnd, Reallocarray, Recording, Rss, Source, Symbol, Thread,
    ThreadEnd, ThreadName, ThreadStart, Untouched, Valloc, Writer,
};
use crate::Result;
use crate::event::{
    self, Call, Event, EventKind, EventSink, Function, Pages, Resident, Stack, UNKNOWN_SIZE, UserMetadata,
};
use crate::loss::{Loss, Losses};
use crate::user_metadata;

/// The number of section `heap`.
const SECTION: u8 = 1;
/// The number of section `times`.
const TIMES: u8 = 4;

/// Options for writing a heap trace.
///
/// # Examples
///
/// A resolution of 0 omits times, which the writer counts as a loss:
///
/// ```
/// use hatf_trace::heap::{HeapOptions, HeapWriter};
/// use hatf_trace::loss::Loss;
/// use hatf_trace::{Event, EventSink};
///
/// let options = HeapOptions { resolution: 0, ..HeapOptions::default() };
/// let mut writer = HeapWriter::new(Vec::new(), &options)?;
/// writer.event(&Event { time: 5_000, ..Event::malloc(0x1000, 24) })?;
/// assert_eq!(writer.finish()?.iter().collect::<Vec<_>>(), [(Loss::Time, 1)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HeapOptions {
    /// Container, codec and other options. Groups end after `group_records` records, not at a certain size.
    pub write: WriteOptions,
    /// The approximate number of records in a group.
    pub group_records: u64,
    /// Nanoseconds in a tick of the trace's clock, or 0 to omit times.
    pub resolution: u64,
    /// Whether metadata at the start of the trace selects verbatim storage of addresses and times. Such a trace is
    /// cheaper to write, because no heap model runs, but larger.
    pub plain: bool,
}

/// The default number of records in a group.
pub const GROUP_RECORDS: u64 = 1_000_000;

impl Default for HeapOptions {
    fn default() -> Self {
        Self { write: WriteOptions::default(), group_records: GROUP_RECORDS, resolution: 1, plain: false }
    }
}

/// A writer of heap traces. It boxes its sink, which receives complete chunks, so that the code exists once for all
/// sink types.
///
/// The [module's example](crate::heap#examples) writes a trace to memory.
pub struct HeapWriter<'w> {
    writer: Writer<Box<dyn Sink + 'w>>,
    /// The thread of the current records; if `None`, a `thread` record must precede the next record.
    thread: Option<u64>,
    resolution: u64,
    /// Whether times are stored because one of them was not 0.
    timed: bool,
    /// Whether all addresses are 0 and occupy no bytes.
    without_addresses: bool,
    /// Offsets in section `stacks` of the stacks written so far.
    stacks: HashMap<Vec<u64>, u64>,
    /// The same offsets by the source's stack numbers, from 1.
    numbered: HashMap<u32, u64>,
    frames: usize,
    heap: u64,
    group_records: u64,
    in_group: u64,
    losses: Losses,
}

impl<'w> HeapWriter<'w> {
    /// Starts a trace.
    ///
    /// # Errors
    /// The sink failed.
    pub fn new(sink: impl Sink + 'w, options: &HeapOptions) -> Result<Self> {
        let sink: Box<dyn Sink + 'w> = Box::new(sink);
        // Each group is flushed, and groups end between records of one thread.
        let write = options.write.clone().flush_every(FlushEvery::NEVER);
        let mut writer = Writer::with_options(sink, &write).map_err(failed)?;
        // Offset 0 is the unknown stack.
        writer.stacks().push(super::format::StackItem::default()).map_err(failed)?;
        if options.plain {
            store_plainly(&mut writer, options.resolution != 0).map_err(failed)?;
        }
        Ok(Self {
            writer,
            thread: None,
            resolution: options.resolution,
            timed: options.plain,
            without_addresses: false,
            stacks: HashMap::new(),
            numbered: HashMap::new(),
            frames: 0,
            heap: 0,
            group_records: options.group_records.max(1),
            in_group: 0,
            losses: Losses::default(),
        })
    }

    /// Finishes the trace. Returns counts of the event data that it could not store.
    ///
    /// # Errors
    /// The sink failed.
    pub fn finish(self) -> Result<Losses> {
        self.writer.finish().map_err(failed)?;
        Ok(self.losses)
    }

    /// Abandons the trace without the warning about a dropped writer. The sink contains an incomplete trace.
    pub fn abandon(self) {
        self.writer.abandon();
    }

    /// Converts a time to ticks. Times are stored from the first nonzero one on.
    #[inline]
    fn time(&mut self, time: u64) -> Result<u64> {
        if time == 0 {
            return Ok(0);
        }
        if self.resolution == 1 && self.timed {
            return Ok(time);
        }
        self.ticks(time)
    }

    #[inline(never)]
    fn ticks(&mut self, time: u64) -> Result<u64> {
        let ticks = match self.resolution {
            1 => time,
            0 => {
                self.losses.note(Loss::Time);
                return Ok(0);
            }
            resolution => {
                self.losses.note_if(!time.is_multiple_of(resolution), Loss::Rounding);
                time / resolution
            }
        };
        if !self.timed {
            self.timed = true;
            let change = Change::Interpretation(Interpretation::SectionStride(TIMES, 1));
            self.writer.set_all("heap", "malloc", "time", change).map_err(failed)?;
        }
        Ok(ticks)
    }

    #[inline]
    fn stack(&mut self, stack: Stack<'_>) -> Result<u64> {
        if stack.is_empty() {
            return Ok(0);
        }
        self.known_stack(stack)
    }

    #[inline(never)]
    fn known_stack(&mut self, stack: Stack<'_>) -> Result<u64> {
        if let Some(&offset) = self.numbered.get(&stack.number()) {
            return Ok(offset);
        }
        let offset = match self.stacks.get(stack.frames()) {
            Some(&offset) => offset,
            None => self.new_stack(stack.frames())?,
        };
        if stack.number() > 0 {
            self.numbered.insert(stack.number(), offset);
        }
        Ok(offset)
    }

    /// Writes a stack that is not in the table of written stacks.
    #[cold]
    fn new_stack(&mut self, frames: &[u64]) -> Result<u64> {
        let item = super::format::StackItem { frame: frames.to_vec() };
        let offset = self.writer.stacks().push(item).map_err(failed)?;
        self.frames += frames.len();
        if self.frames > super::MOST_FRAMES {
            self.stacks.clear();
            self.numbered.clear();
            self.frames = frames.len();
        }
        self.stacks.insert(frames.to_vec(), offset);
        Ok(offset)
    }

    #[inline(never)]
    fn note_losses(&mut self, event: &Event<'_>) {
        self.losses.note_if(!event.attributes.is_empty(), Loss::Attributes);
        // An image event has another heap number because it begins a heap, so this is not a loss.
        let has_heap = !names_its_thread(&event.kind) && !matches!(event.kind, EventKind::Image { .. });
        self.losses.note_if(has_heap && event.heap != self.heap, Loss::Heap);
    }

    fn name(&mut self, name: &[u8]) -> Result<u64> {
        self.writer.names().intern(name).map_err(failed)
    }

    /// Prepares for a record: ends a full group, and sets the thread of the following records.
    #[inline]
    fn prepare(&mut self, event: &Event<'_>) -> Result<()> {
        if self.in_group >= self.group_records || self.thread != Some(event.thread) {
            self.begin(event)?;
        }
        self.in_group += 1;
        Ok(())
    }

    #[inline(never)]
    fn begin(&mut self, event: &Event<'_>) -> Result<()> {
        if self.in_group >= self.group_records {
            self.end_group()?;
        }
        let id = event.thread;
        if self.thread != Some(id) && !names_its_thread(&event.kind) {
            self.thread = Some(id);
            self.writer.thread(&Thread { id }).map_err(failed)?;
        }
        Ok(())
    }

    /// Writes the current group and flushes it to the sink, so that its records are safe.
    #[cold]
    fn end_group(&mut self) -> Result<()> {
        self.in_group = 0;
        self.thread = None;
        self.writer.inner().start_group().map_err(failed)?;
        self.writer.inner().flush().map_err(failed)
    }

    #[inline(never)]
    fn call(&mut self, call: &Call, time: u64, stack: u64) -> Result<()> {
        let Call { function, detail, mut size, usable, old, address } = *call;
        if size == UNKNOWN_SIZE && old != 0 {
            self.losses.note(Loss::Size);
            size = 0;
        }
        let (count, alignment) = (detail, detail);
        let writer = &mut self.writer;
        match function {
            Function::Malloc => writer.malloc(&Malloc { time, stack, size, usable, address }),
            Function::Calloc => writer.calloc(&Calloc { time, stack, count, size, usable, address }),
            Function::Realloc => writer.realloc(&Realloc { time, stack, size, usable, old, address }),
            Function::Reallocarray => {
                writer.reallocarray(&Reallocarray { time, stack, count, size, usable, old, address })
            }
            Function::Memalign => writer.memalign(&Memalign { time, stack, alignment, size, usable, address }),
            Function::PosixMemalign => {
                writer.posix_memalign(&PosixMemalign { time, stack, alignment, size, usable, address })
            }
            Function::AlignedAlloc => {
                writer.aligned_alloc(&AlignedAlloc { time, stack, alignment, size, usable, address })
            }
            Function::Valloc => writer.valloc(&Valloc { time, stack, size, usable, address }),
            Function::Pvalloc => writer.pvalloc(&Pvalloc { time, stack, size, usable, address }),
        }
        .map_err(failed)
    }

    /// Writes records of the rare kinds.
    #[cold]
    fn rare(&mut self, event: &Event<'_>, time: u64, stack: u64) -> Result<()> {
        let id = event.thread;
        let name = match event.kind {
            EventKind::Mark { name }
            | EventKind::PhaseBegin { name }
            | EventKind::PhaseEnd { name }
            | EventKind::ThreadName { name }
            | EventKind::ModuleLoad { name, .. }
            | EventKind::Symbol { name, .. } => self.name(name)?,
            EventKind::Image { path, .. } | EventKind::Source { path } => self.name(path)?,
            _ => 0,
        };
        let last = match event.kind {
            EventKind::LastAccess { .. } if self.resolution == 0 => {
                self.losses.note(Loss::Accesses);
                return Ok(());
            }
            EventKind::LastAccess { last: last @ 1.., .. } => (last / self.resolution).max(1),
            _ => 0,
        };
        let writer = &mut self.writer;
        match event.kind {
            EventKind::Call(_) | EventKind::Free { .. } => Ok(()),
            EventKind::ReallocBegin { old } => writer.realloc_begin(&ReallocBegin { time, stack, old }),
            EventKind::ReallocEnd(Call { detail: count, size, usable, address, .. }) => {
                writer.realloc_end(&ReallocEnd { time, stack, count, size, usable, address })
            }
            EventKind::Failed(Call { function, detail, size, old: block, .. }) => {
                let count = if function.counts() { detail } else { 0 };
                let alignment = if function.aligns() { detail } else { 0 };
                let function = tag(function);
                writer.failed(&Failed { time, stack, function, count, alignment, size, block })
            }
            EventKind::CreateHeap | EventKind::DestroyHeap => {
                self.losses.note(Loss::Heaps);
                Ok(())
            }
            EventKind::ThreadStart { creator, task } => writer.thread_start(&ThreadStart { time, id, creator, task }),
            EventKind::ThreadEnd => writer.thread_end(&ThreadEnd { time, id }),
            EventKind::ThreadName { .. } => writer.thread_name(&ThreadName { time, id, name }),
            EventKind::Pages(Pages::Map { start, length, protection, flags }) => {
                writer.mmap(&Mmap { time, stack, start, length, protection, flags })
            }
            EventKind::Pages(Pages::Unmap { start, length }) => writer.munmap(&Munmap { time, stack, start, length }),
            EventKind::Pages(Pages::Remap { from, from_length, start, length }) => {
                writer.mremap(&Mremap { time, stack, from, from_length, start, length })
            }
            EventKind::Pages(Pages::Break { end }) => writer.brk(&Brk { time, stack, end }),
            EventKind::Pages(Pages::Advise { start, length, advice }) => {
                writer.madvise(&Madvise { time, stack, start, length, advice })
            }
            EventKind::Resident(Resident { resident, shared, data, mapped }) => {
                writer.rss(&Rss { time, resident, shared, data, mapped })
            }
            EventKind::Mark { .. } => writer.mark(&Mark { time, name }),
            EventKind::PhaseBegin { .. } => writer.phase_begin(&PhaseBegin { time, name }),
            EventKind::PhaseEnd { .. } => writer.phase_end(&PhaseEnd { time, name }),
            EventKind::Image { process, .. } => {
                self.heap += 1;
                self.losses.note_if(event.heap != self.heap, Loss::Heap);
                writer.image(&Image { time, process, name })
            }
            EventKind::Exit { status } => writer.exit(&Exit { time, status }),
            EventKind::Killed { signal } => writer.killed(&Killed { time, signal }),
            EventKind::ModuleLoad { bias, start, end, .. } => {
                writer.module_load(&ModuleLoad { time, bias, start, end, name })
            }
            EventKind::ModuleUnload { start } => writer.module_unload(&ModuleUnload { time, start }),
            EventKind::Source { .. } => writer.source(&Source { name }),
            EventKind::Symbol { frame, line, .. } => writer.symbol(&Symbol { frame, line, name }),
            EventKind::Lost { events } => writer.lost(&Lost { time, events }),
            EventKind::Accesses(accesses) => {
                let event::Accesses { address, loads, stores, touched, granules, reached } = accesses;
                writer.accesses(&Accesses { time, address, loads, stores, touched, granules, reached: reached.into() })
            }
            EventKind::LastAccess { address, .. } => writer.last_access(&LastAccess { time, address, last }),
            EventKind::Untouched { address, bytes } => writer.untouched(&Untouched { time, address, bytes }),
            EventKind::Enter { function } => writer.enter(&Enter { time, function }),
            EventKind::Leave => writer.leave(&Leave { time }),
            EventKind::Processor { cpu } => writer.processor(&Processor { time, cpu }),
            EventKind::Recording { on } => writer.recording(&Recording { time, on: on.into() }),
        }
        .map_err(failed)
    }
}

/// Switches to verbatim storage of addresses and, if the trace has times, of times. Both encodings widen when
/// necessary.
fn store_plainly(writer: &mut Writer<Box<dyn Sink + '_>>, timed: bool) -> metatf::Result<()> {
    let time = timed.then_some(("free", "time", 4));
    let addresses = [("free", "address", 6), ("realloc", "old", 6), ("failed", "block", 6)];
    for (record, field, width) in time.into_iter().chain(addresses) {
        writer.set_all("heap", record, field, Change::Width(width))?;
        writer.set_all("heap", record, field, Change::Interpretation(Interpretation::None))?;
    }
    Ok(())
}

/// Makes addresses occupy no bytes as long as they are 0.
fn leave_out_addresses(writer: &mut Writer<Box<dyn Sink + '_>>) -> metatf::Result<()> {
    for (record, field) in [("malloc", "address"), ("realloc", "old")] {
        writer.set_all("heap", record, field, Change::Interpretation(Interpretation::Default(0)))?;
    }
    Ok(())
}

/// Returns whether the event's record identifies the thread, as records for the start, end and name of a thread do.
fn names_its_thread(kind: &EventKind<'_>) -> bool {
    matches!(kind, EventKind::ThreadStart { .. } | EventKind::ThreadEnd | EventKind::ThreadName { .. })
}

/// Returns the tag of a function's record.
fn tag(function: Function) -> u64 {
    4 + function as u64
}

impl EventSink for HeapWriter<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.prepare(event)?;
        let time = self.time(event.time)?;
        let stack = self.stack(event.stack)?;
        if !event.attributes.is_empty() || event.heap != self.heap {
            self.note_losses(event);
        }
        match event.kind {
            // About half of all events are calls to `malloc`.
            EventKind::Call(Call { function: Function::Malloc, size, usable, address, .. }) => {
                self.writer.malloc(&Malloc { time, stack, size, usable, address }).map_err(failed)
            }
            EventKind::Free { address } => self.writer.free(&Free { time, stack, address }).map_err(failed),
            EventKind::Call(ref call) => self.call(call, time, stack),
            _ => self.rare(event, time, stack),
        }
    }

    fn flush(&mut self) -> Result<()> {
        if self.in_group == 0 { Ok(()) } else { self.end_group() }
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.writer.comment(SECTION, text).map_err(failed)
    }

    /// Writes user metadata, with the format and clock replaced by this writer's own.
    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        if user_metadata::has_sizes_only(user_metadata) && !std::mem::replace(&mut self.without_addresses, true) {
            leave_out_addresses(&mut self.writer).map_err(failed)?;
        }
        let mut user_metadata = user_metadata.clone();
        user_metadata.insert("format".to_owned(), json!({"name": "heap", "version": super::VERSION}));
        let clock = user_metadata.entry("clock").or_insert_with(|| json!({}));
        match (clock, self.resolution) {
            (clock, 0) => *clock = Value::Null,
            (Value::Object(clock), resolution) => drop(clock.insert("resolution_ns".to_owned(), resolution.into())),
            (clock, resolution) => *clock = json!({"resolution_ns": resolution}),
        }
        self.writer.user_metadata(&Value::Object(user_metadata).to_string()).map_err(failed)
    }
}
