//! Starts a recording: starts a program with the recorder or attaches to a running process, and then drains its events.

mod command;
mod file_limit;
mod new_process;
#[cfg(target_arch = "x86_64")]
mod running_process;
mod set_up;
mod shared_file;
mod signals;

pub use new_process::{record, record_with};
#[cfg(target_arch = "x86_64")]
pub use running_process::record_process;
pub use set_up::RECORDER;
