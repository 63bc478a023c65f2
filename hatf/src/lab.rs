//! Gives the experiments of `hatf-lab` the calls of a trace.

use hatf_lab::allocator::{Acts, Allocator as _, Bsd, BsdSettings, Place};
use hatf_lab::{Allocation, Change, Objects, Observer, Totals};
use metatf::container::Sink;
use metatf::container::pipeline::{beside, pipe};

use crate::event::{Accesses, Call, Event, EventKind, EventSink, Function, UNKNOWN_SIZE, UserMetadata, has_sizes_only};
use crate::heap::{HeapOptions, HeapWriter};
use crate::stacks::Stacks;
use crate::{Error, Result};

/// An [`EventSink`] that turns calls into events of objects.
///
/// A program image that replaces another (exec), and a heap that is destroyed, free what is live in them.
#[derive(Debug)]
pub struct Calls<O> {
    objects: Objects,
    stacks: Stacks,
    observer: O,
    sampling: Option<u64>,
    sizes: Sizes,
}

/// What is done with a trace that says what was allocated, and not when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sizes {
    /// It is refused.
    Refused,
    /// Blocks end where they begin.
    Taken,
    /// This is such a trace.
    Here,
}

impl<O: Observer> Calls<O> {
    /// Starts with an empty heap.
    pub fn new(observer: O) -> Self {
        Self { objects: Objects::new(), stacks: Stacks::default(), observer, sampling: None, sizes: Sizes::Refused }
    }

    /// Starts with an empty heap; a trace of sizes only is taken, too: of such a one each object ends where it begins.
    pub fn of_sizes_too(observer: O) -> Self {
        Self { sizes: Sizes::Taken, ..Self::new(observer) }
    }

    /// Returns whether the trace has sizes only.
    pub fn has_sizes_only(&self) -> bool {
        self.sizes == Sizes::Here
    }

    /// Returns the totals so far.
    pub fn totals(&self) -> Totals {
        self.objects.totals()
    }

    /// Returns the mean of [`Observer::sampled`], where the objects are a sample.
    pub fn sampling(&self) -> Option<u64> {
        self.sampling
    }

    /// Returns the observer.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Returns the live objects, the stacks, and the observer.
    pub fn into_parts(self) -> (Objects, Stacks, O) {
        (self.objects, self.stacks, self.observer)
    }

    fn allocation(&mut self, event: &Event<'_>, call: &Call) -> Allocation {
        let site = self.stacks.number(event.stack);
        let size = (call.size != UNKNOWN_SIZE).then_some(call.size);
        let Event { time, thread, heap, .. } = *event;
        Allocation { address: call.address, size, time, thread, site, heap }
    }
}

impl<O: Observer> EventSink for Calls<O> {
    #[inline]
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let free =
            |this: &mut Self, address| this.objects.free_by(event.thread, address, event.time, &mut this.observer);
        match event.kind {
            EventKind::Call(ref call) if call.old != 0 && call.address != 0 => {
                let allocation = self.allocation(event, call);
                self.objects.reallocate(call.old, &allocation, &mut self.observer)?;
            }
            EventKind::Call(ref call) | EventKind::ReallocEnd(ref call) if call.address != 0 => {
                let allocation = self.allocation(event, call);
                self.objects.allocate(&allocation, &mut self.observer)?;
            }
            EventKind::Call(ref call) if self.sizes == Sizes::Here => {
                let allocation = Allocation { address: NOWHERE, ..self.allocation(event, call) };
                self.objects.allocate(&allocation, &mut self.observer)?;
                free(self, NOWHERE)?;
            }
            EventKind::Call(ref call) if call.old_is_gone() => free(self, call.old)?,
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => free(self, address)?,
            EventKind::DestroyHeap => self.objects.end_heap(Some(event.heap), event.time, &mut self.observer)?,
            // What was live before may have ended while recording was off.
            EventKind::Recording { on: true } => self.objects.end_heap(None, event.time, &mut self.observer)?,
            EventKind::Image { .. } => {
                self.objects.end_heap(None, event.time, &mut self.observer)?;
                self.stacks.note(&event.kind);
            }
            EventKind::Accesses(accesses) => {
                if let Some(slot) = self.objects.slot(accesses.address) {
                    self.observer.accessed(slot, &counted(&accesses));
                }
            }
            EventKind::Processor { cpu } => self.observer.runs_on(event.thread, cpu),
            ref kind => self.stacks.note(kind),
        }
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        if has_sizes_only(user_metadata) {
            if self.sizes == Sizes::Refused {
                return Err(ends_are_not_known());
            }
            self.sizes = Sizes::Here;
        }
        if let Some(mean) = sampling(user_metadata) {
            self.sampling = Some(mean);
            self.observer.sampled(mean);
        }
        Ok(())
    }
}

fn counted(accesses: &Accesses) -> hatf_lab::Accesses {
    let Accesses { loads, stores, touched, granules, reached, .. } = *accesses;
    hatf_lab::Accesses { loads, stores, touched, granules, reached }
}

/// Returns the mean number of bytes from one block that was recorded to the next, where not every block was.
#[must_use]
pub fn sampling(user_metadata: &UserMetadata) -> Option<u64> {
    user_metadata.get("sampling")?.get("bytes")?.as_u64()
}

/// The address of a block of which it is not known where it was.
const NOWHERE: u64 = 1;

/// The error of what cannot be done with a trace of sizes only.
pub(crate) fn ends_are_not_known() -> Error {
    let why = "it was recorded with --sizes-only: it does not say when blocks end";
    Error::Trace(format!("{why} (hatf report, sites, and flame --by allocated need not know)").into())
}

