//! Conversion of `dtds/heap.dtd` records to events.

use super::format::{
    Accesses, AlignedAlloc, Brk, Calloc, Enter, Exit, Failed, Free, Heap, Image, Killed, LastAccess, Leave, Lost,
    Madvise, Malloc, Mark, Memalign, Mmap, ModuleLoad, ModuleUnload, Mremap, Munmap, PhaseBegin, PhaseEnd,
    PosixMemalign, Processor, Pvalloc, Realloc, ReallocBegin, ReallocEnd, Reallocarray, Recording, Rss, Source, Symbol,
    Thread, ThreadEnd, ThreadName, ThreadStart, Untouched, Valloc,
};
use crate::Result;
use crate::event::{self, Call, EventKind, Function, Pages, Resident};

/// A record as an event, without the data that records share: the name, the stack, and the thread of a call.
pub(crate) struct Decoded {
    /// The kind, without its name.
    pub(crate) kind: EventKind<'static>,
    pub(crate) ticks: u64,
    /// The thread that started or ended. Other records belong to the current thread.
    pub(crate) thread: Option<u64>,
    /// The offset of the stack, or 0 if there is none.
    pub(crate) stack: u64,
    /// The offset of the name, if the record has a name.
    pub(crate) name: Option<u64>,
}

/// Declares [`from_fields`] from the records and their fields.
macro_rules! record_from_fields {
    ($($name:literal $record:ident { $($field:ident),* })+) => {
        /// Builds a record from its name in the DTD and the values of its fields. Returns `None` if there is no such
        /// record.
        ///
        /// # Errors
        /// `field`, which is called for each field of the record in order, returned an error.
        pub(crate) fn from_fields(name: &str, field: &dyn Fn(&str) -> Result<u64>) -> Result<Option<Heap>> {
            Ok(Some(match name {
                $($name => Heap::$record($record { $($field: field(stringify!($field))?),* }),)+
                _ => return Ok(None),
            }))
        }
    };
}

record_from_fields! {
    "malloc" Malloc { time, stack, size, usable, address }
    "calloc" Calloc { time, stack, count, size, usable, address }
    "realloc" Realloc { time, stack, size, usable, old, address }
    "reallocarray" Reallocarray { time, stack, count, size, usable, old, address }
    "memalign" Memalign { time, stack, alignment, size, usable, address }
    "posix_memalign" PosixMemalign { time, stack, alignment, size, usable, address }
    "aligned_alloc" AlignedAlloc { time, stack, alignment, size, usable, address }
    "valloc" Valloc { time, stack, size, usable, address }
    "pvalloc" Pvalloc { time, stack, size, usable, address }
    "free" Free { time, stack, address }
    "realloc_begin" ReallocBegin { time, stack, old }
    "realloc_end" ReallocEnd { time, stack, count, size, usable, address }
    "failed" Failed { time, stack, function, count, alignment, size, block }
    "thread" Thread { id }
    "thread_start" ThreadStart { time, id, creator, task }
    "thread_end" ThreadEnd { time, id }
    "thread_name" ThreadName { time, id, name }
    "mmap" Mmap { time, stack, start, length, protection, flags }
    "munmap" Munmap { time, stack, start, length }
    "mremap" Mremap { time, stack, from, from_length, start, length }
    "brk" Brk { time, stack, end }
    "madvise" Madvise { time, stack, start, length, advice }
    "rss" Rss { time, resident, shared, data, mapped }
    "mark" Mark { time, name }
    "phase_begin" PhaseBegin { time, name }
    "phase_end" PhaseEnd { time, name }
    "image" Image { time, process, name }
    "exit" Exit { time, status }
    "killed" Killed { time, signal }
    "lost" Lost { time, events }
    "recording" Recording { time, on }
    "module_load" ModuleLoad { time, bias, start, end, name }
    "module_unload" ModuleUnload { time, start }
    "accesses" Accesses { time, address, loads, stores, touched, granules, reached }
    "last_access" LastAccess { time, address, last }
    "untouched" Untouched { time, address, bytes }
    "enter" Enter { time, function }
    "leave" Leave { time }
    "processor" Processor { time, cpu }
    "source" Source { name }
    "symbol" Symbol { frame, line, name }
}

