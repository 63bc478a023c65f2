//! All tests of telemetry in one binary. The binary also serves as the recorded programs; see [`common::Scene`].
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test that goes wrong has to panic"
)]

mod common;
mod cores;
mod hostile;
mod kills;
mod programs;
mod rare;
mod safe;
mod unload;
