//! Replays the requests in a trace on a real allocator.
//!
//! A [`Compiler`] converts the trace into [`Operations`]. A separate process, in which the allocator is preloaded,
//! [`replay`]s them.
//!
//! # Examples
//!
//! This process is its own worker and replays with its own allocator:
//!
//! ```
//! use hatf_host::replay::{Compiler, Cut, Look, Task, Touch, replay};
//! use hatf_trace::{Event, EventSink};
//!
//! let mut compiler = Compiler::new(Cut::default())?;
//! for event in [Event::malloc(16, 24), Event::malloc(64, 40), Event::free(16)] {
//!     compiler.event(&event)?;
//! }
//! let operations = compiler.finish()?;
//! assert_eq!((operations.summary.operations, operations.summary.most_live_bytes), (3, 64));
//!
//! let run = replay(&operations.path(), Task { look: Look::Latency, touch: Touch::First, nothing: false })?;
//! let calls: Vec<_> = run.latencies.iter().map(|latency| (latency.function.as_str(), latency.calls)).collect();
//! assert_eq!(calls, [("malloc", 2), ("free", 1)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allocators;
mod compile;
mod latency;
mod mapped;
mod operation;
mod outcome;
mod page;
mod process;
#[cfg(test)]
mod tests;
mod worker;

pub use allocators::Touch;
pub use compile::{Compiler, Cut, Operations, Repairs, Summary};
pub use latency::Latency;
pub use outcome::{Comparison, Outcome, compare};
pub use page::ReplayReport;
pub use process::{Allocator, Worker};
pub use worker::{Look, Run, Sample, Task, replay};
