//! Heap allocation traces: their events, and all supported trace formats.
//!
//! - [`event`] defines heap events independently of the trace format. Sources produce events, and sinks consume them.
//! - [`forms`] opens a trace of any format and converts it to another; [`loss`] counts what the target format cannot
//!   store.
//! - [`heap`] writes and reads traces of `dtds/heap.dtd`, [`hatf10`] those of `dtds/HATF10.dtd`, and [`hatf1`] the
//!   native format of HATF 1.0.
//! - [`stacks`] resolves stack frames to locations.
//! - [`stack_hash`] computes stack hashes that are the same in every trace of a build.
//! - [`calendar`] formats times as dates.
//! - [`pipeline`] passes the events that another thread reads to a sink in this thread.
//!
//! All of these modules work event by event, in memory bounded by the number of live blocks. Nothing here prints or
//! runs a program.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod calendar;
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
