//! The playground: what the module answers, and what the page shows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod answers;
mod heaps;
mod page;
