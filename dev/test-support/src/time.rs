//! Time limits that also hold on a busy machine.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

/// The time that a test waits for something that must happen. It is so long that only a defect exceeds it.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Returns the processor time of the calling thread, or zero if `/proc` does not contain it.
#[must_use]
pub fn thread_time() -> Duration {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(line.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0))
}

/// Returns a command that runs a program and kills it if it takes more than this processor time.
#[must_use]
pub fn limited(program: impl AsRef<OsStr>, seconds: u32) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -t {seconds}; exec \"$@\""), "sh"]).arg(program);
    command
}
