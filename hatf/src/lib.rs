//! Heap allocation traces: record, report, convert and read them.
//!
//! The `hatf` command is a thin layer over this library:
//!
//! - [`event`] defines heap events independently of the trace format. Sources produce events, and sinks consume them.
//! - [`record`] runs a program with the recorder preloaded, and passes its heap events to an [`EventSink`].
//! - [`heap`] writes and reads traces of `dtds/heap.dtd`, [`hatf10`] those of `dtds/HATF10.dtd`, and [`hatf1`] the
//!   native format of HATF 1.0.
//! - [`forms`] opens a trace of any format and converts it to another; [`loss`] counts what the target format cannot
//!   store.
//! - [`pipeline`] passes what another thread reads to a sink in this thread.
//! - [`hatf_lab::HeapTracker`] tracks the heap of a trace for all analyses; [`synthetic`] writes traces generated from
//!   models.
//! - [`profile`] reads, writes and merges heap profiles, and reads LLVM profiles.
//! - [`share`] derives traces from other traces: a part, a merged trace, a sample, or a trace without names.
//! - [`compare`] finds the differences between two traces.
//! - [`calls`] finds the functions of the program that hold memory; [`page`] builds an interactive HTML report of a
//!   heap.
//! - [`whatif`] finds allocators that would need less memory.
//! - [`suppress`] reads and writes suppressions for known leaks.
//! - [`analysis`] builds an [`analysis::Report`] of a trace; [`report`] prints it.
//! - [`threads`] runs two parts of some work in parallel.
//! - `watch` (a feature) shows a heap live on the screen.
//!
//! All of these work event by event, in memory bounded by the number of live blocks.
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
