//! Reports, pages and profiles of heap traces.
//!
//! - `analyses` lists the analyses of a heap, with their options and answers.
//! - [`analysis`] builds an [`analysis::Report`] of a heap; [`report`] prints reports.
//! - [`calls`] attributes memory to application functions; [`page`] writes an interactive HTML report of a heap.
//! - `symbolize` looks up function names in executables and shared objects.
//! - `profile` reads, writes and merges heap profiles, and also reads LLVM profiles.
//! - [`compare`] finds the differences between two traces.
//! - `suppress` reads and writes suppressions for known leaks.
//! - [`verdict`] turns the facts of a report into sentences.
//! - [`threads`] runs two tasks in parallel.
//!
//! `analyses`, `symbolize`, `profile` and `suppress` require the feature `native`, which is enabled by default.
//!
//! All modules process one event at a time, in memory bounded by the number of live blocks.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[cfg(feature = "native")]
pub mod analyses;
pub mod analysis;
pub mod calls;
pub mod compare;
pub mod page;
#[cfg(feature = "native")]
pub mod profile;
pub mod report;
#[cfg(feature = "native")]
pub mod suppress;
#[cfg(feature = "native")]
pub mod symbolize;
pub mod threads;
pub mod verdict;
