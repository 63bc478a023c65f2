//! Compiles a trace into operations in a file, so that a replay does not include the time for reading the trace.
//!
//! The compiler tracks live blocks itself instead of using `hatf_lab::Objects`, because it also needs a slot for each
//! block and a turn number for each operation on that slot. It repairs or rejects invalid calls, whereas the laboratory
//! counts them.
//!
//! The file is long because one pass handles live blocks, threads, turns and repairs, and each event affects most of
//! them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use hatf_lab::history::Curve;
use hatf_lab::{AddressMap, ends_are_not_known};
use serde::{Deserialize, Serialize};

use super::operation::{BLOCK, Kind, MOST, Operation};
use hatf_trace::event::{Call, Event, EventKind, EventSink, Function, UNKNOWN_SIZE, UserMetadata, has_sizes_only};
use hatf_trace::{Error, Result};

/// The part of a trace to replay, and options for the replay.
///
/// # Examples
///
/// ```
/// use hatf_host::replay::{Compiler, Cut};
/// use hatf_trace::{Event, EventSink};
///
/// let mut compiler = Compiler::new(Cut { from: Some(3), ..Cut::default() })?;
/// for event in [Event::malloc(16, 24), Event::malloc(64, 40), Event::free(16)] {
///     compiler.event(&event)?;
/// }
/// let summary = compiler.finish()?.summary;
/// // Both blocks are set up before the replay, which consists of the free.
/// assert_eq!((summary.set_up, summary.operations, summary.live_bytes_at_end), (2, 1, 40));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cut {
    /// The first event, numbered from 1. Blocks that are live at this event are set up before the replay begins.
    pub from: Option<u64>,
    /// The last event.
    pub to: Option<u64>,
    /// Whether to replay all events on one thread, in trace order.
    pub one_thread: bool,
    /// A factor for the program's waiting times, or `None` to replay without waiting.
    pub think: Option<f64>,
    /// Whether to repair and count calls that no correct program makes, instead of failing.
    pub repair: bool,
}

/// Counts of repaired and omitted calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repairs {
    /// Frees of blocks that were not live; they are omitted.
    pub unknown_frees: u64,
    /// Reallocations of blocks that were not live; they become allocations.
    pub unknown_reallocs: u64,
    /// Allocations at the address of a live block, which is freed first.
    pub addresses_twice: u64,
    /// Calls without a size, for which 0 bytes or the size of the old block is used.
    pub unknown_sizes: u64,
}

/// A trace compiled into operations.
#[derive(Debug)]
pub struct Operations {
    /// The unnamed file.
    file: File,
    /// A summary of the file.
    pub summary: Summary,
}

impl Operations {
    /// Returns a path through which other processes can open the file while this process has it open.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }
}

/// The blocks of operations of each thread. Each pair consists of the number of the first operation and the number of
/// operations.
pub(super) type Blocks = Vec<Vec<(u64, u64)>>;

/// A summary of an operations file. It is stored as JSON after the operations, together with the list of blocks of
/// operations, for the worker.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The number of replayed calls.
    pub operations: u64,
    /// The number of blocks that are set up before the replay begins.
    pub set_up: u64,
    /// The maximum number of live blocks.
    pub most_live: u64,
    /// The maximum number of live bytes.
    pub most_live_bytes: u64,
    /// The number of live bytes at the end.
    pub live_bytes_at_end: u64,
    /// The number of calls that failed in the program and are not replayed.
    pub failed: u64,
    /// The number of blocks that ended with their heap or because of an `exec`. The replay frees them at that point.
    pub ended_with_heap: u64,
    /// The number of events lost during recording.
    pub lost: u64,
    /// Counts of repairs.
    pub repairs: Repairs,
    /// The names of phases that ended.
    pub phases: Vec<String>,
    /// The number of operations per step of `live_bytes`.
    pub step: u64,
    /// The maximum number of live bytes in each step.
    pub live_bytes: Vec<u64>,
    /// The number of threads.
    pub threads: u64,
}

/// A live block of the program.
#[derive(Clone, Copy)]
struct LiveBlock {
    number: u64,
    slot: u32,
    size: u64,
    alignment: u8,
    heap: u64,
}

/// The operations of a thread.
#[derive(Default)]
struct Stream {
    waiting: Vec<[u64; 2]>,
    blocks: Vec<(u64, u64)>,
}

