//! Events of a heap, as this crate's parts pass them to each other. They hold more than any one form of a trace can, so that
//! every form converts to them and from them.
//!
//! Over 400 lines, as each kind of event stands here with all that it holds.

use crate::Result;
use crate::loss::{Loss, Losses};
pub use crate::stack::Stack;
pub use crate::user_metadata::{UserMetadata, has_sizes_only, user_metadata_lines};

/// The size of a `realloc` where the trace does not hold it (the paper's HATF 1.0 in Meta-TF has no field for it).
pub const UNKNOWN_SIZE: u64 = u64::MAX;

/// A function that allocates.
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
    /// `memalign`, or one of its family of which no more is known.
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

    /// Returns its name in C.
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

    /// Returns whether it takes a block.
    #[must_use]
    pub fn is_realloc(self) -> bool {
        matches!(self, Self::Realloc | Self::Reallocarray)
    }

    /// Returns whether [`Call::detail`] is a number of elements.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self, Self::Calloc | Self::Reallocarray)
    }

    /// Returns whether it aligns its block: [`Call::detail`] is the alignment, or 0.
    #[must_use]
    pub fn aligns(self) -> bool {
        matches!(self, Self::Memalign | Self::PosixMemalign | Self::AlignedAlloc | Self::Valloc | Self::Pvalloc)
    }
}

/// A call of a function that allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The function.
    pub function: Function,
    /// How many elements, or the alignment; 0 where the function has neither, or it is not known.
    pub detail: u64,
    /// Bytes asked for; [`UNKNOWN_SIZE`].
    pub size: u64,
    /// Bytes that the block really has; 0: not known.
    pub usable: u64,
    /// The block that it was given; 0: none.
    pub old: u64,
    /// The block that it returned; 0: none.
    pub address: u64,
}

impl Call {
    /// Makes a call with all else 0.
    #[must_use]
    pub fn new(function: Function) -> Self {
        Self { function, detail: 0, size: 0, usable: 0, old: 0, address: 0 }
    }

    /// Returns whether the block it was given ended: it returned another, or the size was 0. A realloc that failed leaves its
    /// block as it was.
    #[must_use]
    pub fn old_is_gone(&self) -> bool {
        self.old != 0 && (self.address != 0 || self.size == 0)
    }
}

/// What a program asked the system to do with pages. Lengths are in bytes; the numbers are the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pages {
    /// `mmap` returned pages.
    Map {
        /// Where they begin.
        start: u64,
        /// How many bytes.
        length: u64,
        /// What may be done with them.
        protection: u64,
        /// What they are.
        flags: u64,
    },
    /// `munmap` of pages.
    Unmap {
        /// Where they begin.
        start: u64,
        /// How many bytes.
        length: u64,
    },
    /// `mremap` of pages.
    Remap {
        /// Where they began.
        from: u64,
        /// How many bytes they were.
        from_length: u64,
        /// Where they begin now.
        start: u64,
        /// How many bytes they are now.
        length: u64,
    },
    /// The program break has moved: by `brk` or `sbrk`, or in an allocator.
    Break {
        /// Where it is now.
        end: u64,
    },
    /// `madvise` of pages.
    Advise {
        /// Where they begin.
        start: u64,
        /// How many bytes.
        length: u64,
        /// The advice.
        advice: u64,
    },
}

/// What the kernel says about the memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resident {
    /// Pages that have memory.
    pub resident: u64,
    /// Of these, pages of files, and of memory that processes share.
    pub shared: u64,
    /// Private pages that may be written, whether they have memory or not, and stacks.
    pub data: u64,
    /// All pages.
    pub mapped: u64,
}

impl Resident {
    /// Returns the bytes of pages that have memory and are the process's own.
    #[must_use]
    pub fn private(&self) -> u64 {
        self.resident.saturating_sub(self.shared)
    }
}

/// What was counted of a block, in a program that `hatf cc` built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Accesses {
    /// Where the block begins, which is live.
    pub address: u64,
    /// Loads so far.
    pub loads: u64,
    /// Stores so far.
    pub stores: u64,
    /// Granules of 64 bytes with an access.
    pub touched: u64,
    /// Granules that the block has a byte in.
    pub granules: u64,
    /// Code that is not instrumented may have accessed it, too.
    pub reached: bool,
}

