//! Parts of the `hatf` command that are not in the libraries for heap traces.
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
//! - [`share`] derives parts, merged traces, samples and anonymized traces from other traces.
//! - `watch`, which requires the feature of the same name, shows a live view of a heap on the terminal.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod share;
#[cfg(feature = "watch")]
pub mod watch;
