//! Measures the speed of reading and writing traces of real programs' heap events, compared with hand-written loops and
//! other formats.
//!
//! `cargo bench -p metatf-bench` runs the measurements. `docs/performance.md` describes them and contains the resulting
//! table. Every loop processes the same [`Event`]s, or the bytes created from them, and returns a sum or a count, which
//! the harness checks before it measures.

pub mod events;
pub mod hand;
pub mod ours;
#[cfg(feature = "peers")]
pub mod peers;
#[cfg(feature = "telemetry")]
pub mod subscribers;

pub use events::{Counts, Event};

/// The result type for errors of all formats.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
