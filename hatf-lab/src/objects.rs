//! Turns calls into events of objects: the clock of Zorn and Grunwald's models (CU-CS-603-92, 5.4.3), in which each malloc
//! and each free is one tick.
//!
//! The paper knows malloc and free only. Here every function that allocates counts as malloc, and `realloc` as a free of the
//! old block and then a malloc of the new. Calls that no correct program makes are counted (see [`Contradictions`](crate::Contradictions)).

use crate::blocks::Blocks;
use crate::totals::{Oddities, Totals};
use crate::{Error, Result};

/// An object, from its allocation to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// A number below the most objects live at once. It is used again after the object's end.
    pub slot: u32,
    /// Objects allocated before it.
    pub number: u64,
    /// Where it lies.
    pub address: u64,
    /// Bytes asked for.
    pub size: u64,
    /// The tick of its allocation.
    pub tick: u64,
    /// When it was allocated, in nanoseconds; 0 where the trace has no times.
    pub time: u64,
    /// The thread that allocated it.
    pub thread: u64,
    /// Which stack allocated it, as the source numbers stacks; 0: not known.
    pub site: u64,
    /// The heap that it lies in.
    pub heap: u64,
    /// Bytes that had been allocated when it was, its own among them.
    pub allocated: u64,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was allocated.
    Allocated,
    /// It was freed.
    Freed,
}

/// Why it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The program called a function that allocates, or frees.
    Call,
    /// It called `realloc`, which frees one block and allocates another.
    Realloc,
    /// Another object begins where this one lies: its free is not in the trace.
    Overlaid,
    /// Its heap was destroyed, or its program ended before another took its place: it was never freed.
    Left,
    /// Another program takes the place of its own (exec).
    Exec,
    /// Recording goes on: it may have been freed while recording was off.
    Resumed,
}

/// One tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The clock: 1 for the first event, 2 for the next.
    pub tick: u64,
    /// Nanoseconds since the start of the recording; 0 where the trace has no times.
    pub time: u64,
    /// The thread that allocates, or frees.
    pub thread: u64,
    /// What happened.
    pub change: Change,
    /// Why.
    pub cause: Cause,
    /// The object it happened to.
    pub object: Object,
}

impl Event {
    /// Returns whether it is one half of a realloc: the end of the old object, or the beginning of the new one.
    #[must_use]
    pub fn is_realloc(&self) -> bool {
        self.cause == Cause::Realloc
    }
}

/// Receives events, in order.
///
/// `Option`s and pairs of observers are observers, so that several of them share one pass over a trace.
pub trait Observer {
    /// Receives an event.
    ///
    /// # Errors
    /// No more should be given.
    fn event(&mut self, event: &Event) -> Result<()>;

    /// Learns what was counted so far of the live object with this slot.
    fn accessed(&mut self, slot: u32, accesses: &Accesses) {
        let _ = (slot, accesses);
    }

    /// Learns that a thread runs on this processor from here on.
    fn runs_on(&mut self, thread: u64, processor: u64) {
        let _ = (thread, processor);
    }

    /// Learns, before the first event, that objects are a sample: one of `s` bytes is in the trace with probability
    /// `1 - exp(-s / mean)`.
    fn sampled(&mut self, mean: u64) {
        let _ = mean;
    }
}

/// Stops after an event, with [`Error::Stopped`]: the objects are then those that were live at it.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    tick: u64,
    time: u64,
    reached: bool,
}

impl Until {
    /// Stops after event `tick`.
    #[must_use]
    pub fn new(tick: u64) -> Self {
        Self { tick, time: 0, reached: false }
    }

    /// Returns the latest time up to it.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Returns whether there was such an event.
    #[must_use]
    pub fn reached(&self) -> bool {
        self.reached
    }
}

