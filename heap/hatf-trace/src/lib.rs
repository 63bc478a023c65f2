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
//!
//! # Examples
//!
//! One block is still live at the end of this log, which glibc's `mtrace` could have written:
//!
//! ```
//! use hatf_trace::forms::{Input, OpenOptions, read};
//! use hatf_trace::{EventKind, EventSource, Item};
//!
//! let log = "= Start\n@ ./grep:[0x1185] + 0x5580 0x40\n@ ./grep:[0x1190] + 0x5600 0x10\n@ ./grep:[0x119a] - 0x5580\n";
//! let mut trace = read(Input::of("a log".to_owned(), Box::new(log.as_bytes()))?, &OpenOptions::default())?;
//! let mut live = std::collections::HashMap::new();
//! while let Some(item) = trace.next()? {
//!     let Item::Event(event) = item else { continue };
//!     match event.kind {
//!         EventKind::Call(call) => drop(live.insert(call.address, call.size)),
//!         EventKind::Free { address } => drop(live.remove(&address)),
//!         _ => {}
//!     }
//! }
//! assert_eq!(live.into_iter().collect::<Vec<_>>(), [(0x5600, 16)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