/// Decodes a record. Returns `None` for the record that sets the thread of the following records.
#[inline]
pub(crate) fn decode(record: &Heap) -> Option<Decoded> {
    let call = |function, detail, size, usable, old, address| Call { function, detail, size, usable, old, address };
    let at = |kind, ticks, stack| Decoded { kind, ticks, thread: None, stack, name: None };
    let named = |kind, ticks, name| Decoded { kind, ticks, thread: None, stack: 0, name: Some(name) };
    let of_thread = |kind, ticks, id| Decoded { kind, ticks, thread: Some(id), stack: 0, name: None };
    let allocated = |call: Call, ticks, stack| at(EventKind::Call(call), ticks, stack);
    Some(match record {
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
        Heap::Free(r) => at(EventKind::Free { address: r.address }, r.time, r.stack),
        Heap::ReallocBegin(r) => at(EventKind::ReallocBegin { old: r.old }, r.time, r.stack),
        Heap::ReallocEnd(r) => {
            let function = if r.count == 0 { Function::Realloc } else { Function::Reallocarray };
            at(EventKind::ReallocEnd(call(function, r.count, r.size, r.usable, 0, r.address)), r.time, r.stack)
        }
        Heap::Failed(r) => {
            let index = usize::try_from(r.function.wrapping_sub(4)).unwrap_or(usize::MAX);
            let function = Function::ALL.get(index).copied().unwrap_or(Function::Malloc);
            at(EventKind::Failed(call(function, r.count.max(r.alignment), r.size, 0, r.block, 0)), r.time, r.stack)
        }
        Heap::Thread(_) => return None,
        Heap::ThreadStart(r) => of_thread(EventKind::ThreadStart { creator: r.creator, task: r.task }, r.time, r.id),
        Heap::ThreadEnd(r) => of_thread(EventKind::ThreadEnd, r.time, r.id),
        Heap::ThreadName(r) => {
            Decoded { name: Some(r.name), ..of_thread(EventKind::ThreadName { name: &[] }, r.time, r.id) }
        }
        Heap::Mmap(r) => {
            let (start, length, protection, flags) = (r.start, r.length, r.protection, r.flags);
            at(EventKind::Pages(Pages::Map { start, length, protection, flags }), r.time, r.stack)
        }
        Heap::Munmap(r) => at(EventKind::Pages(Pages::Unmap { start: r.start, length: r.length }), r.time, r.stack),
        Heap::Mremap(r) => {
            let (from, from_length, start, length) = (r.from, r.from_length, r.start, r.length);
            at(EventKind::Pages(Pages::Remap { from, from_length, start, length }), r.time, r.stack)
        }
        Heap::Brk(r) => at(EventKind::Pages(Pages::Break { end: r.end }), r.time, r.stack),
        Heap::Madvise(r) => {
            let (start, length, advice) = (r.start, r.length, r.advice);
            at(EventKind::Pages(Pages::Advise { start, length, advice }), r.time, r.stack)
        }
        Heap::Rss(r) => {
            let (resident, shared, data, mapped) = (r.resident, r.shared, r.data, r.mapped);
            at(EventKind::Resident(Resident { resident, shared, data, mapped }), r.time, 0)
        }
        Heap::Mark(r) => named(EventKind::Mark { name: &[] }, r.time, r.name),
        Heap::PhaseBegin(r) => named(EventKind::PhaseBegin { name: &[] }, r.time, r.name),
        Heap::PhaseEnd(r) => named(EventKind::PhaseEnd { name: &[] }, r.time, r.name),
        Heap::Image(r) => named(EventKind::Image { process: r.process, path: &[] }, r.time, r.name),
        Heap::Exit(r) => at(EventKind::Exit { status: r.status }, r.time, 0),
        Heap::Killed(r) => at(EventKind::Killed { signal: r.signal }, r.time, 0),
        Heap::ModuleLoad(r) => {
            let (bias, start, end) = (r.bias, r.start, r.end);
            named(EventKind::ModuleLoad { bias, start, end, name: &[] }, r.time, r.name)
        }
        Heap::ModuleUnload(r) => at(EventKind::ModuleUnload { start: r.start }, r.time, 0),
        Heap::Source(r) => named(EventKind::Source { path: &[] }, 0, r.name),
        Heap::Symbol(r) => named(EventKind::Symbol { frame: r.frame, line: r.line, name: &[] }, 0, r.name),
        Heap::Recording(r) => at(EventKind::Recording { on: r.on != 0 }, r.time, 0),
        Heap::Accesses(r) => {
            let Accesses { address, loads, stores, touched, granules, reached, .. } = *r;
            let accesses = event::Accesses { address, loads, stores, touched, granules, reached: reached != 0 };
            at(EventKind::Accesses(accesses), r.time, 0)
        }
        Heap::LastAccess(r) => {
            let LastAccess { time, address, last } = *r;
            at(EventKind::LastAccess { address, last }, time, 0)
        }
        Heap::Untouched(r) => {
            let Untouched { time, address, bytes } = *r;
            at(EventKind::Untouched { address, bytes }, time, 0)
        }
        Heap::Enter(r) => at(EventKind::Enter { function: r.function }, r.time, 0),
        Heap::Leave(r) => at(EventKind::Leave, r.time, 0),
        Heap::Processor(r) => at(EventKind::Processor { cpu: r.cpu }, r.time, 0),
        Heap::Lost(r) => at(EventKind::Lost { events: r.events }, r.time, 0),
    })
}
