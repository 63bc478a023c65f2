//! Heap profiles: statistics about the blocks of each allocation context.
//!
//! Heap info blocks and their table follow T. Johnson's "RFC: Sanitizer-based Heap Profiler" (2020). A freed block is
//! merged into its context's entry in a set-associative table. An evicted entry is written immediately and merged in a
//! final pass.

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

pub use crate::sites::Amount;
pub use advice::{Advice, Thresholds};
pub use column::Column;
pub use info::{Cpus, Ended, FirstCpus, HeapInfo, Lifetimes, Live, Loads, Spread};
pub use merge::Merged;
pub use profiler::{ContextKey, InfoSink, Profiled, Profiler, ProfilerSettings, TICK};
pub use reads::Reads;
pub use sizes::{SizeOutcome, Sizes, describe_sizes};
pub use table::{Entry, InfoTable, Lookups, Replacement, TableSettings};
