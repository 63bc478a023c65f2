//! Orders the events of all threads into one trace: merges the events by their stamps and adds times and stacks.

mod encode;
mod large_blocks;
mod last_part;
mod live_addresses;
mod memory_samples;
mod merge;
#[cfg(test)]
pub(crate) mod simulated;
mod timeline;
mod translate;

pub(crate) use encode::{CountingSink, Encode, clock_name, is_numbered};
pub use last_part::Keep;
pub(crate) use last_part::LastPart;
pub use memory_samples::resident_of;
pub(crate) use memory_samples::{MemorySampler, MemorySamples, Outside, PendingSamples};
pub(crate) use merge::{Merge, Resumed, ThreadOf};
pub(crate) use timeline::{Moment, Timeline, choose_clock};
pub(crate) use translate::Translator;
