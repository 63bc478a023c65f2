//! Models of allocation that summarize a trace, and synthetic traces generated from them.
//!
//! The models are from Zorn and Grunwald, "Evaluating Models of Memory Allocation" (CU-CS-603-92), including the
//! variants and mixtures mentioned in the paper. [`Fitter`] builds a [`Model`] from the events of a trace, and
//! [`Generator`] produces events from a model. The book's page about models describes what the paper leaves open and
//! where it contradicts itself.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_research::model::{Choice, Fitter, Generator, Kind, Limits, Settings};
//! use hatf_trace::{Event, EventSink};
//!
//! let kind = Kind::same(Choice::Mean);
//! let mut tracker = HeapTracker::new(Fitter::new(Settings::new(vec![kind]), None)?);
//! for event in [Event::malloc(1, 30), Event::malloc(2, 10), Event::free(1)] {
//!     tracker.event(&event)?;
//! }
//! let (heap, fitter) = tracker.into_parts();
//! let model = fitter.finish(&heap.totals(), None)?.model(kind);
//! assert_eq!((model.row().objects, model.row().max_bytes), (2, 40));
//!
//! let limits = Limits { events: Some(100), live: None };
//! let totals = Generator::new(&model, 1, 0, limits).run(&mut ())?;
//! assert_eq!(totals.events, 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ages;
mod clock;
pub mod evaluate;
mod file;
mod fit;
mod generate;
mod histogram;
mod kind;
mod law;
mod moments;
mod outline;
mod outline_fit;
mod outline_play;
mod p2;
mod packed;
mod queue;
mod random;
mod row;
mod sizes;
mod source;
mod transitions;

pub use clock::{Clock, Running, Unfreed};
pub use file::{MOST_BUCKETS, Model};
pub use fit::{BUCKETS, Fitted, Fitter, Settings};
pub use generate::{Generator, Limits};
pub use histogram::Histogram;
pub use kind::{Choice, Kind};
pub use moments::{Moments, reduced};
pub use random::{GENERATOR, Random};
pub use row::Row;
pub use sizes::{Words, describe};

#[cfg(test)]
mod tests;