impl Observer for Until {
    fn event(&mut self, event: &Event) -> Result<()> {
        self.time = self.time.max(event.time);
        self.reached = event.tick >= self.tick;
        if self.reached { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// Loads and stores of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Loads. One that crosses a granule counts once, for its first byte.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Granules of 64 bytes that were accessed.
    pub touched: u64,
    /// Granules that the block has a byte in.
    pub granules: u64,
    /// There may be others: code that is not counted has reached the block.
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

/// A call that allocates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// The block that it returned.
    pub address: u64,
    /// Bytes asked for; `None`: as many as the block that a realloc was given had.
    pub size: Option<u64>,
    /// Nanoseconds since the start.
    pub time: u64,
    /// The thread.
    pub thread: u64,
    /// The number of the call's stack; 0: not known.
    pub site: u64,
    /// The heap.
    pub heap: u64,
}

/// The live objects. Memory is bounded by the most that were live at once.
#[derive(Debug, Default)]
pub struct Objects {
    by_address: Blocks<u32>,
    objects: Vec<Object>,
    spare: Vec<u32>,
    live_bytes: u64,
    totals: Totals,
    /// The last tick of a program that has ended: objects that were live at it were never freed.
    exited: u64,
    /// Frees of unknown objects before recording was off for the first time.
    unmatched: Option<u64>,
}

impl Objects {
    /// Starts with an empty heap, at tick 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the totals so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut contradictions = self.by_address.contradictions();
        contradictions.unmatched_frees -= self.frees_of_unseen();
        let oddities = Oddities { contradictions, ..self.totals.oddities };
        Totals { never_freed: self.by_address.len() as u64, oddities, ..self.totals }
    }

    /// Returns the live objects, in no order.
    pub fn live(&self) -> impl Iterator<Item = &Object> {
        self.by_address.iter().filter_map(|(_, slot)| self.objects.get(*slot as usize))
    }

    /// Returns the slot of the object that begins at an address.
    #[must_use]
    pub fn slot(&self, address: u64) -> Option<u32> {
        self.by_address.get(address).copied()
    }

    /// Returns the bytes that are live.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Returns how many objects are live.
    #[must_use]
    pub fn live_count(&self) -> u64 {
        self.by_address.len() as u64
    }

    /// Returns the number of the last event; 0: there was none.
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.totals.events
    }

    /// Returns how many objects were allocated, and their bytes.
    #[must_use]
    pub fn allocated(&self) -> (u64, u64) {
        (self.totals.objects, self.totals.bytes)
    }

    /// Returns how many frees were of objects that nobody saw: they were allocated while recording was off, or before.
    #[must_use]
    pub fn frees_of_unseen(&self) -> u64 {
        let unmatched = self.by_address.contradictions().unmatched_frees;
        self.unmatched.map_or(0, |before| unmatched.saturating_sub(before))
    }

    /// Learns that recording stops: from here on a free of an unknown object contradicts nothing.
    pub fn pause(&mut self) {
        let unmatched = self.by_address.contradictions().unmatched_frees;
        self.unmatched.get_or_insert(unmatched);
    }

    /// Learns that the program ended: what is live is never freed, even if another program follows.
    pub fn exit(&mut self) {
        self.exited = self.totals.events;
    }

    /// Begins an object.
    ///
    /// # Errors
    /// The observer's; 2^32 objects are live.
    pub fn allocate<O: Observer + ?Sized>(&mut self, call: &Allocation, observer: &mut O) -> Result<()> {
        self.begin(call, Cause::Call, observer)
    }

    #[inline]
    fn begin<O: Observer + ?Sized>(&mut self, call: &Allocation, cause: Cause, observer: &mut O) -> Result<()> {
        let before = self.by_address.make_way(call.address, size_in(&self.objects));
        if let Some(slot) = before {
            self.end(slot, call.time, Some(call.thread), Cause::Overlaid, observer)?;
        }
        let size = call.size.unwrap_or_else(|| {
            self.totals.oddities.unknown_sizes += 1;
            0
        });
        let slot = match self.spare.pop() {
            Some(slot) => slot,
            None => u32::try_from(self.objects.len()).map_err(|_| Error::Limit("2^32 live objects"))?,
        };
        self.totals.events += 1;
        self.totals.bytes = self.totals.bytes.saturating_add(size);
        let Allocation { address, time, thread, site, heap, .. } = *call;
        let (number, tick, allocated) = (self.totals.objects, self.totals.events, self.totals.bytes);
        let object = Object { slot, number, address, size, tick, time, thread, site, heap, allocated };
        match self.objects.get_mut(slot as usize) {
            Some(place) => *place = object,
            None => self.objects.push(object),
        }
        self.by_address.insert(address, size, slot);
        self.live_bytes = self.live_bytes.saturating_add(size);
        self.totals.objects += 1;
        self.totals.max_bytes = self.totals.max_bytes.max(self.live_bytes);
        self.totals.max_objects = self.totals.max_objects.max(self.by_address.len() as u64);
        observer.event(&Event { tick, time, thread, change: Change::Allocated, cause, object })
    }

