//! What the command `hatf` adds to the libraries of heap traces.
//!
//! | library | contents |
//! | --- | --- |
//! | `hatf-trace` | heap events and all trace formats |
//! | `hatf-host` | recording and replay |
//! | `hatf-lab` | the heap of a trace, and simulated allocators |
//! | `hatf-view` | reports, pages, profiles, and functions by name |
//! | `hatf-research` | models of allocation and scoped memory |
//! | `hatf-arrow` | heap traces as tables |
//!
//! - [`share`] derives traces from traces: a part, a merged trace, a sample, an anonymized trace.
//! - `watch` (a feature) shows a heap live on the terminal.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod share;
#[cfg(feature = "watch")]
pub mod watch;
