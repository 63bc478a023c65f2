//! How does a recording begin? A program is started with the recorder, or a process that runs is attached to; then both are drained.

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
