//! From events of the spool to those of a trace.
//!
//! *Realloc across threads.* Its old block ends before the call returns, its new one begins after: another thread may be
//! given the old address before the end of the call is in the spool. Then a [`EventKind::ReallocBegin`] stands before that
//! other thread's call, and the realloc becomes a [`EventKind::ReallocEnd`]. So in a trace no address is allocated while it is
//! live.

use std::collections::HashMap;

use hatf_record::{Event as Slot, Kind, accesses_of_word};

use crate::Result;
use crate::event::{Accesses, Call, Event, EventKind, EventSink, Function};

/// A realloc that began and has not ended.
struct Pending {
    old: u64,
    /// Its old block was already recorded as freed.
    taken: bool,
}

/// Makes events of a trace of those of the spool.
#[derive(Default)]
pub(super) struct Mapper {
    /// The number of the image, which is its heap's; 0 before the first.
    heap: u64,
    /// How often recording went on.
    starts: u64,
    time: u64,
    main_known: bool,
    pending: HashMap<u32, Pending>,
    /// The stack of the call at hand.
    stack: Vec<u64>,
}

impl Mapper {
    /// Takes an event whose time is in nanoseconds, its text, and its stack, and gives the sink the events it makes.
    ///
    /// # Errors
    /// The sink's.
    pub(super) fn slot(&mut self, slot: &Slot, text: &[u8], stack: &[u64], sink: &mut dyn EventSink) -> Result<()> {
        self.time = slot.time;
        self.stack.clear();
        self.stack.extend_from_slice(stack);
        match slot.kind {
            Kind::Free => self.give(slot, EventKind::Free { address: slot.address }, sink),
            Kind::ReallocBegin => {
                self.begin_realloc(slot.thread, slot.old, false);
                Ok(())
            }
            Kind::ThreadStart => self.give(slot, EventKind::ThreadStart { creator: slot.extra }, sink),
            Kind::ThreadEnd => self.give(slot, EventKind::ThreadEnd, sink),
            Kind::Mark => self.give(slot, EventKind::Mark { name: text }, sink),
            Kind::PhaseBegin => self.give(slot, EventKind::PhaseBegin { name: text }, sink),
            Kind::PhaseEnd => self.give(slot, EventKind::PhaseEnd { name: text }, sink),
            Kind::Image => self.image(slot, text, sink),
            Kind::Lost => self.give(slot, EventKind::Lost { events: slot.size }, sink),
            Kind::Start => {
                self.starts += 1;
                self.give(slot, EventKind::Recording { on: true }, sink)
            }
            Kind::Stop => self.give(slot, EventKind::Recording { on: false }, sink),
            Kind::ModuleLoad => {
                let Slot { address: start, extra: end, old: bias, .. } = *slot;
                self.give(slot, EventKind::ModuleLoad { bias, start, end, name: text }, sink)
            }
            Kind::Accesses => {
                let Slot { address, size: loads, old: stores, extra, .. } = *slot;
                let (touched, granules, reached) = accesses_of_word(extra);
                let accesses = Accesses { address, loads, stores, touched, granules, reached };
                self.give(slot, EventKind::Accesses(accesses), sink)
            }
            Kind::Enter => self.give(slot, EventKind::Enter { function: slot.address }, sink),
            Kind::Leave => self.give(slot, EventKind::Leave, sink),
            Kind::ModuleUnload => self.give(slot, EventKind::ModuleUnload { start: slot.address }, sink),
            Kind::More | Kind::Stamp | Kind::Nothing | Kind::End | Kind::Stack => Ok(()),
            Kind::Malloc => self.call(Function::Malloc, slot, sink),
            Kind::Calloc => self.call(Function::Calloc, slot, sink),
            Kind::Memalign => self.call(Function::Memalign, slot, sink),
            Kind::PosixMemalign => self.call(Function::PosixMemalign, slot, sink),
            Kind::AlignedAlloc => self.call(Function::AlignedAlloc, slot, sink),
            Kind::Valloc => self.call(Function::Valloc, slot, sink),
            Kind::Pvalloc => self.call(Function::Pvalloc, slot, sink),
            Kind::Realloc => self.realloc(Function::Realloc, slot, sink),
            Kind::Reallocarray => self.realloc(Function::Reallocarray, slot, sink),
        }
    }

