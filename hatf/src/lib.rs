//! Heap allocation traces: record, report, convert and read them.
//!
//! The `hatf` command is a thin layer over this library:
//!
//! - [`event`] is what happens to a heap, whatever form a trace of it has: sources give events, sinks take them.
//! - [`record`] runs a program with the recorder preloaded, and hands what the program's heap did to
//!   an [`EventSink`].
//! - [`heap`] writes and reads traces of `dtds/heap.dtd`, [`hatf10`] those of `dtds/HATF10.dtd`, [`hatf1`] HATF 1.0's native
//!   form.
//! - [`forms`] opens a trace in any form and converts it to another, and [`loss`] counts what did not fit.
//! - [`pipeline`] gives a sink in this thread what another reads.
//! - [`hatf_lab::HeapTracker`] follows the heap of a trace, and tells everything that is asked about it; [`synthetic`] writes traces of models.
//! - [`profile`] reads, writes and merges heap profiles, and reads LLVM's.
//! - [`share`] makes traces of traces: a part, several as one, a sample, one without names.
//! - [`compare`] finds what differs between two traces.
//! - [`calls`] finds the function of the program that holds memory; [`page`] builds an interactive HTML page of a heap.
//! - [`whatif`] finds which allocator would need less memory.
//! - [`suppress`] reads and writes which leaks are known to somebody.
//! - [`analysis`] makes an [`analysis::Report`] of it; [`report`] prints one.
//! - [`threads`] does two parts of some work at once.
//! - `watch` (a feature) shows a heap on the screen while it changes.
//!
//! All of them work event by event, in memory bounded by the blocks alive.
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
