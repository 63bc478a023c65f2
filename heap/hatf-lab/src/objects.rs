//! Converts the records of a trace to object events. The clock follows Zorn and Grunwald's models (CU-CS-603-92,
//! 5.4.3): each malloc and each free is one tick.
//!
//! The paper covers malloc and free only. Here every allocating function counts as malloc, and `realloc` counts as a
//! free of the old block followed by a malloc of the new one. Calls that no correct program makes are counted as
//! [`Contradictions`](crate::Contradictions).

use hatf_trace::event::UNKNOWN_SIZE;
use hatf_trace::{Event, EventKind};

use crate::live_blocks::Blocks;
use crate::totals::{Oddities, Totals};
use crate::{Error, Result};

/// An object from its allocation to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// The slot of the object, which is below the maximum number of simultaneously live objects. Slots are reused after
    /// an object ends.
    pub slot: u32,
    /// The number of objects allocated before this one.
    pub number: u64,
    /// The object's address.
    pub address: u64,
    /// The requested size in bytes.
    pub size: u64,
    /// The tick of the allocation.
    pub tick: u64,
    /// The time of the allocation in nanoseconds; 0 if the trace has no timestamps.
    pub time: u64,
    /// The thread that allocated the object.
    pub thread: u64,
    /// The stack that allocated the object, as numbered by the source; 0 if unknown.
    pub site: u64,
    /// The heap that contains the object.
    pub heap: u64,
    /// The number of bytes allocated up to and including the object.
    pub allocated: u64,
}

/// A change to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object was allocated.
    Allocated,
    /// The object was freed.
    Freed,
}

/// The cause of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The program called an allocating or freeing function.
    Call,
    /// The program called `realloc`, which frees one block and allocates another.
    Realloc,
    /// Another object began at the object's address, so the trace lacks the free.
    Overlaid,
    /// The object's heap was destroyed, or its program exited and another program followed. The object was never freed.
    Left,
    /// Another program replaced the object's program (exec).
    Exec,
    /// Recording was resumed. The object may have been freed while recording was off.
    Resumed,
}

/// The change to an object in one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectEvent {
    /// The tick of the event. The first event has tick 1.
    pub tick: u64,
    /// Nanoseconds since the start of the recording; 0 if the trace has no timestamps.
    pub time: u64,
    /// The thread that allocates or frees the object.
    pub thread: u64,
    /// The kind of change.
    pub change: Change,
    /// The cause of the change.
    pub cause: Cause,
    /// The affected object.
    pub object: Object,
}

impl ObjectEvent {
    /// Returns whether the event belongs to a realloc, as the end of the old object or the start of the new one.
    #[must_use]
    pub fn is_realloc(&self) -> bool {
        self.cause == Cause::Realloc
    }
}

/// The stored data of an [`Object`] whose address and slot are known. The data fits in one cache line, because objects
/// end in an unpredictable order and each access is therefore a cache miss.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Kept {
    number: u64,
    size: u64,
    tick: u64,
    time: u64,
    thread: u64,
    site: u64,
    heap: u64,
    allocated: u64,
}

impl Kept {
    #[inline]
    fn at(&self, address: u64, slot: u32) -> Object {
        let Self { number, size, tick, time, thread, site, heap, allocated } = *self;
        Object { slot, number, address, size, tick, time, thread, site, heap, allocated }
    }
}

/// The number of blocks above which lookups miss the cache so often that prefetching pays off.
const FAR: usize = 1 << 18;

/// The live objects. Memory is bounded by the maximum number of simultaneously live objects.
///
/// # Examples
///
/// ```
/// use hatf_lab::{Change, ObjectEvent, Objects};
/// use hatf_trace::Event;
///
/// let (mut objects, mut ticks) = (Objects::new(), Vec::new());
/// let mut note = |event: &ObjectEvent| {
///     ticks.push((event.tick, event.change, event.object.size));
///     Ok(())
/// };
/// // The stack of both calls has number 7.
/// objects.follow(&Event::malloc(0x1000, 24), 7, &mut note)?;
/// objects.follow(&Event::realloc(0x1000, 0x2000, 100), 7, &mut note)?;
/// assert_eq!(ticks, [(1, Change::Allocated, 24), (2, Change::Freed, 24), (3, Change::Allocated, 100)]);
/// assert_eq!(objects.live_bytes(), 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Objects {
    by_address: Blocks,
    /// Objects by slot.
    objects: Vec<Kept>,
    spare: Vec<u32>,
    live_bytes: u64,
    totals: Totals,
    /// The last tick of a program that has exited. Objects live at that tick were never freed.
    exited: u64,
    /// Frees of unknown objects before recording was first switched off.
    unmatched: Option<u64>,
}

