//! Runs the events of a trace through simulated allocators.
//!
//! # Examples
//!
//! BSD requests memory from the system for 16 blocks of 128 bytes, and FIRST requests at least 8 KiB:
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_lab::allocator::by_name;
//! use hatf_lab::simulate::{Grid, Simulation};
//! use hatf_trace::{Event, EventSink};
//!
//! let simulations = vec![Simulation::new("bsd", by_name("bsd")?), Simulation::new("first", by_name("first")?)];
//! let mut tracker = HeapTracker::new(Grid::new(simulations, 1)?);
//! for page in 1..=16_u64 {
//!     tracker.event(&Event::malloc(page << 12, 100))?;
//! }
//! let (_, grid) = tracker.into_parts();
//! let outcomes = grid.finish()?;
//! assert_eq!((outcomes[0].most_heap, outcomes[1].most_heap), (2_048, 8_192));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod grid;
mod measure;
mod outcome;
mod page;
mod ratio;
mod touches;

pub use grid::Grid;
pub use outcome::{Fragmentation, Outcome};
pub use page::describe;
pub use touches::{Tlb, Touched};

use std::collections::BTreeMap;

use crate::address::AddressMap;
use crate::allocator::{Acts, Allocator, Place};
use crate::objects::{Change, Object, ObjectEvent};
use crate::observer::Observer;
use crate::{Error, Result};
use measure::Measure;
use touches::Touches;

/// The placeholder for a rejected object. It is above all valid addresses.
const REFUSED: Place = Place { address: u64::MAX, block: 0 };

/// Nanoseconds after which the allocator is told the time again.
const TOLD: u64 = 1 << 20;

/// A running allocator.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::allocator::by_name;
/// use hatf_lab::simulate::Simulation;
/// use hatf_trace::{Event, EventSink};
///
/// let simulation = Simulation::new("first fit", by_name("first")?).with_invariants(1);
/// let mut tracker = HeapTracker::new(simulation);
/// tracker.event(&Event::malloc(0x1000, 10))?;
/// tracker.event(&Event::malloc(0x2000, 20))?;
/// tracker.event(&Event::free(0x1000))?;
/// let (_, simulation) = tracker.into_parts();
/// let outcome = simulation.finish()?;
/// assert_eq!((outcome.most_live, outcome.live_sum), (30, 10 + 30 + 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Simulation {
    name: String,
    allocator: Box<dyn Allocator>,
    acts: Acts,
    /// Places of objects by slot, or [`REFUSED`]. For millions of objects, `Option` would occupy 50% more memory.
    places: Vec<Place>,
    refused: u64,
    /// The place and size of the old object of a realloc, until the new object begins.
    moving: Option<(Place, u64)>,
    /// The thread of the last event. `threads` contains the allocator's numbers of threads.
    thread: u64,
    /// The time in nanoseconds that the allocator was last told.
    told: u64,
    threads: AddressMap<usize>,
    measure: Measure,
    touches: Option<Touches>,
    invariants: Option<Invariants>,
}

/// Invariants in addition to the allocator's own. Live objects must not overlap and must be inside the heap.
struct Invariants {
    /// The number of events between checks of the entire heap.
    every: u64,
    ends: BTreeMap<u64, u64>,
}

impl Simulation {
    /// Creates a simulation with an empty heap. The name is only for display.
    #[must_use]
    pub fn new(name: impl Into<String>, allocator: Box<dyn Allocator>) -> Self {
        let measure = Measure::new(allocator.reserves());
        Self {
            name: name.into(),
            allocator,
            acts: Acts::default(),
            places: Vec::new(),
            refused: 0,
            moving: None,
            thread: 0,
            told: 0,
            threads: AddressMap::default(),
            measure,
            touches: None,
            invariants: None,
        }
    }

    /// Checks the touched data after every event, and the entire heap after every `every` events.
    #[must_use]
    pub fn with_invariants(mut self, every: u64) -> Self {
        self.invariants = Some(Invariants { every: every.max(1), ends: BTreeMap::new() });
        self
    }

    /// Also counts the cache lines and pages touched by events.
    #[must_use]
    pub fn with_touches(mut self) -> Self {
        self.touches = Some(Touches::new());
        self
    }

