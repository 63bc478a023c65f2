//! Writes synthetic traces.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_research::model::{Choice, Fitter, Generator, Kind, Limits, Settings};
//! use hatf_research::synthetic::write_synthetic;
//! use hatf_trace::event::UserMetadata;
//! use hatf_trace::heap::{HeapOptions, HeapReader};
//! use hatf_trace::{Event, EventSink, copy};
//! use metatf::container::Reader;
//!
//! let kind = Kind::same(Choice::Mean);
//! let mut tracker = HeapTracker::new(Fitter::new(Settings::new(vec![kind]), None)?);
//! tracker.event(&Event::malloc(1, 30))?;
//! tracker.event(&Event::malloc(2, 10))?;
//! let (heap, fitter) = tracker.into_parts();
//! let model = fitter.finish(&heap.totals(), None)?.model(kind);
//!
//! let mut trace = Vec::new();
//! let limits = Limits { events: Some(100), live: None };
//! let generated = write_synthetic(&mut trace, &HeapOptions::default(), &UserMetadata::new(), |observer| {
//!     Generator::new(&model, 1, 0, limits).run(observer)
//! })?;
//! let mut tracker = HeapTracker::new(());
//! copy(&mut HeapReader::of(Reader::from_slice(&trace)?)?, &mut tracker)?;
//! assert_eq!(tracker.heap().objects.allocated(), (generated.objects, generated.bytes));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use hatf_lab::allocator::{Acts, Allocator as _, Bsd, BsdSettings, Place};
use hatf_lab::{Change, Observer};
use metatf::container::Sink;
use metatf_tools::pipeline::{beside, pipe};

use hatf_trace::event::{Call, Event, EventKind, EventSink, Function, UserMetadata};
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::{Error, Result};

/// Start of the simulated heap in a synthetic trace. The start is not 0, because 0 is not a valid block address.
const BASE: u64 = 1 << 32;

/// A change to a synthetic heap.
#[derive(Clone, Copy)]
struct Step {
    time: u64,
    size: u64,
    slot: u32,
    change: Change,
}

/// Number of steps per batch. A batch fits in a core's cache.
const BATCH: usize = 4096;
/// Maximum number of batches waiting to be written.
const WAITING: usize = 4;

/// An [`Observer`] that passes object changes without addresses to another thread. It does not use
/// `hatf_trace::pipeline`, which passes block events with addresses: the thread that draws the objects, already the
/// bottleneck, would then also have to place them.
struct Steps<F> {
    batch: Vec<Step>,
    hand_on: F,
}

impl<F: FnMut(&mut Vec<Step>) -> hatf_lab::Result<()>> Observer for Steps<F> {
    #[inline]
    fn event(&mut self, event: &hatf_lab::ObjectEvent) -> hatf_lab::Result<()> {
        let hatf_lab::Object { slot, size, .. } = event.object;
        self.batch.push(Step { time: event.time, size, slot, change: event.change });
        if self.batch.len() < BATCH { Ok(()) } else { (self.hand_on)(&mut self.batch) }
    }
}

/// A writer of object changes without addresses. The simulated allocator `bsd` places the blocks.
struct SyntheticWriter<'w> {
    writer: HeapWriter<'w>,
    allocator: Bsd,
    acts: Acts,
    /// Block addresses, indexed by slot.
    places: Vec<Place>,
}

impl SyntheticWriter<'_> {
    fn write(&mut self, steps: &[Step]) -> Result<()> {
        // The addresses of freed blocks are scattered. Touching them here overlaps their cache misses, whereas the loop
        // below would wait for each miss. With one thread, this increases the throughput by a third.
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

/// Writes a synthetic trace of the events that `run` passes to the observer, and returns the result of `run`. If the
/// options allow several threads, `run` gets its own thread. The bytes of the trace do not depend on the number of
/// threads.
///
/// # Errors
/// Returns errors of the sink and of `run`. Fails if no thread can be created.
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
    // If an error of the writer stopped the events, return this error.
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
