//! Experiments on heap traces.
//!
//! - [`HeapTracker`] follows the heap of a trace. [`Objects`] converts records to object events, which every analysis
//!   [observes](Observer).
//! - [`sites`] counts allocations by stack, and finds the differences between two traces.
//! - [`history`] contains the heap over time: exact values at points, and down-sampled values in one pass.
//! - [`blocks`] describes objects from their allocation to their end.
//! - [`leaks`] reports the age of live memory and whether it grows.
//! - [`fragmentation`] finds the blocks that prevent pages from being free.
//! - [`profile`] builds heap info blocks from the blocks of each allocation context.
//! - [`allocator`] simulates allocators, and [`simulate`] runs a trace through them.
//! - [`whatif`] ranks allocators and settings by their memory demand.
//! - [`statistics`] contains histograms and confidence intervals.
//!
//! This crate does not open traces: `hatf-trace` supplies the records of a trace in any format. All analyses take a
//! single pass, unless a function's documentation states otherwise. Memory is bounded by the number of simultaneously
//! live objects.
//!
//! # Examples
//!
//! Two analyses share one pass over a trace:
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_lab::history::Timeline;
//! use hatf_lab::sites::Sites;
//! use hatf_trace::{Event, EventSink};
//!
//! let mut tracker = HeapTracker::new((Sites::new(), Timeline::new()));
//! for event in [Event::malloc(0x1000, 100), Event::malloc(0x2000, 20), Event::free(0x1000)] {
//!     tracker.event(&event)?;
//! }
//! let (heap, (sites, timeline)) = tracker.into_parts();
//! assert_eq!((heap.totals().max_bytes, heap.totals().never_freed), (120, 1));
//! assert_eq!(sites.report().iter().map(|site| site.leaked.bytes).sum::<u64>(), 20);
//! let peak = timeline.rows().into_iter().find(|row| row.is_peak);
//! assert_eq!(peak.map(|row| (row.tick, row.live.bytes)), Some((2, 120)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
pub mod allocator;
mod churn;
mod classes;
mod compare;
mod contradictions;
mod curve;
mod error;
mod extents;
mod flame;
pub mod fragmentation;
mod growth;
mod heap;
mod histogram;
mod kept;
pub mod leaks;
mod lifetimes;
mod live_blocks;
mod live_by_site;
mod moments;
mod object_rows;
mod objects;
mod observer;
pub mod profile;
pub mod simulate;
mod site_bounds;
mod site_counts;
mod stretches;
mod student;
mod timeline;
mod totals;
mod tracker;
mod trend;
mod untouched;
pub mod whatif;

pub use address::{AddressHasher, AddressMap};
pub use contradictions::Contradictions;
pub use error::{Error, Result};
pub use heap::Heap;
pub use objects::{Cause, Change, Object, ObjectEvent, Objects};
pub use observer::{Observer, Until};
pub use totals::{Oddities, Totals};
pub use tracker::{HeapTracker, ends_are_not_known, sampling};

/// Allocations by stack: counts, bounds, the differences between two traces, and flame graphs.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::sites::{Amount, Measure, Sites, ranked};
/// use hatf_trace::event::Stack;
/// use hatf_trace::{Event, EventSink};
///
/// let (parse, print) = (Stack::from(&[0x401136]), Stack::from(&[0x402042]));
/// let mut tracker = HeapTracker::new(Sites::new());
/// tracker.event(&Event { stack: parse, ..Event::malloc(0x1000, 100) })?;
/// tracker.event(&Event { stack: print, ..Event::malloc(0x2000, 20) })?;
/// tracker.event(&Event::free(0x1000))?;
/// let (heap, sites) = tracker.into_parts();
/// let leaked = ranked(&sites.report(), Measure::Leaked, false);
/// assert_eq!(leaked, [(2, Amount { blocks: 1, bytes: 20 })]);
/// assert_eq!(heap.stacks.name(2, 9).to_string(), "0x402042");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod sites {
    pub use crate::compare::{AmountChange, Counted, Limit, Pair, Tables, pairs, ranked_pairs};
    pub use crate::flame::folded;
    pub use crate::site_bounds::{Bounds, SiteBounds};
    pub use crate::site_counts::{
        Amount, Counts, Measure, SHORT_BYTES, SHORT_LIFE, Sites, Weight, chance, ranked, sum_equal,
    };
}

