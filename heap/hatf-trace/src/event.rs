//! Heap events exchanged between the parts of this crate. Events can express more than any single trace format, so
//! every format is converted to and from events.
//!
//! The file has more than 400 lines because each event kind is documented here with all of its fields.
//!
//! # Examples
//!
//! ```
//! use hatf_trace::event::{Call, Event, EventKind, Function};
//!
//! // `calloc(4, 10)` in thread 2, one microsecond after the start of the recording.
//! let call = Call { detail: 4, size: 40, address: 0x1000, ..Call::new(Function::Calloc) };
//! let calloc = Event { time: 1_000, thread: 2, ..Event::new(EventKind::Call(call)) };
//! let requested = |event: &Event<'_>| match event.kind {
//!     EventKind::Call(call) => call.size,
//!     _ => 0,
//! };
//! let events = [calloc, Event::realloc(0x1000, 0x2000, 100), Event::free(0x2000)];
//! assert_eq!(events.iter().map(requested).sum::<u64>(), 140);
//! ```

use crate::Result;
use crate::loss::{Loss, Losses};
pub use crate::stack::Stack;
pub use crate::user_metadata::{
    RESUME, SEGMENT, SEGMENT_END, UserMetadata, has_sizes_only, shell_words, user_metadata_lines,
};

/// A placeholder for the size of a `realloc` that the trace does not store. The Meta-TF version of the paper's HATF 1.0
/// has no field for this size.
pub const UNKNOWN_SIZE: u64 = u64::MAX;

/// An allocation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// `malloc`
    Malloc,
    /// `calloc`
    Calloc,
    /// `realloc`
    Realloc,
    /// `reallocarray`
    Reallocarray,
    /// `memalign`, or an unspecified aligned allocation function.
    Memalign,
    /// `posix_memalign`
    PosixMemalign,
    /// `aligned_alloc`
    AlignedAlloc,
    /// `valloc`
    Valloc,
    /// `pvalloc`
    Pvalloc,
}

impl Function {
    /// All functions, in the order of their tags in `dtds/heap.dtd`.
    pub const ALL: [Self; 9] = [
        Self::Malloc,
        Self::Calloc,
        Self::Realloc,
        Self::Reallocarray,
        Self::Memalign,
        Self::PosixMemalign,
        Self::AlignedAlloc,
        Self::Valloc,
        Self::Pvalloc,
    ];

    /// Returns the name of the C function.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Malloc => "malloc",
            Self::Calloc => "calloc",
            Self::Realloc => "realloc",
            Self::Reallocarray => "reallocarray",
            Self::Memalign => "memalign",
            Self::PosixMemalign => "posix_memalign",
            Self::AlignedAlloc => "aligned_alloc",
            Self::Valloc => "valloc",
            Self::Pvalloc => "pvalloc",
        }
    }

    /// Returns whether the function reallocates an existing block.
    #[must_use]
    pub fn is_realloc(self) -> bool {
        matches!(self, Self::Realloc | Self::Reallocarray)
    }

    /// Returns whether [`Call::detail`] is an element count.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self, Self::Calloc | Self::Reallocarray)
    }

    /// Returns whether the function aligns its block. If so, [`Call::detail`] is the alignment, or 0 if unknown.
    #[must_use]
    pub fn aligns(self) -> bool {
        matches!(self, Self::Memalign | Self::PosixMemalign | Self::AlignedAlloc | Self::Valloc | Self::Pvalloc)
    }
}

