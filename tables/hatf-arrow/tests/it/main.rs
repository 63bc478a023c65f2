//! Tests that tables of real traces agree with the reports of `hatf`, and that tables of damaged traces are safe to
//! read.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test that goes wrong has to panic")]

mod any_bytes;
mod docs;
mod equal;
mod fuzz_seeds;
mod hostile;
mod rows;