    /// Returns the outcome.
    ///
    /// # Errors
    /// Fails if an invariant is violated.
    pub fn finish(self) -> Result<Outcome> {
        if self.invariants.is_some() {
            self.allocator.check().map_err(|broken| self.broken(&broken))?;
        }
        let Self { name, allocator, acts, refused, measure, touches, .. } = self;
        let outcome = measure.finish(name, allocator.name(), acts, refused);
        Ok(Outcome { touched: touches.map(Touches::finish), ..outcome })
    }

    #[inline]
    pub(crate) fn step(&mut self, event: &ObjectEvent) -> Result<()> {
        let (ObjectEvent { change, thread, .. }, realloc) = (*event, event.is_realloc());
        let Object { slot, size, .. } = event.object;
        if thread != self.thread || self.threads.is_empty() {
            self.switch_to(thread);
        }
        if event.time.saturating_sub(self.told) >= TOLD {
            self.told = event.time;
            self.allocator.at(event.time, &mut self.acts);
        }
        // The bytes that a realloc copied, or that the free of a deferred realloc touched.
        let mut copied = None;
        let place = match change {
            Change::Allocated => {
                let moving = self.moving.take();
                copied = moving.map(|(old, from)| (old, if realloc { from.min(size) } else { 1 }));
                let place = match moving {
                    Some((old, from)) if realloc => self.allocator.reallocate(old, from, size, &mut self.acts),
                    moving => {
                        moving.into_iter().for_each(|(old, from)| self.allocator.free(old, from, &mut self.acts));
                        self.allocator.allocate(size, &mut self.acts)
                    }
                };
                let kept = place.unwrap_or(REFUSED);
                match self.places.get_mut(slot as usize) {
                    Some(free) => *free = kept,
                    None => self.places.push(kept),
                }
                self.refused += u64::from(place.is_none());
                place
            }
            Change::Freed => {
                let place = self.places.get(slot as usize).copied().filter(|place| *place != REFUSED);
                if let Some(place) = place {
                    if realloc {
                        self.moving = Some((place, size));
                    } else {
                        self.allocator.free(place, size, &mut self.acts);
                    }
                }
                place
            }
        };
        let size_now = if place.is_some() { size } else { 0 };
        self.measure.note(change, size_now, self.allocator.heap(), self.allocator.held());
        if let Some(touches) = &mut self.touches {
            let stays = |old: &Place| realloc && place.is_some_and(|new| new.address == old.address);
            let copied = copied.filter(|(old, _)| !stays(old)).map(|(old, bytes)| (old.address, bytes));
            let here = place.and_then(|Place { address, .. }| match change {
                Change::Allocated => Some((address, size)),
                Change::Freed => (!realloc).then_some((address, 1)),
            });
            touches.note(copied.into_iter().chain(here));
        }
        if self.invariants.is_some() { self.check(change, place, size) } else { Ok(()) }
    }

    fn switch_to(&mut self, thread: u64) {
        let next = self.threads.len();
        self.allocator.switch_to(*self.threads.entry(thread).or_insert(next));
        self.thread = thread;
    }

    #[cold]
    fn check(&mut self, change: Change, place: Option<Place>, size: u64) -> Result<()> {
        let (heap, events) = (self.allocator.end(), self.measure.events());
        let Some(invariants) = &mut self.invariants else { return Ok(()) };
        let mut result = self.allocator.check_touched();
        if let Some(Place { address, .. }) = place {
            match change {
                Change::Allocated => {
                    // An empty object still has its own address.
                    let end = address + size.max(1);
                    let before = invariants.ends.range(..end).next_back();
                    if before.is_some_and(|(_, end)| *end > address) {
                        result = Err(format!("objects overlap at {address}"));
                    } else if address + size > heap {
                        result = Err(format!(
                            "an object of {size} bytes at {address} ends above the end of all blocks at {heap}"
                        ));
                    }
                    invariants.ends.insert(address, end);
                }
                Change::Freed => drop(invariants.ends.remove(&address)),
            }
        }
        if events.is_multiple_of(invariants.every) {
            result = result.and_then(|()| self.allocator.check());
        }
        result.map_err(|broken| self.broken(&broken))
    }

    fn broken(&self, what: &str) -> Error {
        Error::Invariant(format!("{}, event {}: {what}", self.allocator.name(), self.measure.events()))
    }
}

impl Observer for Simulation {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.step(event)
    }
}
