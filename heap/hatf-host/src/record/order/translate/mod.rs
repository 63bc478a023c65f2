//! Conversion of spool events to trace events.
//!
//! *Realloc across threads.* The old block of a realloc ends before the call returns, and its new block begins after
//! that, so another thread may receive the old address before the end of the call is in the spool. In this case, an
//! [`EventKind::ReallocBegin`] precedes the other thread's call, and the realloc becomes an [`EventKind::ReallocEnd`].
//! Thus no address in a trace is allocated while it is live.

use std::collections::HashMap;

use hatf_record::{Flags, Kind, SpoolEvent, accesses_of_word};

use hatf_trace::Result;
use hatf_trace::event::{Accesses, Call, Event, EventKind, EventSink, Function, Pages, Stack};

/// A realloc that began but has not ended.
struct Pending {
    old: u64,
    /// Whether its old block was already recorded as freed.
    taken: bool,
}

/// A converter from spool events to trace events.
#[derive(Default)]
pub(crate) struct Translator {
    /// The number of the image and of its heap, or 0 before the first image.
    heap: u64,
    /// The number of times that recording resumed.
    starts: u64,
    time: u64,
    main_known: bool,
    pending: HashMap<u32, Pending>,
    /// Thread numbers by `pthread_t`, by which other threads refer to them.
    handles: HashMap<u64, u32>,
    /// Names of threads that were named before they began to run.
    early: HashMap<u64, Vec<u8>>,
}

/// Maximum number of threads that are named before they run.
const EARLY: usize = 1 << 10;