/// A call to an allocation function.
///
/// # Examples
///
/// A realloc that returns no block has failed, unless the requested size is 0:
///
/// ```
/// use hatf_trace::event::{Call, Function};
///
/// let moved = Call { size: 100, old: 0x1000, address: 0x2000, ..Call::new(Function::Realloc) };
/// let failed = Call { address: 0, ..moved };
/// let freed = Call { size: 0, ..failed };
/// assert_eq!([moved, failed, freed].map(|call| call.old_is_gone()), [true, false, true]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The called function.
    pub function: Function,
    /// The element count or the alignment; 0 if the function has neither or the value is unknown.
    pub detail: u64,
    /// The requested size in bytes, or [`UNKNOWN_SIZE`].
    pub size: u64,
    /// The usable size of the block in bytes, or 0 if unknown.
    pub usable: u64,
    /// The address of the block passed to the function, or 0 if there is none.
    pub old: u64,
    /// The address of the returned block, or 0 if there is none.
    pub address: u64,
}

impl Call {
    /// Returns a call whose other fields are 0.
    #[must_use]
    pub fn new(function: Function) -> Self {
        Self { function, detail: 0, size: 0, usable: 0, old: 0, address: 0 }
    }

    /// Returns whether the call ended the lifetime of the block passed to it. A call does so if it returned a block or
    /// if the requested size was 0. A failed realloc leaves its block unchanged.
    #[must_use]
    pub fn old_is_gone(&self) -> bool {
        self.old != 0 && (self.address != 0 || self.size == 0)
    }
}

/// A request to the system about memory pages. Lengths are in bytes; flags and protection are the kernel's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pages {
    /// `mmap` returned pages.
    Map {
        /// The start address.
        start: u64,
        /// The length in bytes.
        length: u64,
        /// The protection flags (`PROT_*`).
        protection: u64,
        /// The mapping flags (`MAP_*`).
        flags: u64,
    },
    /// `munmap` released pages.
    Unmap {
        /// The start address.
        start: u64,
        /// The length in bytes.
        length: u64,
    },
    /// `mremap` moved or resized pages.
    Remap {
        /// The old start address.
        from: u64,
        /// The old length in bytes.
        from_length: u64,
        /// The new start address.
        start: u64,
        /// The new length in bytes.
        length: u64,
    },
    /// The program break moved because of `brk` or `sbrk`, or within an allocator.
    Break {
        /// The new program break.
        end: u64,
    },
    /// `madvise` was called for pages.
    Advise {
        /// The start address.
        start: u64,
        /// The length in bytes.
        length: u64,
        /// The advice (`MADV_*`).
        advice: u64,
    },
}

/// Memory use of a process as reported by the kernel, in bytes.
///
/// # Examples
///
/// ```
/// use hatf_trace::event::Resident;
///
/// let sample = Resident { resident: 3 << 20, shared: 1 << 20, ..Resident::default() };
/// assert_eq!(sample.private(), 2 << 20);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resident {
    /// Resident pages.
    pub resident: u64,
    /// Resident pages that belong to files or to shared memory.
    pub shared: u64,
    /// Writable private pages, resident or not, and stacks.
    pub data: u64,
    /// All mapped pages.
    pub mapped: u64,
}

impl Resident {
    /// Returns the resident bytes that belong to this process alone.
    #[must_use]
    pub fn private(&self) -> u64 {
        self.resident.saturating_sub(self.shared)
    }
}

/// Access counts of a block, in a program built by `hatf cc`.
///
/// # Examples
///
/// ```
/// use hatf_trace::event::Accesses;
///
/// // Three of the four granules that contain a byte of the block were accessed.
/// let accesses = Accesses { address: 0x1000, loads: 7, stores: 2, touched: 3, granules: 4, reached: false };
/// assert_eq!((accesses.count(), accesses.percent_utilized()), (9, 75));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Accesses {
    /// The address of the live block.
    pub address: u64,
    /// The number of loads so far.
    pub loads: u64,
    /// The number of stores so far.
    pub stores: u64,
    /// The number of 64-byte granules that were accessed.
    pub touched: u64,
    /// The number of granules that contain a byte of the block.
    pub granules: u64,
    /// Whether uninstrumented code may also have accessed the block.
    pub reached: bool,
}