impl Objects {
    /// Creates an empty heap at tick 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the current totals.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut contradictions = self.by_address.contradictions();
        contradictions.unmatched_frees -= self.frees_of_unseen();
        let oddities = Oddities { contradictions, ..self.totals.oddities };
        Totals { never_freed: self.by_address.len() as u64, oddities, ..self.totals }
    }

    /// Returns the live objects in arbitrary order.
    pub fn live(&self) -> impl Iterator<Item = Object> {
        self.by_address.iter().filter_map(|(address, slot)| Some(self.objects.get(slot as usize)?.at(address, slot)))
    }

    /// Returns the live object that begins at an address.
    #[must_use]
    pub(crate) fn at(&self, address: u64) -> Option<Object> {
        let slot = self.slot(address)?;
        Some(self.objects.get(slot as usize)?.at(address, slot))
    }

    /// Returns the slot of the object that begins at an address.
    #[must_use]
    pub fn slot(&self, address: u64) -> Option<u32> {
        self.by_address.get(address)
    }

    /// Prefetches the data of blocks that are about to begin or end at these addresses, so memory latency is paid once
    /// instead of once per block. Does nothing if few blocks are live, because their data is in the cache.
    #[inline]
    pub fn look_ahead(&mut self, addresses: &[u64]) {
        if self.by_address.len() < FAR {
            return;
        }
        let (objects, mut read) = (&self.objects, 0);
        self.by_address.look_at(addresses, |slot| read ^= objects.get(slot as usize).map_or(0, |kept| kept.number));
        std::hint::black_box(read);
    }

    /// Returns the number of live bytes.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Returns the number of live objects.
    #[must_use]
    pub fn live_count(&self) -> u64 {
        self.by_address.len() as u64
    }

    /// Returns the number of the last event, or 0 if there was none.
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.totals.events
    }

    /// Returns the number of allocated objects and their bytes.
    #[must_use]
    pub fn allocated(&self) -> (u64, u64) {
        (self.totals.objects, self.totals.bytes)
    }

    /// Returns the number of frees of unrecorded objects, which were allocated before recording started or while it was
    /// off.
    #[must_use]
    pub fn frees_of_unseen(&self) -> u64 {
        let unmatched = self.by_address.contradictions().unmatched_frees;
        self.unmatched.map_or(0, |before| unmatched.saturating_sub(before))
    }

    /// Processes a record. `site` is the number of its stack, and `give` receives the resulting object events.
    ///
    /// An exec, which replaces the program, ends all live objects. The destruction of a heap ends the objects in that
    /// heap.
    ///
    /// # Errors
    /// Fails if `give` fails or if 2^32 objects are live.
    #[inline]
    pub fn follow(
        &mut self,
        event: &Event<'_>,
        site: u64,
        give: &mut impl FnMut(&ObjectEvent) -> Result<()>,
    ) -> Result<()> {
        let Event { time, thread, .. } = *event;
        match event.kind {
            EventKind::Call(ref call) if call.old != 0 && call.address != 0 => {
                let ended = self.end_at(call.old, time, thread, Cause::Realloc, give)?;
                let cause = if ended.is_some() { Cause::Realloc } else { Cause::Call };
                let size = (call.size != UNKNOWN_SIZE).then_some(call.size).or(ended);
                self.begin(event, call.address, size, site, cause, give)
            }
            EventKind::Call(ref call) | EventKind::ReallocEnd(ref call) if call.address != 0 => {
                let size = (call.size != UNKNOWN_SIZE).then_some(call.size);
                self.begin(event, call.address, size, site, Cause::Call, give)
            }
            EventKind::Call(ref call) if call.old_is_gone() => {
                self.end_at(call.old, time, thread, Cause::Call, give).map(|_| ())
            }
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => {
                self.end_at(address, time, thread, Cause::Call, give).map(|_| ())
            }
            EventKind::DestroyHeap => {
                let ended = self.live().filter(|object| object.heap == event.heap).collect();
                self.end_all(ended, time, Cause::Left, give)
            }
            // The objects that are live now are never freed, even if another program follows.
            EventKind::Exit { .. } | EventKind::Killed { .. } => {
                self.exited = self.totals.events;
                Ok(())
            }
            EventKind::Recording { on } => {
                // From here on, a free of an unknown object is not a contradiction.
                let unmatched = self.by_address.contradictions().unmatched_frees;
                self.unmatched.get_or_insert(unmatched);
                if on { self.start_again(Cause::Resumed, time, give) } else { Ok(()) }
            }
            EventKind::Image { .. } => self.start_again(Cause::Exec, time, give),
            _ => Ok(()),
        }
    }

    /// Begins an object. `None` means that the size is unknown.
    #[inline]
    fn begin(
        &mut self,
        event: &Event<'_>,
        address: u64,
        size: Option<u64>,
        site: u64,
        cause: Cause,
        give: &mut impl FnMut(&ObjectEvent) -> Result<()>,
    ) -> Result<()> {
        let Event { time, thread, heap, .. } = *event;
        let before = self.by_address.make_way(address, size_in(&self.objects));
        if let Some(slot) = before {
            self.end(address, slot, time, Some(thread), Cause::Overlaid, give)?;
        }
        let size = size.unwrap_or_else(|| {
            self.totals.oddities.unknown_sizes += 1;
            0
        });
        let slot = match self.spare.pop() {
            Some(slot) => slot,
            None => u32::try_from(self.objects.len())
                .ok()
                .filter(|slot| *slot < Blocks::MOST)
                .ok_or(Error::Limit("2^32 live objects"))?,
        };
        self.totals.events += 1;
        self.totals.bytes = self.totals.bytes.saturating_add(size);
        let (number, tick, allocated) = (self.totals.objects, self.totals.events, self.totals.bytes);
        let kept = Kept { number, size, tick, time, thread, site, heap, allocated };
        match self.objects.get_mut(slot as usize) {
            Some(place) => *place = kept,
            None => self.objects.push(kept),
        }
        self.by_address.insert(address, size, slot);
        self.live_bytes = self.live_bytes.saturating_add(size);
        self.totals.objects += 1;
        self.totals.max_bytes = self.totals.max_bytes.max(self.live_bytes);
        self.totals.max_objects = self.totals.max_objects.max(self.by_address.len() as u64);
        let object = kept.at(address, slot);
        give(&ObjectEvent { tick, time, thread, change: Change::Allocated, cause, object })
    }

    /// Ends all objects in allocation order, because another program replaces theirs or because recording is resumed.
    fn start_again(
        &mut self,
        cause: Cause,
        time: u64,
        give: &mut impl FnMut(&ObjectEvent) -> Result<()>,
    ) -> Result<()> {
        let ended = self.live().collect();
        // Discard the freed blocks as well, because later events do not refer to them.
        self.by_address.clear();
        self.end_all(ended, time, cause, give)?;
        self.exited = 0;
        Ok(())
    }

    fn end_all(
        &mut self,
        mut ended: Vec<Object>,
        time: u64,
        cause: Cause,
        give: &mut impl FnMut(&ObjectEvent) -> Result<()>,
    ) -> Result<()> {
        ended.sort_unstable_by_key(|object| object.number);
        self.totals.oddities.ended_with_heap += ended.len() as u64;
        ended.into_iter().try_for_each(|object| {
            let cause = if object.tick <= self.exited { Cause::Left } else { cause };
            self.by_address.take(object.address, size_in(&self.objects));
            self.end(object.address, object.slot, time, None, cause, give).map(|_| ())
        })
    }

    /// Ends the object at an address and returns its size. If there is no object at the address, counts a
    /// contradiction.
    #[inline]
    fn end_at(
        &mut self,
        address: u64,
        time: u64,
        thread: u64,
        cause: Cause,
        give: &mut impl FnMut(&ObjectEvent) -> Result<()>,
    ) -> Result<Option<u64>> {
        match self.by_address.take(address, size_in(&self.objects)) {
            Some(slot) => self.end(address, slot, time, Some(thread), cause, give),
            None => {
                self.by_address.missing(address);
                Ok(None)
            }
        }
    }

    /// Ends an object that has already been removed from its address, and returns its size. `None` as the thread means
    /// the thread that allocated the object.
    #[inline]
    fn end(
        &mut self,
        address: u64,
        slot: u32,
        time: u64,
        thread: Option<u64>,
        cause: Cause,
        give: &mut impl FnMut(&ObjectEvent) -> Result<()>,
    ) -> Result<Option<u64>> {
        let Some(kept) = self.objects.get(slot as usize) else { return Ok(None) };
        let object = kept.at(address, slot);
        self.spare.push(slot);
        self.totals.events += 1;
        self.live_bytes = self.live_bytes.saturating_sub(object.size);
        let thread = thread.unwrap_or(object.thread);
        let tick = self.totals.events;
        give(&ObjectEvent { tick, time, thread, change: Change::Freed, cause, object })?;
        Ok(Some(object.size))
    }
}

