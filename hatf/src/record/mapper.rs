//! From slots of the ring to events.
//!
//! *Realloc across threads.* Its old block ends before the call returns, its new one begins after: another thread may be
//! given the old address before the end of the call is in the ring. Then a [`EventKind::ReallocBegin`] stands before that
//! other thread's call, and the realloc becomes a [`EventKind::ReallocEnd`]. So in a trace no address is allocated while it is
//! live.

use std::collections::HashMap;

use hatf_record::{Event as Slot, Kind, TEXT_MAX};

use crate::Result;
use crate::event::{Call, Event, EventKind, EventSink, Function};

/// A realloc that began and has not ended.
struct Pending {
    old: u64,
    /// Its old block was already recorded as freed.
    taken: bool,
}

/// An event whose text is still being read: an image and its path, a mark or a phase and its name.
struct Arriving {
    text: Vec<u8>,
    length: usize,
    slot: Slot,
}

/// Makes events of slots.
#[derive(Default)]
pub(super) struct Mapper {
    /// The number of the image, which is its heap's; 0 before the first.
    heap: u64,
    time: u64,
    main_known: bool,
    pending: HashMap<u32, Pending>,
    arriving: Option<Arriving>,
}

impl Mapper {
    /// Takes a slot, and gives the sink the events it makes.
    ///
    /// # Errors
    /// The sink's.
    pub(super) fn slot(&mut self, slot: &Slot, sink: &mut dyn EventSink) -> Result<()> {
        if slot.kind == Kind::Text {
            return self.text(slot, sink);
        }
        self.arrived(sink)?;
        self.time = slot.time;
        match slot.kind {
            Kind::Free => self.give(slot, EventKind::Free { address: slot.address }, sink),
            Kind::ReallocBegin => {
                self.pending.insert(slot.thread, Pending { old: slot.old, taken: false });
                Ok(())
            }
            Kind::ThreadStart => self.give(slot, EventKind::ThreadStart { creator: slot.extra }, sink),
            Kind::ThreadEnd => self.give(slot, EventKind::ThreadEnd, sink),
            Kind::Image | Kind::Mark | Kind::PhaseBegin | Kind::PhaseEnd => {
                // The number comes from memory that the program may have overwritten.
                let length = usize::try_from(slot.size).map_or(TEXT_MAX, |length| length.min(TEXT_MAX));
                self.arriving = Some(Arriving { text: Vec::new(), length, slot: *slot });
                if length == 0 { self.arrived(sink) } else { Ok(()) }
            }
            Kind::Text => Ok(()),
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

    /// Ends the last image.
    ///
    /// # Errors
    /// The sink's.
    pub(super) fn finish(&mut self, end: EventKind<'_>, sink: &mut dyn EventSink) -> Result<()> {
        self.arrived(sink)?;
        self.end_image(sink)?;
        if self.heap == 0 {
            return Ok(());
        }
        sink.event(&Event { time: self.time, heap: self.heap, ..Event::new(end) })
    }

    /// Returns the number of images so far.
    pub(super) fn images(&self) -> u64 {
        self.heap
    }

    /// Returns the time of the last slot.
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
        sink.event(&Event { time: slot.time, thread: slot.thread.into(), heap: self.heap, ..Event::new(kind) })
    }

    fn text(&mut self, slot: &Slot, sink: &mut dyn EventSink) -> Result<()> {
        let Some(arriving) = &mut self.arriving else { return Ok(()) };
        let left = arriving.length - arriving.text.len();
        arriving.text.extend(slot.text_bytes().iter().take(left));
        if arriving.text.len() == arriving.length { self.arrived(sink) } else { Ok(()) }
    }

    /// Ends the event whose text was being read, if there is one: all of its text is here, or the rest is lost.
    fn arrived(&mut self, sink: &mut dyn EventSink) -> Result<()> {
        let Some(Arriving { text, slot, .. }) = self.arriving.take() else { return Ok(()) };
        let name = text.as_slice();
        match slot.kind {
            Kind::Mark => self.give(&slot, EventKind::Mark { name }, sink),
            Kind::PhaseBegin => self.give(&slot, EventKind::PhaseBegin { name }, sink),
            Kind::PhaseEnd => self.give(&slot, EventKind::PhaseEnd { name }, sink),
            _ => self.image(&slot, name, sink),
        }
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
