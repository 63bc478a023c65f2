//! How fast traces are read and written, beside loops written by hand and other formats, on the heap events of real
//! programs.
//!
//! `cargo bench -p metatf-bench` measures; `docs/performance.md` says what, and holds the table that it makes. Every
//! loop here takes the same [`Event`]s, or the bytes that were made of them, and gives a sum or a count, which the harness
//! checks before it measures.

pub mod events;
pub mod hand;
pub mod ours;
#[cfg(feature = "peers")]
pub mod peers;
#[cfg(feature = "telemetry")]
pub mod subscribers;

pub use events::{Counts, Event};

/// Any error of any of the formats.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