impl Accesses {
    /// Returns how many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.loads.saturating_add(self.stores)
    }

    /// Returns how much of the block was accessed, in whole percent, rounded down; 0 for a block without granules.
    #[must_use]
    pub fn percent_utilized(&self) -> u64 {
        self.touched.min(self.granules).saturating_mul(100).checked_div(self.granules).unwrap_or(0)
    }
}

/// The kind of an event, with the values that not all events share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind<'a> {
    /// A function that allocates was called.
    Call(Call),
    /// The block at `address` ends.
    Free {
        /// Where it began.
        address: u64,
    },
    /// The block at `old` ends within a realloc that has not returned.
    ReallocBegin {
        /// Where it began.
        old: u64,
    },
    /// That realloc returns.
    ReallocEnd(Call),
    /// A call returned no block, and left everything as it was; `old` lives on.
    Failed(Call),
    /// A heap begins (HATF 1.0, where there may be several).
    CreateHeap,
    /// A heap ends, with all blocks in it.
    DestroyHeap,
    /// A thread begins.
    ThreadStart {
        /// The thread that made it; 0: not known.
        creator: u64,
        /// The kernel's number of it; 0: not known.
        task: u64,
    },
    /// A thread ends.
    ThreadEnd,
    /// The thread has this name from here on.
    ThreadName {
        /// Its name.
        name: &'a [u8],
    },
    /// The program asked the system for pages, or gave some back.
    Pages(Pages),
    /// The kernel was asked what memory the process has.
    Resident(Resident),
    /// The program passed a mark.
    Mark {
        /// Its name.
        name: &'a [u8],
    },
    /// A phase begins.
    PhaseBegin {
        /// Its name.
        name: &'a [u8],
    },
    /// A phase ends.
    PhaseEnd {
        /// Its name.
        name: &'a [u8],
    },
    /// A program image was loaded: a new heap, and the end of the one before.
    Image {
        /// The process.
        process: u64,
        /// The program.
        path: &'a [u8],
    },
    /// A program or a shared object was loaded.
    ModuleLoad {
        /// What is added to the addresses of its file.
        bias: u64,
        /// Its first address.
        start: u64,
        /// The address behind its last.
        end: u64,
        /// Its build id in hexadecimal digits, or `-`; a space; its path.
        name: &'a [u8],
    },
    /// A module was unloaded.
    ModuleUnload {
        /// Its first address.
        start: u64,
    },
    /// The source file of the symbols that follow.
    Source {
        /// Its path; empty: not known.
        path: &'a [u8],
    },
    /// The function that a frame of stacks is in, while the module is loaded in which it lies. Of several for one frame all but
    /// the last are inlined into the next.
    Symbol {
        /// The frame.
        frame: u64,
        /// The line in the source file, from 1; 0: not known.
        line: u64,
        /// The function.
        name: &'a [u8],
    },
    /// Loads and stores of a block.
    Accesses(Accesses),
    /// When a block was last accessed, in a program that `hatf cc` built.
    LastAccess {
        /// Where the block begins, which is live.
        address: u64,
        /// The time of the last call that was recorded before that; 0: it was not accessed.
        last: u64,
    },
    /// A function was entered.
    Enter {
        /// An address in it.
        function: u64,
    },
    /// The function was left that the thread entered last.
    Leave,
    /// The thread runs on another processor than at its event before, or that is its first.
    Processor {
        /// The kernel's number of the processor.
        cpu: u64,
    },
    /// The program ended.
    Exit {
        /// Its exit status.
        status: u64,
    },
    /// A signal ended the program.
    Killed {
        /// The number of the signal.
        signal: u64,
    },
    /// Events are missing here.
    Lost {
        /// How many.
        events: u64,
    },
    /// Recording stops, or goes on. What happened in between is not known: from where it goes on no block counts that was live
    /// before.
    Recording {
        /// It goes on.
        on: bool,
    },
}