/// An [`EventSink`] that compiles events into operations. The [module documentation](super) contains an example.
pub struct Compiler {
    cut: Cut,
    out: BufWriter<File>,
    written: u64,
    streams: Vec<Stream>,
    /// Stream indices by the trace's thread numbers.
    threads: HashMap<u64, usize>,
    /// The stream of the last event.
    last: usize,
    live: AddressMap<LiveBlock>,
    /// Blocks passed to a realloc that has not returned yet, by thread.
    moving: HashMap<u64, LiveBlock>,
    turns: Vec<u32>,
    spare: Vec<u32>,
    allocated: u64,
    live_bytes: u64,
    curve: Curve<1>,
    events: u64,
    /// The time at which the replayed part began.
    began: Option<u64>,
    ended: bool,
    summary: Summary,
}

impl Compiler {
    /// Creates a compiler that writes operations to an unnamed temporary file.
    ///
    /// # Errors
    /// Returns an error if the file could not be created, or the cut contains no events.
    pub fn new(cut: Cut) -> Result<Self> {
        if let (Some(from), Some(to)) = (cut.from, cut.to)
            && from > to
        {
            return Err(Error::Usage(format!("invalid range of records: {from} is greater than {to}")));
        }
        let file = tempfile::tempfile().map_err(Error::temporary_file())?;
        Ok(Self {
            cut,
            out: BufWriter::with_capacity(1 << 18, file),
            written: 0,
            streams: vec![Stream::default()],
            threads: HashMap::new(),
            last: 0,
            live: AddressMap::default(),
            moving: HashMap::new(),
            turns: Vec::new(),
            spare: Vec::new(),
            allocated: 0,
            live_bytes: 0,
            curve: Curve::default(),
            events: 0,
            began: None,
            ended: false,
            summary: Summary::default(),
        })
    }

    /// Completes the file.
    ///
    /// # Errors
    /// Returns an error if the file could not be written, or there is nothing to replay.
    pub fn finish(mut self) -> Result<Operations> {
        if self.began.is_none() {
            let events = self.events;
            return Err(Error::Usage(match self.cut.from {
                Some(from) => format!("record {from} does not exist: the trace has only {events} records"),
                None => "the trace has no records to replay".to_owned(),
            }));
        }
        for stream in 0..self.streams.len() {
            self.write_block(stream)?;
        }
        self.summary.live_bytes_at_end = self.live_bytes;
        let curve = self.curve.curves(["live"]);
        self.summary.step = curve.step;
        self.summary.live_bytes = curve.lines.into_iter().next().map(|line| line.most).unwrap_or_default();
        self.summary.most_live = self.turns.len() as u64;
        self.summary.threads = self.streams.len() as u64;
        let blocks: Blocks = self.streams.into_iter().map(|stream| stream.blocks).collect();
        let failed = Error::temporary_file;
        let summary = serde_json::to_vec(&(&self.summary, blocks)).map_err(|error| Error::Trace(error.into()))?;
        self.out.write_all(&summary).map_err(failed())?;
        self.out.write_all(&(summary.len() as u64).to_le_bytes()).map_err(failed())?;
        let file = self.out.into_inner().map_err(|error| failed()(error.into_error()))?;
        Ok(Operations { file, summary: self.summary })
    }

    fn write_block(&mut self, stream: usize) -> Result<()> {
        let Some(Stream { waiting, blocks }) = self.streams.get_mut(stream) else { return Ok(()) };
        if waiting.is_empty() {
            return Ok(());
        }
        for word in waiting.as_flattened() {
            self.out.write_all(&word.to_le_bytes()).map_err(Error::temporary_file())?;
        }
        let count = waiting.len() as u64;
        blocks.push((self.written, count));
        self.written += count;
        waiting.clear();
        Ok(())
    }

    #[inline]
    fn put(&mut self, stream: usize, operation: Operation) -> Result<()> {
        let Some(Stream { waiting, .. }) = self.streams.get_mut(stream) else { return Ok(()) };
        waiting.push(operation.to_words());
        if waiting.len() == BLOCK { self.write_block(stream) } else { Ok(()) }
    }

    /// Returns the stream of a thread. A new thread is started by the thread of the last event.
    #[inline]
    fn stream(&mut self, thread: u64) -> Result<usize> {
        if self.cut.one_thread {
            return Ok(0);
        }
        if let Some(stream) = self.threads.get(&thread) {
            self.last = *stream;
            return Ok(*stream);
        }
        let mut stream = 0;
        if !self.threads.is_empty() {
            stream = self.streams.len();
            let number = u32::try_from(stream).map_err(|_| limit("2^32 threads"))?;
            self.streams.push(Stream::default());
            self.put(self.last, Operation { slot: number, ..Operation::new(Kind::Start) })?;
        }
        self.threads.insert(thread, stream);
        self.last = stream;
        Ok(stream)
    }

