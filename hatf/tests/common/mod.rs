//! Runs `hatf`.

use metatf_test::{Run, run};
use std::process::Command;

/// Runs it with these arguments.
pub(crate) fn hatf<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> Run {
    run(Command::new(env!("CARGO_BIN_EXE_hatf")).args(arguments).env_remove("COLUMNS"))
}