impl EventKind<'static> {
    /// Puts a name in, if this is of a kind that has one.
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
    /// Returns the kind of loss where a form of a trace has only calls and frees; `None` for those.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        Some(match self {
            Self::Call(_) | Self::Free { .. } | Self::ReallocBegin { .. } | Self::ReallocEnd(_) => return None,
            Self::Failed(_) => Loss::Failed,
            Self::CreateHeap | Self::DestroyHeap => Loss::Heaps,
            Self::ThreadStart { .. } | Self::ThreadEnd => Loss::Threads,
            Self::ThreadName { .. } => Loss::ThreadNames,
            Self::Pages(_) | Self::Resident(_) => Loss::Pages,
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

    /// Takes the name out, which [`named`](EventKind::named) puts back.
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
            Self::Enter { function } => EventKind::Enter { function },
            Self::Leave => EventKind::Leave,
            Self::Processor { cpu } => EventKind::Processor { cpu },
        };
        (kind, &[])
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its kind.
    pub kind: EventKind<'a>,
    /// Nanoseconds since the start of the recording; 0 where the trace has no times.
    pub time: u64,
    /// The thread that did it, or the one that began or ended; 1 where the trace has no threads.
    pub thread: u64,
    /// The heap it happened in. Images are numbered from 1; 0 where the trace has no heaps.
    pub heap: u64,
    /// The call's stack; none: not known.
    pub stack: Stack<'a>,
    /// HATF 1.0's attributes, where they hold more than the rest of the event.
    pub attributes: &'a [u8],
}

impl<'a> Event<'a> {
    /// Makes an event of thread 1 with nothing else known.
    #[must_use]
    pub fn new(kind: EventKind<'a>) -> Self {
        Self { kind, time: 0, thread: 1, heap: 0, stack: Stack::NONE, attributes: &[] }
    }

    /// Makes that of a `malloc`.
    #[must_use]
    pub fn malloc(address: u64, size: u64) -> Self {
        Self::new(EventKind::Call(Call { size, address, ..Call::new(Function::Malloc) }))
    }

    /// Makes that of a `realloc`.
    #[must_use]
    pub fn realloc(old: u64, address: u64, size: u64) -> Self {
        Self::new(EventKind::Call(Call { size, old, address, ..Call::new(Function::Realloc) }))
    }

    /// Makes that of a `free`.
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
    /// A comment's bytes.
    Comment(&'a [u8]),
}

/// Receives events, in order.
pub trait EventSink {
    /// Receives an event.
    ///
    /// # Errors
    /// It could not be kept; no more should be given.
    fn event(&mut self, event: &Event<'_>) -> Result<()>;

    /// Receives a comment.
    ///
    /// # Errors
    /// As for [`EventSink::event`].
    fn comment(&mut self, text: &[u8]) -> Result<()>;

    /// Receives user metadata: before the first event, and what is known only then after the last.
    ///
    /// # Errors
    /// As for [`EventSink::event`].
    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()>;

    /// Learns of the addresses that the next events are about, where the source knows some of them; not all are given. The default does
    /// nothing.
    fn coming(&mut self, addresses: &[u64]) {
        let _ = addresses;
    }

    /// Makes what was received so far durable, should the process be killed. The default does nothing.
    ///
    /// # Errors
    /// As for [`EventSink::event`].
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Supplies events, in order.
pub trait EventSource {
    /// Returns the next item, `None` at the end.
    ///
    /// # Errors
    /// The trace is damaged, or cannot be read; after an error nothing more comes.
    fn next(&mut self) -> Result<Option<Item<'_>>>;

    /// Passes all that is left to a sink. Sources override this to be fast.
    ///
    /// # Errors
    /// The first of either side.
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

    /// Returns the nanoseconds in a tick of the trace's clock.
    fn resolution(&self) -> u64 {
        1
    }

    /// Returns the user metadata met so far.
    fn user_metadata(&self) -> UserMetadata {
        UserMetadata::new()
    }

    /// Returns what events could not hold of the trace so far.
    fn losses(&self) -> Losses {
        Losses::default()
    }
}

/// Passes all of a source to a sink, with the user metadata.
///
/// # Errors
/// The first of either side.
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

/// Passes each event to two sinks.
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