/// The heap over time.
///
/// Exact values at requested points: [`Kept`](history::Kept). Down-sampled to a bounded size in one pass: values in
/// [`Stretches`](history::Stretches), from which [`Timeline`](history::Timeline) and [`Curve`](history::Curve) are
/// derived, the memory of each site in [`Moments`](history::Moments), and only its live bytes in
/// [`LiveBySite`](history::LiveBySite). [`Trend`](history::Trend) tells whether a series grows.
///
/// # Examples
///
/// One pass finds the event at which memory peaks, and another counts the memory that is live after this event:
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::history::{Highest, Kept, Point};
/// use hatf_trace::{Event, EventSink};
///
/// let events = [Event::malloc(0x1000, 100), Event::malloc(0x2000, 20), Event::free(0x1000)];
/// let mut tracker = HeapTracker::new(Highest::new());
/// events.iter().try_for_each(|event| tracker.event(event))?;
/// let peak = tracker.observer().tick();
///
/// let mut tracker = HeapTracker::new(Kept::new(Point::Start, Point::Tick(peak)));
/// events.iter().try_for_each(|event| tracker.event(event))?;
/// let found = tracker.observer().report()?;
/// assert_eq!((found.to.tick, found.sites[0].bytes), (2, 120));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod history {
    pub use crate::curve::{Curve, Curves, Line};
    pub use crate::kept::{Found, Highest, Kept, Place, Point};
    pub use crate::live_by_site::{LiveBySite, LiveBySiteBuilder, LiveBytes};
    pub use crate::moments::{Allocated, Lived, Moment, Moments, SiteTimeline};
    pub use crate::stretches::{MostAndLast, Stretches, Summary};
    pub use crate::timeline::{Snapshot, Timeline};
    pub use crate::trend::{Direction, FEWEST, Trend};
}

/// Blocks from their allocation to their end: one row per object, lifetimes, short-lived blocks, reallocations and
/// untouched pages.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::blocks::ObjectRows;
/// use hatf_trace::{Event, EventSink};
///
/// let mut rows = Vec::new();
/// let mut tracker = HeapTracker::new(ObjectRows::new(|batch, _| Ok(rows.extend_from_slice(batch))));
/// tracker.event(&Event { time: 10, ..Event::malloc(0x1000, 24) })?;
/// tracker.event(&Event { time: 20, ..Event::malloc(0x2000, 100) })?;
/// tracker.event(&Event { time: 30, ..Event::free(0x1000) })?;
/// let (heap, observer) = tracker.into_parts();
/// observer.finish(&heap)?;
/// let ends: Vec<_> = rows.iter().map(|row| (row.object.size, row.end.map(|end| end.time))).collect();
/// assert_eq!(ends, [(24, Some(30)), (100, None)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod blocks {
    pub use crate::churn::{Churn, Churns, Instead, Settings};
    pub use crate::growth::{Growth, Growths};
    pub use crate::lifetimes::{Cell, Lifetimes, NEVER};
    pub use crate::object_rows::{End, ObjectRow, ObjectRows, ROWS};
    pub use crate::untouched::Untouched;
}

/// Histograms by power of two, and confidence intervals.
///
/// # Examples
///
/// ```
/// use hatf_lab::statistics::{class_of, interval, range};
///
/// let found = interval(&[9.0, 10.0, 11.0]);
/// assert_eq!(found.mean, 10.0);
/// assert_eq!(found.half.map(|half| (half * 100.0).round()), Some(169.0));
/// assert_eq!(range(class_of(100)), "64..127");
/// ```
pub mod statistics {
    pub use crate::classes::{CLASSES, bounds, class_of, range};
    pub use crate::histogram::{Bucket, Histogram};
    pub use crate::student::{Interval, interval, mean};
}