impl Translator {
    /// Returns the trace event of a slot that needs no context, as is the case for nearly every slot. Otherwise returns
    /// `None`; see [`slot`](Self::slot).
    #[inline]
    pub(crate) fn plain<'s>(&mut self, slot: &SpoolEvent, stack: Stack<'s>) -> Option<Event<'s>> {
        let SpoolEvent { size, address, .. } = *slot;
        let kind = match slot.kind {
            Kind::Malloc if address != 0 && self.pending.is_empty() => {
                EventKind::Call(Call { size, usable: slot.about.usable(size), address, ..Call::new(Function::Malloc) })
            }
            Kind::Free => EventKind::Free { address },
            _ => return None,
        };
        self.time = slot.time;
        Some(self.event(slot, stack, kind))
    }

    /// Converts an event, given with its time in nanoseconds, its text and its stack, and passes the resulting events
    /// to the sink.
    ///
    /// # Errors
    /// Returns an error if the sink failed.
    pub(crate) fn slot(
        &mut self,
        slot: &SpoolEvent,
        text: &[u8],
        stack: Stack<'_>,
        sink: &mut dyn EventSink,
    ) -> Result<()> {
        self.time = slot.time;
        match slot.kind {
            Kind::Free => self.give(slot, stack, EventKind::Free { address: slot.address }, sink),
            Kind::ReallocBegin => {
                self.begin_realloc(slot.thread, slot.old, false);
                Ok(())
            }
            Kind::ThreadStart => {
                self.give(slot, stack, EventKind::ThreadStart { creator: slot.extra, task: slot.address }, sink)?;
                self.thread_begins(slot, sink)
            }
            Kind::ThreadEnd => {
                self.handles.retain(|_, thread| *thread != slot.thread);
                self.give(slot, stack, EventKind::ThreadEnd, sink)
            }
            Kind::ThreadName => self.thread_is_named(slot, text, sink),
            Kind::Map => {
                let SpoolEvent { address: start, size: length, extra, .. } = *slot;
                let (protection, flags) = (extra & 0xffff_ffff, extra >> 32);
                self.give(slot, stack, EventKind::Pages(Pages::Map { start, length, protection, flags }), sink)
            }
            Kind::Unmap => {
                self.give(slot, stack, EventKind::Pages(Pages::Unmap { start: slot.address, length: slot.size }), sink)
            }
            Kind::Remap => {
                let SpoolEvent { address: start, size: length, old: from, extra: from_length, .. } = *slot;
                self.give(slot, stack, EventKind::Pages(Pages::Remap { from, from_length, start, length }), sink)
            }
            Kind::Break => self.give(slot, stack, EventKind::Pages(Pages::Break { end: slot.address }), sink),
            Kind::Advise => {
                let SpoolEvent { address: start, size: length, extra: advice, .. } = *slot;
                self.give(slot, stack, EventKind::Pages(Pages::Advise { start, length, advice }), sink)
            }
            Kind::Mark => self.give(slot, stack, EventKind::Mark { name: text }, sink),
            Kind::PhaseBegin => self.give(slot, stack, EventKind::PhaseBegin { name: text }, sink),
            Kind::PhaseEnd => self.give(slot, stack, EventKind::PhaseEnd { name: text }, sink),
            Kind::Image => self.image(slot, text, stack, sink),
            Kind::Lost => self.give(slot, stack, EventKind::Lost { events: slot.size }, sink),
            Kind::Start => {
                self.starts += 1;
                self.give(slot, stack, EventKind::Recording { on: true }, sink)
            }
            Kind::Stop => self.give(slot, stack, EventKind::Recording { on: false }, sink),
            Kind::ModuleLoad => {
                let SpoolEvent { address: start, extra: end, old: bias, .. } = *slot;
                self.give(slot, stack, EventKind::ModuleLoad { bias, start, end, name: text }, sink)
            }
            Kind::Accesses => {
                let SpoolEvent { address, size: loads, old: stores, extra, .. } = *slot;
                let (touched, granules, reached) = accesses_of_word(extra);
                let accesses = Accesses { address, loads, stores, touched, granules, reached };
                self.give(slot, stack, EventKind::Accesses(accesses), sink)
            }
            Kind::LastAccess => {
                let SpoolEvent { address, extra: last, .. } = *slot;
                self.give(slot, stack, EventKind::LastAccess { address, last: last.min(slot.time) }, sink)
            }
            Kind::Untouched => {
                let SpoolEvent { address, size: bytes, .. } = *slot;
                self.give(slot, stack, EventKind::Untouched { address, bytes }, sink)
            }
            Kind::Enter => self.give(slot, stack, EventKind::Enter { function: slot.address }, sink),
            Kind::Leave => self.give(slot, stack, EventKind::Leave, sink),
            Kind::Processor => self.give(slot, stack, EventKind::Processor { cpu: slot.size }, sink),
            Kind::ModuleUnload => self.give(slot, stack, EventKind::ModuleUnload { start: slot.address }, sink),
            Kind::PythonFrame => {
                let end = text.iter().position(|byte| *byte == 0).unwrap_or(0);
                let (path, name) = text.split_at(end);
                let name = name.strip_prefix(&[0]).unwrap_or(name);
                self.give(slot, Stack::NONE, EventKind::Source { path }, sink)?;
                self.give(slot, Stack::NONE, EventKind::Symbol { frame: slot.address, line: slot.extra, name }, sink)
            }
            Kind::More | Kind::Stamp | Kind::Nothing | Kind::End | Kind::About => Ok(()),
            Kind::Malloc => self.call(Function::Malloc, slot, stack, sink),
            Kind::Calloc => self.call(Function::Calloc, slot, stack, sink),
            Kind::Memalign => self.call(Function::Memalign, slot, stack, sink),
            Kind::PosixMemalign => self.call(Function::PosixMemalign, slot, stack, sink),
            Kind::AlignedAlloc => self.call(Function::AlignedAlloc, slot, stack, sink),
            Kind::Valloc => self.call(Function::Valloc, slot, stack, sink),
            Kind::Pvalloc => self.call(Function::Pvalloc, slot, stack, sink),
            Kind::Realloc => self.realloc(Function::Realloc, slot, stack, sink),
            Kind::Reallocarray => self.realloc(Function::Reallocarray, slot, stack, sink),
        }
    }

    /// Ends the last image with the event `end`, if the image's end is known.
    ///
    /// # Errors
    /// Returns an error if the sink failed.
    pub(crate) fn finish(&mut self, end: Option<EventKind<'_>>, sink: &mut dyn EventSink) -> Result<()> {
        self.end_image(sink)?;
        match end {
            Some(end) if self.heap > 0 => sink.event(&Event { time: self.time, heap: self.heap, ..Event::new(end) }),
            _ => Ok(()),
        }
    }

    /// Returns the number of images so far.
    pub(crate) fn images(&self) -> u64 {
        self.heap
    }

    /// Returns the number of times that recording resumed.
    pub(crate) fn starts(&self) -> u64 {
        self.starts
    }

    /// Returns the time of the last event.
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// Sets the time of the next events.
    pub(crate) fn go_on_to(&mut self, time: u64) {
        self.time = self.time.max(time);
    }

    fn call(
        &mut self,
        function: Function,
        slot: &SpoolEvent,
        stack: Stack<'_>,
        sink: &mut dyn EventSink,
    ) -> Result<()> {
        let SpoolEvent { size, address, extra: detail, .. } = *slot;
        let call = Call { detail, size, usable: slot.about.usable(size), address, ..Call::new(function) };
        if address == 0 && !slot.flags.has(Flags::NO_ADDRESS) {
            return self.give(slot, stack, EventKind::Failed(call), sink);
        }
        self.address_is_free(slot, sink)?;
        self.give(slot, stack, EventKind::Call(call), sink)
    }

    fn realloc(
        &mut self,
        function: Function,
        slot: &SpoolEvent,
        stack: Stack<'_>,
        sink: &mut dyn EventSink,
    ) -> Result<()> {
        let begun = self.pending.remove(&slot.thread).filter(|begun| begun.old == slot.old);
        let taken = begun.is_some_and(|begun| begun.taken);
        let SpoolEvent { size, address, old, extra: detail, .. } = *slot;
        let failed = address == 0 && !slot.flags.has(Flags::NO_ADDRESS);
        let usable = if failed { 0 } else { slot.about.usable(size) };
        let call = Call { detail, size, usable, old, address, ..Call::new(function) };
        if failed && !call.old_is_gone() {
            return self.give(slot, stack, EventKind::Failed(call), sink);
        }
        if address != old {
            self.address_is_free(slot, sink)?;
        }
        let kind = if taken { EventKind::ReallocEnd(Call { old: 0, ..call }) } else { EventKind::Call(call) };
        self.give(slot, stack, kind, sink)
    }

    /// Records that the allocator returned the slot's address. If another thread is in a realloc whose old block has
    /// this address, that block was freed, which is recorded as an event.
    #[inline]
    fn address_is_free(&mut self, slot: &SpoolEvent, sink: &mut dyn EventSink) -> Result<()> {
        if self.pending.is_empty() { Ok(()) } else { self.address_is_freed(slot, sink) }
    }

    #[cold]
    fn address_is_freed(&mut self, slot: &SpoolEvent, sink: &mut dyn EventSink) -> Result<()> {
        let other = self
            .pending
            .iter_mut()
            .find(|(thread, pending)| **thread != slot.thread && pending.old == slot.address && !pending.taken);
        let Some((thread, pending)) = other else { return Ok(()) };
        pending.taken = true;
        let (time, thread, heap) = (slot.time, u64::from(*thread), self.heap);
        sink.event(&Event { time, thread, heap, ..Event::new(EventKind::ReallocBegin { old: slot.address }) })
    }

    #[inline]
    fn give(&self, slot: &SpoolEvent, stack: Stack<'_>, kind: EventKind<'_>, sink: &mut dyn EventSink) -> Result<()> {
        sink.event(&self.event(slot, stack, kind))
    }

    #[inline]
    fn event<'e>(&self, slot: &SpoolEvent, stack: Stack<'e>, kind: EventKind<'e>) -> Event<'e> {
        Event { time: slot.time, thread: slot.thread.into(), heap: self.heap, stack, ..Event::new(kind) }
    }

    /// Stores the `pthread_t` by which other threads name a thread, and applies a name that the thread has already
    /// received.
    fn thread_begins(&mut self, slot: &SpoolEvent, sink: &mut dyn EventSink) -> Result<()> {
        if slot.old == 0 {
            return Ok(());
        }
        self.handles.insert(slot.old, slot.thread);
        match self.early.remove(&slot.old) {
            Some(name) => self.give(slot, Stack::NONE, EventKind::ThreadName { name: &name }, sink),
            None => Ok(()),
        }
    }

    /// Names the calling thread, or the thread identified by a handle.
    fn thread_is_named(&mut self, slot: &SpoolEvent, name: &[u8], sink: &mut dyn EventSink) -> Result<()> {
        let thread = match slot.extra {
            0 => slot.thread,
            handle => match self.handles.get(&handle) {
                Some(thread) => *thread,
                None if self.early.len() < EARLY => {
                    self.early.insert(handle, name.to_vec());
                    return Ok(());
                }
                None => return Ok(()),
            },
        };
        self.give(&SpoolEvent { thread, ..*slot }, Stack::NONE, EventKind::ThreadName { name }, sink)
    }

    /// Notes that a realloc of a block has begun. `taken` specifies whether the trace already contains the free of the
    /// block.
    pub(crate) fn begin_realloc(&mut self, thread: u32, old: u64, taken: bool) {
        // If a realloc of this block by this thread is already known, it is the same realloc, which is read again while
        // a trace is completed.
        let taken = taken || self.pending.get(&thread).is_some_and(|known| known.old == old && known.taken);
        self.pending.insert(thread, Pending { old, taken });
    }

    /// Resumes after the end of an existing trace that contains `images` images.
    pub(crate) fn after(&mut self, images: u64) {
        (self.heap, self.main_known) = (images, images > 0);
    }

    /// Begins a new image. The previous image ended by exec.
    fn image(&mut self, slot: &SpoolEvent, path: &[u8], stack: Stack<'_>, sink: &mut dyn EventSink) -> Result<()> {
        self.end_image(sink)?;
        self.heap += 1;
        if !std::mem::replace(&mut self.main_known, true) {
            self.give(slot, stack, EventKind::ThreadStart { creator: 0, task: slot.extra }, sink)?;
        }
        self.handles.clear();
        self.early.clear();
        if slot.old != 0 {
            self.handles.insert(slot.old, slot.thread);
        }
        self.give(slot, stack, EventKind::Image { process: slot.extra, path }, sink)
    }

    fn end_image(&mut self, sink: &mut dyn EventSink) -> Result<()> {
        for (thread, pending) in self.pending.drain() {
            let old = pending.old;
            sink.comment(format!("a realloc of 0x{old:x} by thread {thread} did not return").as_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
