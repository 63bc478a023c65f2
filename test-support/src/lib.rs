//! Shares what the tests of several crates need.
//!
//! | module | what it gives |
//! | --- | --- |
//! | [`allocations`] | an allocator that counts |
//! | [`alone()`] | tests in a process of their own |
//! | [`disk`] | small disks, which fill up |
//! | [`factor()`] | how many times the cases a run of random tests draws |
//! | [`folder`] | temporary folders, and where the repository and its vectors are |
//! | [`golden`] | expected output that is part of a file of the project |
//! | `model` | atomics whose interleavings loom explores, under `--cfg loom` |
//! | [`page`] | fenced blocks of Markdown pages |
//! | [`run()`] | programs run to their end, with what they printed |
//! | [`skip()`] | tests that cannot run on this machine |
//!
//! Expected output that is a file of its own is a snapshot of `insta`, which tests use directly.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that goes wrong has to panic")]

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

pub use allocations::Counting;
pub use alone::alone;
pub use disk::Disk;
pub use factor::factor;
pub use folder::{Folder, root, vectors};
pub use run::{Run, run, run_with};
pub use skip::skip;
