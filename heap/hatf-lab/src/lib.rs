//! Experiments on heap traces.
//!
//! - [`HeapTracker`] follows the heap of a trace. [`objects`] converts records to object events, which all other
//!   modules observe.
//! - [`allocator`] simulates allocators, and [`simulate`] runs a trace through them.
//! - [`whatif`] ranks allocators and settings by their memory demand.
//! - [`profile`] builds heap info blocks from the blocks of each allocation context.
//! - [`sites`] counts allocations by stack.
//! - [`object_rows`] produces one row per object, and [`timeline`] produces rows over time.
//! - [`kept`] counts the memory live at a point, or allocated in a range and live at the end of the range.
//! - [`leaks`] reports the age of live memory and, using [`trend`], whether it grows.
//! - [`growth`] counts bytes copied by `realloc` and the slack of blocks.
//! - [`churn`] finds short-lived blocks and possible replacements for them.
//! - [`compare`] finds the differences between two traces.
//! - [`histogram`] counts values by power of two; [`student`] computes confidence intervals.
//! - [`flame`] prints the distribution of a total over stacks.
//! - [`fragmentation`] finds the blocks that prevent pages from being free.
//!
//! This crate does not open traces: `hatf-trace` supplies the records of a trace in any format. All analyses take a
//! single pass, unless a function's documentation states otherwise. Memory is bounded by the number of simultaneously
//! live objects.

pub mod address;
pub mod allocator;
pub mod blocks;
pub mod churn;
pub mod classes;
pub mod compare;
pub mod contradictions;
pub mod curve;
mod error;
mod extents;
pub mod flame;
pub mod fragmentation;
pub mod growth;
pub mod heap;
pub mod histogram;
pub mod kept;
pub mod leaks;
pub mod lifetimes;
pub mod moments;
pub mod object_rows;
pub mod objects;
pub mod observer;
pub mod profile;
pub mod simulate;
pub mod site_bounds;
pub mod sites;
pub mod stretches;
pub mod student;
pub mod timeline;
pub mod totals;
pub mod tracker;
pub mod trend;
pub mod whatif;

pub use contradictions::Contradictions;
pub use error::{Error, Result};
pub use heap::Heap;
pub use objects::{Cause, Change, Object, ObjectEvent, Objects};
pub use observer::Observer;
pub use totals::Totals;
pub use tracker::HeapTracker;