/// Returns a function that maps a slot to the object's size.
fn size_in(objects: &[Kept]) -> impl Fn(u32) -> u64 + '_ {
    |slot| objects.get(slot as usize).map_or(0, |object| object.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contradictions::Contradictions;

    #[test]
    fn calls_become_ticks() {
        let mut seen = Vec::new();
        let mut note = |event: &ObjectEvent| {
            seen.push((event.tick, event.change, event.object.number, event.object.size));
            Ok(())
        };
        let mut objects = Objects::new();
        objects.follow(&Event::malloc(16, 5), 0, &mut note).unwrap();
        objects.follow(&Event::realloc(16, 16, 7), 0, &mut note).unwrap();
        objects.follow(&Event::free(32), 0, &mut note).unwrap();
        objects.follow(&Event::realloc(16, 64, UNKNOWN_SIZE), 0, &mut note).unwrap();
        objects.follow(&Event::malloc(64, 1), 0, &mut note).unwrap();
        objects.follow(&Event::realloc(8, 96, UNKNOWN_SIZE), 0, &mut note).unwrap();
        objects.follow(&Event::new(EventKind::DestroyHeap), 0, &mut note).unwrap();
        let (a, f) = (Change::Allocated, Change::Freed);
        let expected = [
            (1, a, 0, 5),
            (2, f, 0, 5),
            (3, a, 1, 7),
            (4, f, 1, 7),
            (5, a, 2, 7),
            (6, f, 2, 7),
            (7, a, 3, 1),
            (8, a, 4, 0),
            (9, f, 3, 1),
            (10, f, 4, 0),
        ];
        assert_eq!(seen, expected);
        let contradictions =
            Contradictions { unmatched_frees: 2, allocs_of_live_blocks: 1, ..Contradictions::default() };
        let oddities = Oddities { contradictions, ended_with_heap: 2, unknown_sizes: 1 };
        let totals = objects.totals();
        assert_eq!((totals.oddities, totals.events, totals.objects, totals.never_freed), (oddities, 10, 5, 0));
        assert_eq!((totals.bytes, totals.max_bytes, totals.max_objects, objects.live_bytes()), (20, 7, 2, 0));
    }

    /// Each kind of contradiction is counted once, and the end of a heap ends its blocks.
    #[test]
    fn contradictions_are_counted() {
        let mut objects = Objects::new();
        let none = &mut |_: &ObjectEvent| Ok(());
        objects.follow(&Event::malloc(1000, 100), 0, none).unwrap();
        objects.follow(&Event::malloc(1020, 100), 0, none).unwrap();
        objects.follow(&Event::malloc(5000, 1 << 40), 0, none).unwrap();
        objects.follow(&Event::malloc(1 << 30, 1), 0, none).unwrap();
        objects.follow(&Event::free(1000), 0, none).unwrap();
        objects.follow(&Event::free(1000), 0, none).unwrap();
        objects.follow(&Event::realloc(1000, 900, 200), 0, none).unwrap();
        objects.follow(&Event::free(7), 0, none).unwrap();
        objects.follow(&Event::malloc(1020, 1), 0, none).unwrap();
        let contradictions = Contradictions {
            unmatched_frees: 1,
            frees_of_freed_blocks: 2,
            allocs_of_live_blocks: 1,
            overlapping_blocks: 3,
        };
        assert_eq!(objects.totals().oddities.contradictions, contradictions);
        objects.follow(&Event::new(EventKind::Image { process: 1, path: b"" }), 0, none).unwrap();
        objects.follow(&Event::malloc(900, 1 << 40), 0, none).unwrap();
        objects.follow(&Event::free(1000), 0, none).unwrap();
        let contradictions = Contradictions { unmatched_frees: 2, ..contradictions };
        assert_eq!(objects.totals().oddities.contradictions, contradictions);
    }

    #[test]
    fn slots_are_used_again() {
        let mut objects = Objects::new();
        let mut most = 0;
        for n in 0..1000_u64 {
            let mut note = |event: &ObjectEvent| {
                most = most.max(event.object.slot);
                Ok(())
            };
            objects.follow(&Event::malloc(n * 16 + 16, 1), 0, &mut note).unwrap();
            if n >= 10 {
                objects.follow(&Event::free((n - 9) * 16), 0, &mut note).unwrap();
            }
        }
        assert_eq!(most, 10);
    }
}
