//! Gives the experiments of `hatf-lab` the calls of a trace.

use hatf_lab::allocator::{Acts, Allocator as _, Bsd, BsdSettings, Place};
use hatf_lab::{Allocation, Change, Objects, Observer, Totals};
use metatf::container::Sink;

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

/// An [`Observer`] that writes events of objects, which lie at no address, as a trace of `heap.dtd`. Blocks are put where the
/// simulated allocator `bsd` puts them.
pub struct SyntheticWriter<'w> {
    writer: HeapWriter<'w>,
    allocator: Bsd,
    acts: Acts,
    /// By slot.
    places: Vec<Place>,
    error: Option<crate::Error>,
}

impl Observer for SyntheticWriter<'_> {
    fn event(&mut self, event: &hatf_lab::Event) -> hatf_lab::Result<()> {
        let hatf_lab::Object { slot, size, .. } = event.object;
        let kind = match event.change {
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
        self.writer.event(&Event { time: event.time, ..Event::new(kind) }).map_err(|error| {
            self.error = Some(error);
            hatf_lab::Error::Stopped
        })
    }
}

/// Writes a synthetic trace, whose events `run` gives to the writer; returns what `run` does.
///
/// # Errors
/// The sink's, and those of `run`.
pub fn write_synthetic<T>(
    sink: &mut dyn Sink,
    options: &HeapOptions,
    about: &UserMetadata,
    run: impl FnOnce(&mut SyntheticWriter<'_>) -> hatf_lab::Result<T>,
) -> Result<T> {
    let mut writer = HeapWriter::new(sink, options)?;
    if let Err(error) = writer.user_metadata(about) {
        writer.abandon();
        return Err(error);
    }
    let allocator = Bsd::new(BsdSettings::default());
    let mut writer = SyntheticWriter { writer, allocator, acts: Acts::default(), places: Vec::new(), error: None };
    let result = run(&mut writer);
    let SyntheticWriter { writer, error, .. } = writer;
    // The writer's own error, where it stopped the events.
    match error.map_or(result.map_err(Into::into), Err) {
        Ok(result) => writer.finish().map(|_| result),
        Err(error) => {
            writer.abandon();
            Err(error)
        }
    }
}

impl From<hatf_lab::Error> for crate::Error {
    fn from(error: hatf_lab::Error) -> Self {
        match error {
            hatf_lab::Error::Usage(message) => Self::Usage(message),
            hatf_lab::Error::System(tried, error) => Self::System(tried.to_owned(), error),
            other => Self::Trace(other.into()),
        }
    }
}