    /// Ends the object at an address, by the thread that allocated it; an unknown one is counted.
    ///
    /// # Errors
    /// The observer's.
    pub fn free<O: Observer + ?Sized>(&mut self, address: u64, time: u64, observer: &mut O) -> Result<()> {
        self.end_at(address, time, None, Cause::Call, observer).map(|_| ())
    }

    /// Ends the object at an address, by any thread; an unknown one is counted.
    ///
    /// # Errors
    /// The observer's.
    pub fn free_by<O: Observer + ?Sized>(
        &mut self,
        thread: u64,
        address: u64,
        time: u64,
        observer: &mut O,
    ) -> Result<()> {
        self.end_at(address, time, Some(thread), Cause::Call, observer).map(|_| ())
    }

    /// Ends the object at `old` and begins another, which has its size if the call has none.
    ///
    /// # Errors
    /// The observer's; 2^32 objects are live.
    pub fn reallocate<O: Observer + ?Sized>(&mut self, old: u64, call: &Allocation, observer: &mut O) -> Result<()> {
        let ended = self.end_at(old, call.time, Some(call.thread), Cause::Realloc, observer)?;
        let cause = if ended.is_some() { Cause::Realloc } else { Cause::Call };
        self.begin(&Allocation { size: call.size.or(ended), ..*call }, cause, observer)
    }

    /// Ends all objects of a heap that is destroyed, in the order of their allocation.
    ///
    /// # Errors
    /// The observer's.
    pub fn destroy_heap<O: Observer + ?Sized>(&mut self, heap: u64, time: u64, observer: &mut O) -> Result<()> {
        let of = |object: &&Object| object.heap == heap;
        let ended = self.live().filter(of).copied().collect();
        self.end_all(ended, time, Cause::Left, observer)
    }

    /// Ends all objects, in the order of their allocation, for this cause: another program takes the place of theirs, or recording goes on.
    ///
    /// # Errors
    /// The observer's.
    pub fn start_again<O: Observer + ?Sized>(&mut self, cause: Cause, time: u64, observer: &mut O) -> Result<()> {
        let ended = self.live().copied().collect();
        // What comes after this knows nothing of what was before.
        drop(self.by_address.drain());
        self.end_all(ended, time, cause, observer)?;
        self.exited = 0;
        Ok(())
    }

    fn end_all<O: Observer + ?Sized>(
        &mut self,
        mut ended: Vec<Object>,
        time: u64,
        cause: Cause,
        observer: &mut O,
    ) -> Result<()> {
        ended.sort_unstable_by_key(|object| object.number);
        self.totals.oddities.ended_with_heap += ended.len() as u64;
        ended.into_iter().try_for_each(|object| {
            let cause = if object.tick <= self.exited { Cause::Left } else { cause };
            self.by_address.take(object.address, size_in(&self.objects));
            self.end(object.slot, time, None, cause, observer).map(|_| ())
        })
    }

    /// Ends the object at an address, by this thread or its own; returns its size, or counts that there is none.
    #[inline]
    fn end_at<O: Observer + ?Sized>(
        &mut self,
        address: u64,
        time: u64,
        thread: Option<u64>,
        cause: Cause,
        observer: &mut O,
    ) -> Result<Option<u64>> {
        match self.by_address.take(address, size_in(&self.objects)) {
            Some(slot) => self.end(slot, time, thread, cause, observer),
            None => {
                self.by_address.missing(address);
                Ok(None)
            }
        }
    }

    /// Ends an object that lies nowhere any more; returns its size.
    #[inline]
    fn end<O: Observer + ?Sized>(
        &mut self,
        slot: u32,
        time: u64,
        thread: Option<u64>,
        cause: Cause,
        observer: &mut O,
    ) -> Result<Option<u64>> {
        let Some(&object) = self.objects.get(slot as usize) else { return Ok(None) };
        self.spare.push(slot);
        self.totals.events += 1;
        self.live_bytes = self.live_bytes.saturating_sub(object.size);
        let thread = thread.unwrap_or(object.thread);
        let tick = self.totals.events;
        observer.event(&Event { tick, time, thread, change: Change::Freed, cause, object })?;
        Ok(Some(object.size))
    }
}

