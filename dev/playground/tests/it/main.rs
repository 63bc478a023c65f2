//! Tests of the playground module and page.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod answers;
mod heaps;
mod page;