impl Accesses {
    /// Returns the number of loads and stores.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.loads.saturating_add(self.stores)
    }

    /// Returns the accessed share of the block in percent, rounded down, or 0 for a block without granules.
    #[must_use]
    pub fn percent_utilized(&self) -> u64 {
        self.touched.min(self.granules).saturating_mul(100).checked_div(self.granules).unwrap_or(0)
    }
}

/// The kind of an event, with the values specific to that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind<'a> {
    /// An allocation function was called.
    Call(Call),
    /// The block at `address` was freed.
    Free {
        /// The address of the block.
        address: u64,
    },
    /// A realloc that has not returned yet has freed the block at `old`.
    ReallocBegin {
        /// The address of the block.
        old: u64,
    },
    /// The realloc returned.
    ReallocEnd(Call),
    /// A call to an allocation function failed and changed nothing, so the block at `old` is still live.
    Failed(Call),
    /// A heap was created. Only HATF 1.0 traces, which may have several heaps, contain this event.
    CreateHeap,
    /// A heap was destroyed with all blocks in it.
    DestroyHeap,
    /// A thread started.
    ThreadStart {
        /// The thread that created this one, or 0 if unknown.
        creator: u64,
        /// The kernel's thread ID, or 0 if unknown.
        task: u64,
    },
    /// A thread ended.
    ThreadEnd,
    /// The thread was given a name.
    ThreadName {
        /// The name.
        name: &'a [u8],
    },
    /// The program requested pages from the system or released pages.
    Pages(Pages),
    /// The memory use of the process was sampled.
    Resident(Resident),
    /// The program passed a mark.
    Mark {
        /// The name of the mark.
        name: &'a [u8],
    },
    /// A phase began.
    PhaseBegin {
        /// The name of the phase.
        name: &'a [u8],
    },
    /// A phase ended.
    PhaseEnd {
        /// The name of the phase.
        name: &'a [u8],
    },
    /// A program image was loaded. This ends the previous heap and begins a new one.
    Image {
        /// The process ID.
        process: u64,
        /// The path of the program.
        path: &'a [u8],
    },
    /// A program or a shared object was loaded.
    ModuleLoad {
        /// The load bias: the number added to an address in the file to obtain the address in memory.
        bias: u64,
        /// The start address.
        start: u64,
        /// The end address (exclusive).
        end: u64,
        /// The build ID in hexadecimal digits, or `-`; then a space and the path.
        name: &'a [u8],
    },
    /// A module was unloaded.
    ModuleUnload {
        /// The start address.
        start: u64,
    },
    /// The source file of the following symbols.
    Source {
        /// The path, or empty if unknown.
        path: &'a [u8],
    },
    /// The function that contains a stack frame, valid while the frame's module is loaded. If a frame has several
    /// symbols, each function except the last is inlined into the next one.
    Symbol {
        /// The frame address.
        frame: u64,
        /// The line in the source file, from 1, or 0 if unknown.
        line: u64,
        /// The name of the function.
        name: &'a [u8],
    },
    /// The loads and stores of a block.
    Accesses(Accesses),
    /// The last access to a block, in a program built by `hatf cc`.
    LastAccess {
        /// The address of the live block.
        address: u64,
        /// The time of the last call recorded before the access, or 0 if the block was never accessed.
        last: u64,
    },
    /// The pages of a block that nobody had touched so far, according to the kernel.
    Untouched {
        /// The address of the live block.
        address: u64,
        /// The bytes of the untouched whole pages.
        bytes: u64,
    },
    /// A function was entered.
    Enter {
        /// An address in the function.
        function: u64,
    },
    /// The thread left the most recently entered function that it had not left yet.
    Leave,
    /// The thread runs on a different CPU than at its previous event, or this is its first event.
    Processor {
        /// The kernel's number of the CPU.
        cpu: u64,
    },
    /// The program exited.
    Exit {
        /// The exit status.
        status: u64,
    },
    /// A signal killed the program.
    Killed {
        /// The signal number.
        signal: u64,
    },
    /// Events are missing at this position.
    Lost {
        /// The number of missing events.
        events: u64,
    },
    /// Recording stopped or resumed. Nothing is known about the time in between, so blocks allocated before recording
    /// resumed no longer count as live.
    Recording {
        /// Whether recording resumed.
        on: bool,
    },
}