    /// Returns whether the current event is replayed. Events before the replayed part only determine which blocks are
    /// live.
    fn replays(&self) -> bool {
        self.began.is_some()
    }

    /// Sets up the live blocks and begins the replay.
    fn begin(&mut self, time: u64) -> Result<()> {
        let mut blocks: Vec<LiveBlock> = self.live.values().chain(self.moving.values()).copied().collect();
        blocks.sort_unstable_by_key(|block| block.number);
        self.summary.set_up = blocks.len() as u64;
        for LiveBlock { slot, size, alignment, .. } in blocks {
            let kind = if alignment == 0 { Kind::Malloc } else { Kind::Aligned };
            let turn = self.turn(slot);
            self.put(0, Operation { kind, alignment, size, slot, turn })?;
        }
        self.began = Some(time);
        self.put(0, Operation::new(Kind::Begin))
    }

    /// Takes the next turn of a slot.
    fn turn(&mut self, slot: u32) -> u32 {
        let Some(turn) = self.turns.get_mut(slot as usize) else { return 0 };
        let now = *turn;
        *turn = turn.wrapping_add(1);
        now
    }

    /// Appends an operation on a slot to the stream of the event's thread.
    fn operate(&mut self, event: &Event<'_>, operation: Operation) -> Result<()> {
        if !self.replays() {
            return Ok(());
        }
        let stream = self.stream(event.thread)?;
        if let (Some(factor), Some(began)) = (self.cut.think, self.began) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "nonnegative nanoseconds")]
            let size = ((event.time.saturating_sub(began) as f64 * factor) as u64).min(MOST);
            self.put(stream, Operation { size, ..Operation::new(Kind::Wait) })?;
        }
        let turn = self.turn(operation.slot);
        self.put(stream, Operation { turn, ..operation })?;
        self.summary.operations += 1;
        self.curve.note([self.live_bytes]);
        Ok(())
    }

    fn end(&mut self, event: &Event<'_>, block: LiveBlock) -> Result<()> {
        self.live_bytes = self.live_bytes.saturating_sub(block.size);
        let LiveBlock { slot, size, .. } = block;
        self.operate(event, Operation { slot, size, ..Operation::new(Kind::Free) })?;
        self.spare.push(slot);
        Ok(())
    }

    fn free(&mut self, event: &Event<'_>, address: u64) -> Result<()> {
        match self.live.remove(&address) {
            Some(block) => self.end(event, block),
            None if address == 0 => Ok(()),
            None => {
                self.summary.repairs.unknown_frees += 1;
                self.odd(|| format!("free of 0x{address:x}, which is not live"))
            }
        }
    }

    /// Returns an error for a call that no correct program makes, unless such calls are repaired.
    fn odd(&self, what: impl FnOnce() -> String) -> Result<()> {
        if self.cut.repair {
            return Ok(());
        }
        let event = self.events;
        Err(Error::Trace(format!("event {event}: {}; to replay the trace anyway, use --repair", what()).into()))
    }

    /// Handles an allocation. `old` is the block passed to a realloc.
    fn allocate(&mut self, event: &Event<'_>, call: &Call, old: Option<LiveBlock>) -> Result<()> {
        let mut size = call.size;
        if size == UNKNOWN_SIZE {
            size = old.map_or(0, |old| old.size);
            if old.is_none() {
                self.summary.repairs.unknown_sizes += 1;
                self.odd(|| format!("{} of unknown size", call.function.name()))?;
            }
        }
        if size > MOST {
            return Err(limit("2^48 bytes in a block"));
        }
        if let Some(there) = self.live.remove(&call.address) {
            self.summary.repairs.addresses_twice += 1;
            self.odd(|| format!("{} returns 0x{:x}, which is already live", call.function.name(), call.address))?;
            self.end(event, there)?;
        }
        let alignment = alignment(call);
        let slot = match (old, self.spare.pop()) {
            (Some(old), spare) => {
                self.spare.extend(spare);
                old.slot
            }
            (None, Some(spare)) => spare,
            (None, None) => {
                let slot = u32::try_from(self.turns.len()).map_err(|_| limit("2^32 live blocks"))?;
                self.turns.push(0);
                slot
            }
        };
        self.live_bytes = self.live_bytes.saturating_sub(old.map_or(0, |old| old.size)).saturating_add(size);
        self.summary.most_live_bytes = self.summary.most_live_bytes.max(self.live_bytes);
        self.allocated += 1;
        self.live.insert(call.address, LiveBlock { number: self.allocated, slot, size, alignment, heap: event.heap });
        let kind = match call.function {
            _ if old.is_some() => Kind::Realloc,
            Function::Calloc => Kind::Calloc,
            _ if alignment > 0 => Kind::Aligned,
            _ => Kind::Malloc,
        };
        self.operate(event, Operation { kind, alignment, size, slot, turn: 0 })
    }

    fn reallocate(&mut self, event: &Event<'_>, call: &Call) -> Result<()> {
        let old = self.live.remove(&call.old);
        if old.is_none() {
            self.summary.repairs.unknown_reallocs += 1;
            self.odd(|| format!("{} of 0x{:x}, which is not live", call.function.name(), call.old))?;
        }
        self.allocate(event, call, old)
    }

    /// Frees all blocks of a heap, or of all heaps if `heap` is `None`.
    fn end_heap(&mut self, event: &Event<'_>, heap: Option<u64>) -> Result<()> {
        let of = |block: &LiveBlock| heap.is_none_or(|heap| block.heap == heap);
        let mut blocks: Vec<LiveBlock> = self.live.extract_if(|_, block| of(block)).map(|(_, block)| block).collect();
        if heap.is_none() {
            blocks.extend(self.moving.drain().map(|(_, block)| block));
        }
        blocks.sort_unstable_by_key(|block| block.number);
        self.summary.ended_with_heap += blocks.len() as u64;
        blocks.into_iter().try_for_each(|block| self.end(event, block))
    }

    fn end_phase(&mut self, event: &Event<'_>, name: &[u8]) -> Result<()> {
        if !self.replays() {
            return Ok(());
        }
        let slot = u32::try_from(self.summary.phases.len()).map_err(|_| limit("2^32 phases"))?;
        self.summary.phases.push(String::from_utf8_lossy(name).into_owned());
        let stream = self.stream(event.thread)?;
        self.put(stream, Operation { slot, ..Operation::new(Kind::PhaseEnd) })
    }
}

