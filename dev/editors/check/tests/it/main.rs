//! Tests of the editors' grammars.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that goes wrong has to panic")]

mod generated;
mod queries;
mod textmate;
mod texts;
mod tokens;
mod verdict;