impl EventKind<'static> {
    /// Returns this event kind with its name replaced by `name`. If events of this kind have no name, returns it
    /// unchanged.
    pub(crate) fn named(self, name: &[u8]) -> EventKind<'_> {
        match self {
            Self::ThreadName { .. } => EventKind::ThreadName { name },
            Self::Mark { .. } => EventKind::Mark { name },
            Self::PhaseBegin { .. } => EventKind::PhaseBegin { name },
            Self::PhaseEnd { .. } => EventKind::PhaseEnd { name },
            Self::Image { process, .. } => EventKind::Image { process, path: name },
            Self::ModuleLoad { bias, start, end, .. } => EventKind::ModuleLoad { bias, start, end, name },
            Self::Source { .. } => EventKind::Source { path: name },
            Self::Symbol { frame, line, .. } => EventKind::Symbol { frame, line, name },
            other => other,
        }
    }
}

impl<'a> EventKind<'a> {
    /// Returns the kind of data that is lost if the event is written to a format that stores only calls and frees.
    /// Returns `None` for calls and frees.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        Some(match self {
            Self::Call(_) | Self::Free { .. } | Self::ReallocBegin { .. } | Self::ReallocEnd(_) => return None,
            Self::Failed(_) => Loss::Failed,
            Self::CreateHeap | Self::DestroyHeap => Loss::Heaps,
            Self::ThreadStart { .. } | Self::ThreadEnd => Loss::Threads,
            Self::ThreadName { .. } => Loss::ThreadNames,
            Self::Pages(_) | Self::Resident(_) | Self::Untouched { .. } => Loss::Pages,
            Self::Mark { .. } | Self::PhaseBegin { .. } | Self::PhaseEnd { .. } => Loss::Marks,
            Self::Image { .. } | Self::Exit { .. } | Self::Killed { .. } => Loss::Images,
            Self::Lost { .. } => Loss::Lost,
            Self::Recording { .. } => Loss::Recording,
            Self::Accesses(_) | Self::LastAccess { .. } => Loss::Accesses,
            Self::Enter { .. } | Self::Leave => Loss::Functions,
            Self::Processor { .. } => Loss::Processors,
            Self::ModuleLoad { .. } | Self::ModuleUnload { .. } | Self::Source { .. } | Self::Symbol { .. } => {
                Loss::Modules
            }
        })
    }

    /// Returns the event kind with an empty name, and the name. [`named`](EventKind::named) combines the two again.
    pub(crate) fn nameless(self) -> (EventKind<'static>, &'a [u8]) {
        let kind = match self {
            Self::ThreadName { name } => return (EventKind::ThreadName { name: &[] }, name),
            Self::Mark { name } => return (EventKind::Mark { name: &[] }, name),
            Self::PhaseBegin { name } => return (EventKind::PhaseBegin { name: &[] }, name),
            Self::PhaseEnd { name } => return (EventKind::PhaseEnd { name: &[] }, name),
            Self::Image { process, path } => return (EventKind::Image { process, path: &[] }, path),
            Self::ModuleLoad { bias, start, end, name } => {
                return (EventKind::ModuleLoad { bias, start, end, name: &[] }, name);
            }
            Self::Source { path } => return (EventKind::Source { path: &[] }, path),
            Self::Symbol { frame, line, name } => return (EventKind::Symbol { frame, line, name: &[] }, name),
            Self::ModuleUnload { start } => EventKind::ModuleUnload { start },
            Self::Call(call) => EventKind::Call(call),
            Self::Free { address } => EventKind::Free { address },
            Self::ReallocBegin { old } => EventKind::ReallocBegin { old },
            Self::ReallocEnd(call) => EventKind::ReallocEnd(call),
            Self::Failed(call) => EventKind::Failed(call),
            Self::CreateHeap => EventKind::CreateHeap,
            Self::DestroyHeap => EventKind::DestroyHeap,
            Self::ThreadStart { creator, task } => EventKind::ThreadStart { creator, task },
            Self::Pages(pages) => EventKind::Pages(pages),
            Self::Resident(resident) => EventKind::Resident(resident),
            Self::ThreadEnd => EventKind::ThreadEnd,
            Self::Exit { status } => EventKind::Exit { status },
            Self::Killed { signal } => EventKind::Killed { signal },
            Self::Lost { events } => EventKind::Lost { events },
            Self::Recording { on } => EventKind::Recording { on },
            Self::Accesses(accesses) => EventKind::Accesses(accesses),
            Self::LastAccess { address, last } => EventKind::LastAccess { address, last },
            Self::Untouched { address, bytes } => EventKind::Untouched { address, bytes },
            Self::Enter { function } => EventKind::Enter { function },
            Self::Leave => EventKind::Leave,
            Self::Processor { cpu } => EventKind::Processor { cpu },
        };
        (kind, &[])
    }
}