/// Returns what gives an object's size by its slot.
fn size_in(objects: &[Object]) -> impl Fn(&u32) -> u64 + '_ {
    |slot| objects.get(*slot as usize).map_or(0, |object| object.size)
}

impl<F: FnMut(&Event) -> Result<()>> Observer for F {
    fn event(&mut self, event: &Event) -> Result<()> {
        self(event)
    }
}

impl<O: Observer> Observer for Option<O> {
    #[inline]
    fn event(&mut self, event: &Event) -> Result<()> {
        self.as_mut().map_or(Ok(()), |observer| observer.event(event))
    }

    fn accessed(&mut self, slot: u32, accesses: &Accesses) {
        self.iter_mut().for_each(|observer| observer.accessed(slot, accesses));
    }

    fn runs_on(&mut self, thread: u64, processor: u64) {
        self.iter_mut().for_each(|observer| observer.runs_on(thread, processor));
    }

    fn sampled(&mut self, mean: u64) {
        self.iter_mut().for_each(|observer| observer.sampled(mean));
    }
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline]
    fn event(&mut self, event: &Event) -> Result<()> {
        self.0.event(event)?;
        self.1.event(event)
    }

    fn accessed(&mut self, slot: u32, accesses: &Accesses) {
        self.0.accessed(slot, accesses);
        self.1.accessed(slot, accesses);
    }

    fn runs_on(&mut self, thread: u64, processor: u64) {
        self.0.runs_on(thread, processor);
        self.1.runs_on(thread, processor);
    }

    fn sampled(&mut self, mean: u64) {
        self.0.sampled(mean);
        self.1.sampled(mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contradictions::Contradictions;

    fn at(address: u64, size: u64) -> Allocation {
        Allocation { address, size: Some(size), ..Allocation::default() }
    }

    #[test]
    fn calls_become_ticks() {
        let mut seen = Vec::new();
        let mut note = |event: &Event| {
            seen.push((event.tick, event.change, event.object.number, event.object.size));
            Ok(())
        };
        let mut objects = Objects::new();
        objects.allocate(&at(16, 5), &mut note).unwrap();
        objects.reallocate(16, &at(16, 7), &mut note).unwrap();
        objects.free(32, 0, &mut note).unwrap();
        objects.reallocate(16, &Allocation { address: 64, ..Allocation::default() }, &mut note).unwrap();
        objects.allocate(&at(64, 1), &mut note).unwrap();
        objects.reallocate(8, &Allocation { address: 96, ..Allocation::default() }, &mut note).unwrap();
        objects.destroy_heap(0, 0, &mut note).unwrap();
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

    /// Each kind is counted once, and a heap that ends takes its blocks along.
    #[test]
    fn contradictions_are_counted() {
        let mut objects = Objects::new();
        let none = &mut |_: &Event| Ok(());
        objects.allocate(&at(1000, 100), none).unwrap();
        objects.allocate(&at(1020, 100), none).unwrap();
        objects.allocate(&at(5000, 1 << 40), none).unwrap();
        objects.allocate(&at(1 << 30, 1), none).unwrap();
        objects.free(1000, 0, none).unwrap();
        objects.free(1000, 0, none).unwrap();
        objects.reallocate(1000, &at(900, 200), none).unwrap();
        objects.free(7, 0, none).unwrap();
        objects.allocate(&at(1020, 1), none).unwrap();
        let contradictions = Contradictions {
            unmatched_frees: 1,
            frees_of_freed_blocks: 2,
            allocs_of_live_blocks: 1,
            overlapping_blocks: 3,
        };
        assert_eq!(objects.totals().oddities.contradictions, contradictions);
        objects.start_again(Cause::Exec, 0, none).unwrap();
        objects.allocate(&at(900, 1 << 40), none).unwrap();
        objects.free(1000, 0, none).unwrap();
        let contradictions = Contradictions { unmatched_frees: 2, ..contradictions };
        assert_eq!(objects.totals().oddities.contradictions, contradictions);
    }

    #[test]
    fn slots_are_used_again() {
        let mut objects = Objects::new();
        let mut most = 0;
        for n in 0..1000_u64 {
            let mut note = |event: &Event| {
                most = most.max(event.object.slot);
                Ok(())
            };
            objects.allocate(&at(n * 16, 1), &mut note).unwrap();
            if n >= 10 {
                objects.free((n - 10) * 16, 0, &mut note).unwrap();
            }
        }
        assert_eq!(most, 10);
    }
}
