//! Heap allocation traces: events, and every form of trace that has them.
//!
//! - [`event`] is what happens to a heap, whatever form a trace of it has: sources give events, sinks take them.
//! - [`forms`] opens a trace in any form and converts it to another, and [`loss`] counts what did not fit.
//! - [`heap`] writes and reads traces of `dtds/heap.dtd`, [`hatf10`] those of `dtds/HATF10.dtd`, [`hatf1`] HATF 1.0's native form.
//! - [`stacks`] tells what frames of a trace's stacks are.
//! - [`stack_hash`] makes hashes of stacks that are the same in every trace of a build.
//! - [`pipeline`] gives a sink in this thread what another reads.
//!
//! All of them work event by event, in memory bounded by the blocks alive. Nothing here prints, or runs a program.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod error;
pub mod event;
pub mod forms;
pub mod hatf1;
pub mod hatf10;
pub mod heap;
mod location;
pub mod loss;
mod named;
mod owned;
pub mod pipeline;
pub mod short_name;
mod stack;
pub mod stack_hash;
pub mod stacks;
pub mod trace;
mod user_metadata;

pub use error::{Error, Result};
pub use event::{Event, EventKind, EventSink, EventSource, Item, copy};
pub use owned::OwnedEvent;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
