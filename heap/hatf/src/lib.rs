//! Recording, analysis and conversion of heap allocation traces.
//!
//! The `hatf` command is a thin layer over this library:
//!
//! - [`event`] describes heap events independently of the trace format: sources produce events, sinks consume them.
//! - [`record`] runs a program with the recorder preloaded and passes its heap events to an [`EventSink`].
//! - [`heap`] writes and reads traces of `dtds/heap.dtd`, [`hatf10`] those of `dtds/HATF10.dtd`, [`hatf1`] HATF 1.0's native
//!   form.
//! - [`forms`] opens a trace in any format and converts it to another; [`loss`] counts values that the output format
//!   cannot represent.
//! - [`pipeline`] passes events read by another thread to a sink in this thread.
//! - [`hatf_lab::HeapTracker`] follows the heap of a trace for all analyses; [`synthetic`] writes synthetic traces from
//!   models.
//! - [`profile`] reads, writes and merges heap profiles, and reads LLVM's.
//! - [`share`] derives traces from traces: a part, a merged trace, a sample, an anonymized trace.
//! - [`compare`] finds the differences between two traces.
//! - [`calls`] finds the function of the program that holds memory; [`page`] writes an interactive HTML report of a
//!   heap.
//! - [`whatif`] finds which allocator would need less memory.
//! - [`suppress`] reads and writes suppressions for known leaks.
//! - [`analysis`] builds an [`analysis::Report`] of a heap; [`report`] prints reports.
//! - [`threads`] runs two tasks in parallel.
//! - `watch` (a feature) shows a heap live on the terminal.
//!
//! All modules process one event at a time, in memory bounded by the number of live blocks.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod analysis;
pub mod calendar;
#[cfg(not(target_family = "wasm"))]
pub mod cc;
pub mod compare;
pub mod page;
#[cfg(not(target_family = "wasm"))]
pub mod profile;
#[cfg(not(target_family = "wasm"))]
pub mod record;
#[cfg(not(target_family = "wasm"))]
pub mod replay;
pub mod report;
#[cfg(not(target_family = "wasm"))]
pub mod scoped;
#[cfg(not(target_family = "wasm"))]
pub mod share;
#[cfg(not(target_family = "wasm"))]
pub mod suppress;
#[cfg(not(target_family = "wasm"))]
pub mod symbolize;
#[cfg(not(target_family = "wasm"))]
pub mod synthetic;
pub mod threads;
#[cfg(all(feature = "watch", not(target_family = "wasm")))]
pub mod watch;
pub mod whatif;

pub use hatf_lab::calls;
pub use hatf_trace::{
    Error, Event, EventKind, EventSink, EventSource, Item, OwnedEvent, Result, copy, event, forms, hatf1, hatf10, heap,
    loss, pipeline, short_name, stacks, trace,
};