/// A heap event.
///
/// The [module's example](crate::event#examples) creates events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The kind of the event.
    pub kind: EventKind<'a>,
    /// Nanoseconds since the start of the recording, or 0 if the trace has no times.
    pub time: u64,
    /// The thread that caused the event, or that started or ended; 1 if the trace has no threads.
    pub thread: u64,
    /// The heap of the event, or 0 if the trace has no heaps. Each program image has its own heap, numbered from 1.
    pub heap: u64,
    /// The call stack, empty if unknown.
    pub stack: Stack<'a>,
    /// The HATF 1.0 attributes, if they contain data that no other field of the event contains.
    pub attributes: &'a [u8],
}

impl<'a> Event<'a> {
    /// Returns an event of thread 1 with all other fields unknown.
    #[must_use]
    pub fn new(kind: EventKind<'a>) -> Self {
        Self { kind, time: 0, thread: 1, heap: 0, stack: Stack::NONE, attributes: &[] }
    }

    /// Returns a `malloc` event.
    #[must_use]
    pub fn malloc(address: u64, size: u64) -> Self {
        Self::new(EventKind::Call(Call { size, address, ..Call::new(Function::Malloc) }))
    }

    /// Returns a `realloc` event.
    #[must_use]
    pub fn realloc(old: u64, address: u64, size: u64) -> Self {
        Self::new(EventKind::Call(Call { size, old, address, ..Call::new(Function::Realloc) }))
    }

    /// Returns a `free` event.
    #[must_use]
    pub fn free(address: u64) -> Self {
        Self::new(EventKind::Free { address })
    }
}