impl EventSink for Compiler {
    #[inline]
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.events += 1;
        self.ended |= self.cut.to.is_some_and(|to| self.events > to);
        if self.ended {
            return Ok(());
        }
        if self.began.is_none() && self.cut.from.is_none_or(|from| self.events >= from) {
            self.begin(event.time)?;
        }
        match event.kind {
            EventKind::Call(ref call) if call.old != 0 && call.address != 0 => self.reallocate(event, call),
            EventKind::Call(ref call) if call.address != 0 => self.allocate(event, call, None),
            EventKind::Call(ref call) if call.old_is_gone() => self.free(event, call.old),
            EventKind::Free { address } => self.free(event, address),
            EventKind::ReallocBegin { old } => match self.live.remove(&old) {
                Some(block) => {
                    self.moving.insert(event.thread, block);
                    Ok(())
                }
                None => {
                    self.summary.repairs.unknown_reallocs += 1;
                    self.odd(|| format!("realloc of 0x{old:x}, which is not live"))
                }
            },
            EventKind::ReallocEnd(ref call) => {
                let old = self.moving.remove(&event.thread);
                match old {
                    Some(block) if call.address == 0 => self.end(event, block),
                    None if call.address == 0 => Ok(()),
                    old => self.allocate(event, call, old),
                }
            }
            EventKind::DestroyHeap => self.end_heap(event, Some(event.heap)),
            EventKind::Image { .. } | EventKind::Recording { on: true } => self.end_heap(event, None),
            EventKind::PhaseEnd { name } => self.end_phase(event, name),
            EventKind::Call(_) | EventKind::Failed(_) => {
                self.summary.failed += 1;
                Ok(())
            }
            EventKind::Lost { events } => {
                self.summary.lost = self.summary.lost.saturating_add(events);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        if has_sizes_only(user_metadata) { Err(ends_are_not_known()) } else { Ok(()) }
    }
}

/// Returns the exponent of the alignment that a call requests, or 0 for the default alignment of `malloc`.
fn alignment(call: &Call) -> u8 {
    const PAGE: u8 = 12;
    match call.function {
        Function::Valloc | Function::Pvalloc => PAGE,
        function if function.aligns() && call.detail.is_power_of_two() => {
            u8::try_from(call.detail.trailing_zeros().clamp(3, 40)).unwrap_or(PAGE)
        }
        _ => 0,
    }
}

fn limit(what: &str) -> Error {
    Error::Trace(format!("too large to replay: more than {what}").into())
}
