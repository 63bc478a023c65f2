//! Runs `metatfc`.

use metatf_test::{Run, run_with};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs it in a folder; `METATF_PATH` is that folder.
pub(crate) fn metatfc(folder: &Path, args: &[&str]) -> Run {
    run(folder, args, b"")
}

/// Returns the command.
pub(crate) fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metatfc"));
    command.args(args).current_dir(folder).env("METATF_PATH", folder).env_remove("NO_COLOR");
    command
}

/// Runs it with standard input. No run may take long.
pub(crate) fn run(folder: &Path, args: &[&str], input: &[u8]) -> Run {
    let mut command = command(folder, args);
    let started = Instant::now();
    let run = run_with(&mut command, input);
    assert!(started.elapsed() < Duration::from_secs(60), "{args:?} took {:?}", started.elapsed());
    assert!((0..=4).contains(&run.status), "{args:?} ended with {}: {}", run.status, run.err);
    run
}