/// Where the simulated heap of a synthetic trace begins: not at 0, which is no block's address.
const BASE: u64 = 1 << 32;

/// A change of a synthetic heap.
#[derive(Clone, Copy)]
struct Step {
    time: u64,
    size: u64,
    slot: u32,
    change: Change,
}

/// Steps that are handed on at once: what they take stays in a core's cache.
const BATCH: usize = 4096;
/// Batches that may wait to be written.
const WAITING: usize = 4;

/// An [`Observer`] that hands on what happens to objects that lie at no address. Not by `crate::pipeline`, which hands on events of blocks:
/// the thread that draws the objects would have to place them, and it is the one that the others wait for.
struct Steps<F> {
    batch: Vec<Step>,
    hand_on: F,
}

impl<F: FnMut(&mut Vec<Step>) -> hatf_lab::Result<()>> Observer for Steps<F> {
    #[inline]
    fn event(&mut self, event: &hatf_lab::Event) -> hatf_lab::Result<()> {
        let hatf_lab::Object { slot, size, .. } = event.object;
        self.batch.push(Step { time: event.time, size, slot, change: event.change });
        if self.batch.len() < BATCH { Ok(()) } else { (self.hand_on)(&mut self.batch) }
    }
}

/// Writes what happens to objects that lie at no address. Blocks are put where the simulated allocator `bsd` puts them.
struct SyntheticWriter<'w> {
    writer: HeapWriter<'w>,
    allocator: Bsd,
    acts: Acts,
    /// By slot.
    places: Vec<Place>,
}

impl SyntheticWriter<'_> {
    fn write(&mut self, steps: &[Step]) -> Result<()> {
        // The places of blocks that end lie anywhere. Here the processor waits for many at once, below it would for each: a third more events
        // a second with one thread.
        let mut touched = 0;
        for step in steps {
            touched ^= self.places.get(step.slot as usize).map_or(0, |place| place.address);
        }
        std::hint::black_box(touched);
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let Step { time, size, slot, change } = *step;
        let kind = match change {
            Change::Allocated => {
                let place = self.allocator.allocate(size, &mut self.acts);
                let place = place.ok_or(hatf_lab::Error::Limit("the objects do not fit into 2^47 bytes"))?;
                match self.places.get_mut(slot as usize) {
                    Some(free) => *free = place,
                    None => self.places.push(place),
                }
                let address = BASE + place.address;
                EventKind::Call(Call { size, address, ..Call::new(Function::Malloc) })
            }
            Change::Freed => {
                let Some(&place) = self.places.get(slot as usize) else { return Ok(()) };
                self.allocator.free(place, size, &mut self.acts);
                EventKind::Free { address: BASE + place.address }
            }
        };
        self.writer.event(&Event { time, ..Event::new(kind) })
    }
}

/// Writes a synthetic trace, whose events `run` gives to the observer; returns what `run` does. If the options allow threads, `run` has one of
/// its own; the trace's bytes do not depend on that.
///
/// # Errors
/// The sink's, and those of `run`; the system has no thread.
pub fn write_synthetic<T: Send>(
    sink: &mut dyn Sink,
    options: &HeapOptions,
    about: &UserMetadata,
    run: impl FnOnce(&mut dyn Observer) -> hatf_lab::Result<T> + Send,
) -> Result<T> {
    let writer = HeapWriter::new(sink, options)?;
    let allocator = Bsd::new(BsdSettings::default());
    let mut writer = SyntheticWriter { writer, allocator, acts: Acts::default(), places: Vec::new() };
    let about = writer.writer.user_metadata(about);
    let written = about.and_then(|()| {
        if options.write.threads < 2 { write_here(&mut writer, run) } else { write_beside(&mut writer, run) }
    });
    match written {
        Ok(result) => writer.writer.finish().map(|_| result),
        Err(error) => {
            writer.writer.abandon();
            Err(error)
        }
    }
}

fn write_here<T>(
    writer: &mut SyntheticWriter<'_>,
    run: impl FnOnce(&mut dyn Observer) -> hatf_lab::Result<T>,
) -> Result<T> {
    let mut failed = None;
    let hand_on = |batch: &mut Vec<Step>| {
        let written = writer.write(batch);
        batch.clear();
        written.map_err(|error| {
            failed = Some(error);
            hatf_lab::Error::Stopped
        })
    };
    let mut steps = Steps { batch: Vec::with_capacity(BATCH), hand_on };
    let result = run(&mut steps);
    let result = result.and_then(|result| (steps.hand_on)(&mut steps.batch).map(|()| result));
    // The writer's own error, where it stopped the events.
    failed.map_or(result.map_err(Into::into), Err)
}

fn write_beside<T: Send>(
    writer: &mut SyntheticWriter<'_>,
    run: impl FnOnce(&mut dyn Observer) -> hatf_lab::Result<T> + Send,
) -> Result<T> {
    let (feed, batches) = pipe::<Vec<Step>>(WAITING);
    let giving = move || {
        let hand_on = |batch: &mut Vec<Step>| {
            let mut next = feed.spent().unwrap_or_else(|| Vec::with_capacity(BATCH));
            next.clear();
            let goes_on = feed.give(std::mem::replace(batch, next));
            if goes_on { Ok(()) } else { Err(hatf_lab::Error::Stopped) }
        };
        let mut steps = Steps { batch: Vec::with_capacity(BATCH), hand_on };
        let result = run(&mut steps)?;
        (steps.hand_on)(&mut steps.batch).map(|()| result)
    };
    let writing = || batches.each(|batch| writer.write(batch));
    let (given, written) = beside("hatf-generate", giving, writing).map_err(Error::system("a thread"))?;
    written.and(given.map_err(Into::into))
}
