//! Replays the requests in a trace on a real allocator.
//!
//! A [`Compiler`] converts the trace into [`Operations`]. A separate process, in which the allocator is preloaded,
//! [`replay`]s them.

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
