//! Experiments on heap traces.
//!
//! - [`HeapTracker`] follows the heap of a trace: [`objects`] turns records into events of objects, which everything else observes.
//! - [`allocator`] simulates allocators, and [`simulate`] runs a trace through them.
//! - [`whatif`] ranks allocators and settings by the memory that they would need.
//! - [`model`] fits models of allocation to a trace, and makes synthetic traces of them.
//! - [`profile`] makes heap info blocks of the blocks of each allocation context.
//! - [`regions`] simulates scoped memory.
//! - [`sites`] counts what each stack allocated.
//! - [`calls`] folds stacks to the program's own functions and sums counts by function, file or module.
//! - [`object_rows`] makes a row of each object, [`timeline`] rows of moments.
//! - [`kept`] counts what was live at a moment, or was allocated in a range and is live at its end.
//! - [`leaks`] says how old what is live is, and whether it grows, by [`trend`].
//! - [`growth`] counts what `realloc` copied, and what blocks have beyond what was asked for.
//! - [`churn`] finds blocks that live shortly, and what could take their place.
//! - [`compare`] finds what differs between two traces.
//! - [`flame`] draws how a total is shared among stacks.
//! - [`fragmentation`] finds the blocks that keep pages from being free.
//!
//! This crate opens no traces: `hatf-trace` gives it the records of a trace in any form. All work is done in one pass (where it is not,
//! the function says so), in memory bounded by the objects live at once.

pub mod address;
pub mod allocator;
pub mod blocks;
pub mod calls;
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
pub mod kept;
pub mod leaks;
pub mod lifetimes;
pub mod model;
pub mod moments;
pub mod object_rows;
pub mod objects;
pub mod observer;
pub mod profile;
pub mod regions;
pub mod simulate;
pub mod site_bounds;
pub mod sites;
pub mod stretches;
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
