//! Heap allocation traces: record, report and read them.
//!
//! The `hatf` command is a thin layer over this library:
//!
//! - [`record`] runs a program with the recorder preloaded, and hands what the program's heap did to
//!   an [`EventSink`].
//! - [`hatf10`] says it in the words of HATF 1.0 (`dtds/HATF10.dtd`).
//! - [`trace`] is a sink that writes, and a source that reads, trace files.
//! - [`analysis`] is a sink that makes a [`analysis::Report`]; [`report`] prints one.
//!
//! All of them work record by record, in memory bounded by the blocks alive.

pub mod analysis;
mod attributes;
mod error;
mod event;
pub mod hatf1;
pub mod hatf10;
pub mod record;
pub mod report;
pub mod trace;

pub use attributes::Attributes;
pub use error::{Error, Result};
pub use event::{EventSink, EventSource, Item, Record, Tee, What, copy};