    /// Ends the last image, by this event if its end is known.
    ///
    /// # Errors
    /// The sink's.
    pub(super) fn finish(&mut self, end: Option<EventKind<'_>>, sink: &mut dyn EventSink) -> Result<()> {
        self.end_image(sink)?;
        match end {
            Some(end) if self.heap > 0 => sink.event(&Event { time: self.time, heap: self.heap, ..Event::new(end) }),
            _ => Ok(()),
        }
    }

    /// Returns the number of images so far.
    pub(super) fn images(&self) -> u64 {
        self.heap
    }

    /// Returns how often recording went on that was off.
    pub(super) fn starts(&self) -> u64 {
        self.starts
    }

    /// Returns the time of the last event.
    pub(super) fn time(&self) -> u64 {
        self.time
    }

    fn call(&mut self, function: Function, slot: &Slot, sink: &mut dyn EventSink) -> Result<()> {
        let Slot { size, address, extra: detail, .. } = *slot;
        let call = Call { detail, size, address, ..Call::new(function) };
        if address == 0 {
            return self.give(slot, EventKind::Failed(call), sink);
        }
        self.address_is_free(slot, sink)?;
        self.give(slot, EventKind::Call(call), sink)
    }

    fn realloc(&mut self, function: Function, slot: &Slot, sink: &mut dyn EventSink) -> Result<()> {
        let begun = self.pending.remove(&slot.thread).filter(|begun| begun.old == slot.old);
        let taken = begun.is_some_and(|begun| begun.taken);
        let Slot { size, address, old, extra: detail, .. } = *slot;
        let call = Call { detail, size, old, address, ..Call::new(function) };
        if address == 0 && !call.old_is_gone() {
            return self.give(slot, EventKind::Failed(call), sink);
        }
        if address != old {
            self.address_is_free(slot, sink)?;
        }
        let kind = if taken { EventKind::ReallocEnd(Call { old: 0, ..call }) } else { EventKind::Call(call) };
        self.give(slot, kind, sink)
    }

    /// Records that the allocator returns the slot's address. If that is the old block of a realloc that another
    /// thread is in the middle of, that block was freed: an event is recorded for that.
    fn address_is_free(&mut self, slot: &Slot, sink: &mut dyn EventSink) -> Result<()> {
        let other = self
            .pending
            .iter_mut()
            .find(|(thread, pending)| **thread != slot.thread && pending.old == slot.address && !pending.taken);
        let Some((thread, pending)) = other else { return Ok(()) };
        pending.taken = true;
        let (time, thread, heap) = (slot.time, u64::from(*thread), self.heap);
        sink.event(&Event { time, thread, heap, ..Event::new(EventKind::ReallocBegin { old: slot.address }) })
    }

    fn give(&mut self, slot: &Slot, kind: EventKind<'_>, sink: &mut dyn EventSink) -> Result<()> {
        let (thread, heap, stack) = (slot.thread.into(), self.heap, &self.stack[..]);
        sink.event(&Event { time: slot.time, thread, heap, stack, ..Event::new(kind) })
    }

    /// Notes that a realloc of a block has begun; `taken` if the trace has it as freed.
    pub(super) fn begin_realloc(&mut self, thread: u32, old: u64, taken: bool) {
        // One that is known already is the same: a trace is being completed.
        let taken = taken || self.pending.get(&thread).is_some_and(|known| known.old == old && known.taken);
        self.pending.insert(thread, Pending { old, taken });
    }

    /// Goes on where a trace ends, in this image.
    pub(super) fn after(&mut self, images: u64) {
        (self.heap, self.main_known) = (images, images > 0);
    }

    /// Begins a new image; the one before ended by exec.
    fn image(&mut self, slot: &Slot, path: &[u8], sink: &mut dyn EventSink) -> Result<()> {
        self.end_image(sink)?;
        self.heap += 1;
        if !std::mem::replace(&mut self.main_known, true) {
            self.give(slot, EventKind::ThreadStart { creator: 0 }, sink)?;
        }
        self.give(slot, EventKind::Image { process: slot.extra, path }, sink)
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
