//! Heap profiles: statistics about the blocks of each allocation context.
//!
//! Heap info blocks and their table follow T. Johnson's "RFC: Sanitizer-based Heap Profiler" (2020). A freed block is
//! merged into its context's entry in a set-associative table. An evicted entry is written immediately and merged in a
//! final pass.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_lab::profile::{ContextKey, Merged, Profiler, ProfilerSettings, Sizes};
//! use hatf_trace::{Event, EventSink};
//!
//! let profiler = Profiler::new(ProfilerSettings::default(), Sizes::default(), Merged::new())?;
//! let mut tracker = HeapTracker::new(profiler);
//! for page in 1..=3_u64 {
//!     tracker.event(&Event { stack: (&[0x401136]).into(), ..Event::malloc(page << 12, 100) })?;
//! }
//! let (heap, profiler) = tracker.into_parts();
//! let profiled = profiler.finish(heap.objects.live())?;
//! assert_eq!(profiled.contexts, [ContextKey::Stack(1)]);
//! let infos = profiled.sink.finish();
//! assert_eq!((infos.len(), infos[0].alloc_count, infos[0].size.total), (1, 3, 300));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod advice;
mod column;
mod info;
mod merge;
mod profiler;
mod reads;
mod sizes;
mod table;
#[cfg(test)]
mod tests;

pub use advice::{Advice, Thresholds};
pub use column::Column;
pub use info::{Cpus, Ended, FirstCpus, HeapInfo, Lifetimes, Live, Loads, Spread};
pub use merge::Merged;
pub use profiler::{ContextKey, InfoSink, Profiled, Profiler, ProfilerSettings, TICK};
pub use reads::Reads;
pub use sizes::{SizeOutcome, Sizes, describe_sizes};
pub use table::{Entry, InfoTable, Lookups, Replacement, TableSettings};
