//! Follows the heap of a trace, for everything that is asked about it.

mod synthetic;

use hatf_lab::{Allocation, Cause, Objects, Observer, Totals};

use crate::event::{Accesses, Call, Event, EventKind, EventSink, UNKNOWN_SIZE, UserMetadata, has_sizes_only};
use crate::stacks::Stacks;
use crate::{Error, Result};

pub use synthetic::write_synthetic;

/// An observer of the heap that also learns of the records of the trace: of calls, threads, phases, pages, and what else there is.
///
/// It is asked for its result by reference, while events still come, or after the last.
pub trait Analysis: Observer {
    /// Learns of a record, after the heap has followed it.
    ///
    /// # Errors
    /// No more should be given.
    fn record(&mut self, event: &Event<'_>, heap: &Heap) -> Result<()>;

    /// Learns what the trace says about itself: what a line of it says.
    fn comment(&mut self, text: &str) {
        let _ = text;
    }

    /// Learns what the trace says about itself: what is in its metadata.
    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        let _ = user_metadata;
    }
}

/// An [`Analysis`] of an observer that needs no more than events of objects.
#[derive(Clone, Debug, Default)]
pub struct ObjectsOnly<O>(pub O);

impl<O: Observer> Observer for ObjectsOnly<O> {
    #[inline]
    fn event(&mut self, event: &hatf_lab::Event) -> hatf_lab::Result<()> {
        self.0.event(event)
    }

    fn accessed(&mut self, slot: u32, accesses: &hatf_lab::Accesses) {
        self.0.accessed(slot, accesses);
    }

    fn runs_on(&mut self, thread: u64, processor: u64) {
        self.0.runs_on(thread, processor);
    }

    fn sampled(&mut self, mean: u64) {
        self.0.sampled(mean);
    }
}

impl<O: Observer> Analysis for ObjectsOnly<O> {
    #[inline]
    fn record(&mut self, _: &Event<'_>, _: &Heap) -> Result<()> {
        Ok(())
    }
}

/// Beside an analysis, an observer that needs no more than events of objects.
impl<A: Analysis, O: Observer> Analysis for (A, O) {
    #[inline]
    fn record(&mut self, event: &Event<'_>, heap: &Heap) -> Result<()> {
        self.0.record(event, heap)
    }

    fn comment(&mut self, text: &str) {
        self.0.comment(text);
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.0.user_metadata(user_metadata);
    }
}

/// A heap as it is at a place in a trace.
#[derive(Debug, Default)]
pub struct Heap {
    /// The live objects, and the totals.
    pub objects: Objects,
    /// The stacks so far, by their numbers.
    pub stacks: Stacks,
    /// The mean of [`Observer::sampled`], where the objects are a sample.
    pub sampling: Option<u64>,
    sizes: Sizes,
}

/// What is done with a trace that says what was allocated, and not when it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sizes {
    /// It is refused.
    #[default]
    Refused,
    /// Blocks end where they begin.
    Taken,
    /// This is such a trace.
    Here,
}

impl Heap {
    /// Returns whether the trace has sizes only.
    #[must_use]
    pub fn has_sizes_only(&self) -> bool {
        self.sizes == Sizes::Here
    }

    /// Returns the totals so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.objects.totals()
    }

    #[inline]
    fn allocation(&mut self, event: &Event<'_>, call: &Call) -> Allocation {
        let site = self.stacks.number(event.stack);
        let size = (call.size != UNKNOWN_SIZE).then_some(call.size);
        let Event { time, thread, heap, .. } = *event;
        Allocation { address: call.address, size, time, thread, site, heap }
    }
}

/// An [`EventSink`] that follows the heap, and gives an analysis what happens to objects.
///
/// A program image that replaces another (exec), and a heap that is destroyed, free what is live in them.
#[derive(Debug)]
pub struct HeapTracker<A> {
    heap: Heap,
    analysis: A,
}

impl<O: Observer> HeapTracker<ObjectsOnly<O>> {
    /// Starts with an empty heap, for an observer that needs no more than events of objects.
    pub fn of_objects(observer: O) -> Self {
        Self::new(ObjectsOnly(observer))
    }
}

impl<A: Analysis> HeapTracker<A> {
    /// Starts with an empty heap.
    pub fn new(analysis: A) -> Self {
        Self { heap: Heap::default(), analysis }
    }

    /// Also accepts traces recorded with `--sizes-only`: each of their objects is freed as soon as it is allocated.
    #[must_use]
    pub fn with_sizes_only(mut self) -> Self {
        self.heap.sizes = Sizes::Taken;
        self
    }

    /// Returns the heap.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Returns the analysis.
    pub fn analysis(&self) -> &A {
        &self.analysis
    }

    /// Returns the analysis, to be changed.
    pub fn analysis_mut(&mut self) -> &mut A {
        &mut self.analysis
    }

    /// Returns the heap and the analysis.
    pub fn into_parts(self) -> (Heap, A) {
        (self.heap, self.analysis)
    }

    /// Has the heap follow a record.
    #[inline]
    fn follow(&mut self, event: &Event<'_>) -> Result<()> {
        let Self { heap, analysis } = self;
        let Event { time, thread, .. } = *event;
        match event.kind {
            EventKind::Call(ref call) if call.old != 0 && call.address != 0 => {
                let allocation = heap.allocation(event, call);
                heap.objects.reallocate(call.old, &allocation, analysis)?;
            }
            EventKind::Call(ref call) | EventKind::ReallocEnd(ref call) if call.address != 0 => {
                let allocation = heap.allocation(event, call);
                heap.objects.allocate(&allocation, analysis)?;
            }
            EventKind::Call(ref call) if heap.has_sizes_only() => {
                let allocation = Allocation { address: NOWHERE, ..heap.allocation(event, call) };
                heap.objects.allocate(&allocation, analysis)?;
                heap.objects.free_by(thread, NOWHERE, time, analysis)?;
            }
            EventKind::Call(ref call) if call.old_is_gone() => {
                heap.objects.free_by(thread, call.old, time, analysis)?;
            }
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => {
                heap.objects.free_by(thread, address, time, analysis)?;
            }
            EventKind::DestroyHeap => heap.objects.destroy_heap(event.heap, time, analysis)?,
            EventKind::Exit { .. } | EventKind::Killed { .. } => heap.objects.exit(),
            EventKind::Recording { on: false } => heap.objects.pause(),
            EventKind::Recording { on: true } => {
                heap.objects.pause();
                heap.objects.start_again(Cause::Resumed, time, analysis)?;
            }
            EventKind::Image { .. } => {
                heap.objects.start_again(Cause::Exec, time, analysis)?;
                heap.stacks.note(&event.kind);
            }
            EventKind::Accesses(accesses) => {
                if let Some(slot) = heap.objects.slot(accesses.address) {
                    analysis.accessed(slot, &counted(&accesses));
                }
            }
            EventKind::Processor { cpu } => analysis.runs_on(thread, cpu),
            ref kind => heap.stacks.note(kind),
        }
        Ok(())
    }
}

impl<A: Analysis> EventSink for HeapTracker<A> {
    #[inline]
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.follow(event)?;
        self.analysis.record(event, &self.heap)
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.analysis.comment(&String::from_utf8_lossy(text));
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        if has_sizes_only(user_metadata) {
            if self.heap.sizes == Sizes::Refused {
                return Err(ends_are_not_known());
            }
            self.heap.sizes = Sizes::Here;
        }
        if let Some(mean) = sampling(user_metadata) {
            self.heap.sampling = Some(mean);
            self.analysis.sampled(mean);
        }
        self.analysis.user_metadata(user_metadata);
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
