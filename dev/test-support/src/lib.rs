//! Support for the tests of several crates.
//!
//! | module | contents |
//! | --- | --- |
//! | [`allocations`] | an allocator that counts |
//! | [`alone()`] | tests in their own process |
//! | [`disk`] | small disks that fill up |
//! | [`factor()`] | the multiplier for the number of cases in random tests |
//! | [`folder`] | temporary directories, and the locations of the repository and its vectors |
//! | [`golden`] | expected output inside of a file of the project |
//! | `model` | atomics whose interleavings loom explores, under `--cfg loom` |
//! | [`page`] | fenced blocks of Markdown pages |
//! | [`run()`] | running programs and capturing their output |
//! | [`skip()`] | tests that cannot run on this machine |
//! | [`time`] | time limits |
//!
//! Expected output in separate files is stored as `insta` snapshots, which tests use directly.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test must panic")]

pub mod allocations;
pub mod alone;
pub mod disk;
pub mod factor;
pub mod folder;
pub mod golden;
#[cfg(loom)]
pub mod model;
pub mod page;
pub mod run;
pub mod skip;
pub mod time;

pub use allocations::Counting;
pub use alone::alone;
pub use disk::Disk;
pub use factor::factor;
pub use folder::{Folder, root, vectors};
pub use run::{Run, run, run_with};
pub use skip::skip;
pub use time::{PATIENCE, limited, thread_time};