/// An item of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// An event.
    Event(Event<'a>),
    /// The bytes of a comment.
    Comment(&'a [u8]),
}

/// A consumer of events, in order.
///
/// # Examples
///
/// This sink adds up the requested bytes:
///
/// ```
/// use hatf_trace::{Event, EventKind, EventSink, Result};
///
/// struct Requested(u64);
///
/// impl EventSink for Requested {
///     fn event(&mut self, event: &Event<'_>) -> Result<()> {
///         if let EventKind::Call(call) = event.kind { self.0 += call.size }
///         Ok(())
///     }
///     // The methods `comment` and `user_metadata` ignore their arguments.
/// #     fn comment(&mut self, _: &[u8]) -> Result<()> { Ok(()) }
/// #     fn user_metadata(&mut self, _: &hatf_trace::event::UserMetadata) -> Result<()> { Ok(()) }
/// }
///
/// let mut requested = Requested(0);
/// requested.event(&Event::malloc(0x1000, 24))?;
/// assert_eq!(requested.0, 24);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait EventSink {
    /// Receives an event.
    ///
    /// # Errors
    /// The event could not be stored; the caller should stop.
    fn event(&mut self, event: &Event<'_>) -> Result<()>;

    /// Receives a comment.
    ///
    /// # Errors
    /// As for [`EventSink::event`].
    fn comment(&mut self, text: &[u8]) -> Result<()>;

    /// Receives user metadata before the first event, and again after the last event if more became known in between.
    ///
    /// # Errors
    /// As for [`EventSink::event`].
    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()>;

    /// Announces addresses that the next events refer to. A source announces only the addresses that it knows. The
    /// default does nothing.
    fn coming(&mut self, addresses: &[u64]) {
        let _ = addresses;
    }

    /// Makes everything received so far durable in case the process is killed. The default does nothing.
    ///
    /// # Errors
    /// As for [`EventSink::event`].
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A producer of events, in order.
///
/// # Examples
///
/// This source allocates a given number of blocks:
///
/// ```
/// use hatf_trace::forms::RawSink;
/// use hatf_trace::{Event, EventSource, Item, Result};
///
/// struct Countdown(u64);
/// impl EventSource for Countdown {
///     fn next(&mut self) -> Result<Option<Item<'_>>> {
///         let Some(left) = self.0.checked_sub(1) else { return Ok(None) };
///         self.0 = left;
///         Ok(Some(Item::Event(Event::malloc(0x1000 + 32 * left, 24))))
///     }
/// }
///
/// let mut sink = RawSink::<_, 32>::new(Vec::new());
/// Countdown(3).pour(&mut sink)?;
/// assert_eq!(sink.records(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait EventSource {
    /// Returns the next item, or `None` at the end.
    ///
    /// # Errors
    /// The trace is corrupt or cannot be read; no item follows an error.
    fn next(&mut self) -> Result<Option<Item<'_>>>;

    /// Passes all remaining items to a sink. Sources override this method for speed.
    ///
    /// # Errors
    /// The first error of the source or the sink.
    fn pour<T: EventSink + ?Sized>(&mut self, sink: &mut T) -> Result<()>
    where
        Self: Sized,
    {
        while let Some(item) = self.next()? {
            match item {
                Item::Event(event) => sink.event(&event)?,
                Item::Comment(text) => sink.comment(text)?,
            }
        }
        Ok(())
    }

    /// Returns the number of nanoseconds in a tick of the trace's clock.
    fn resolution(&self) -> u64 {
        1
    }

    /// Returns the user metadata read so far.
    fn user_metadata(&self) -> UserMetadata {
        UserMetadata::new()
    }

    /// Returns counts of the data that the events read so far could not represent.
    fn losses(&self) -> Losses {
        Losses::default()
    }
}

/// Passes all items of a source and its user metadata to a sink.
///
/// # Errors
/// The first error of the source or the sink.
pub fn copy<S: EventSource, T: EventSink + ?Sized>(source: &mut S, sink: &mut T) -> Result<()> {
    let first = source.user_metadata();
    if !first.is_empty() {
        sink.user_metadata(&first)?;
    }
    source.pour(sink)?;
    let mut last = source.user_metadata();
    last.retain(|key, value| first.get(key) != Some(value));
    if last.is_empty() { Ok(()) } else { sink.user_metadata(&last) }
}

/// A sink that passes each event on to two sinks.
///
/// # Examples
///
/// ```
/// use hatf_trace::event::Tee;
/// use hatf_trace::forms::RawSink;
/// use hatf_trace::{Event, EventSink};
///
/// let (mut short, mut long) = (RawSink::<_, 32>::new(Vec::new()), RawSink::<_, 64>::new(Vec::new()));
/// Tee(&mut short, &mut long).event(&Event::malloc(0x1000, 24))?;
/// assert_eq!((short.records(), long.records()), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tee<'s>(pub &'s mut dyn EventSink, pub &'s mut dyn EventSink);

impl EventSink for Tee<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.0.event(event)?;
        self.1.event(event)
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.0.comment(text)?;
        self.1.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.0.user_metadata(user_metadata)?;
        self.1.user_metadata(user_metadata)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()?;
        self.1.flush()
    }
}
