//! Recording of a program that is started with the recorder preloaded, or that is attached to while it runs. Its heap
//! events are passed to a sink.
//!
//! | directory | content |
//! | --- | --- |
//! | `program` | Checks of what can be recorded of a program |
//! | `spool` | Storage of events until they are in a trace |
//! | `order` | Ordering of the events of all threads |
//! | `processes` | Recording of each process until it ends |
//! | `attach` | Loading the recorder into a running process |
//! | `start` | Start of a recording |
//! | `recover` | Recovery after `hatf record` was killed |
//! | `ongoing` | The view of a recording from another process |
//!
//! Each module uses only the modules above it and [`RecordOptions`].
//!
//! # Examples
//!
//! Before a program runs, [`not_recorded`] reports why it would not be recorded:
//!
//! ```
//! use hatf_host::record::{NotRecordedReason, not_recorded};
//!
//! let program = std::env::current_exe()?;
//! assert_eq!(not_recorded(program.as_os_str()), None);
//!
//! // An executable without program headers does not name a dynamic linker.
//! let mut header = std::fs::read(program)?;
//! header.truncate(64);
//! header[56..58].fill(0);
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("program");
//! std::fs::write(&path, header)?;
//! let found = not_recorded(path.as_os_str()).ok_or("the program would be recorded")?;
//! assert_eq!(found.reason, NotRecordedReason::Static);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(target_arch = "x86_64")]
mod attach;
mod fuzz_drain;
mod ongoing;
mod options;
mod order;
mod path_json;
mod processes;
mod program;
mod recover;
mod registers;
mod spool;
mod start;

use std::ffi::OsString;

pub use hatf_record::{Clock, NotFollowed, Stop, WhenFull};

#[cfg(target_arch = "x86_64")]
pub use attach::while_stopped;
#[doc(hidden)]
pub use fuzz_drain::drain_any;
pub use ongoing::{Ongoing, SpoolState};
pub use options::{FOLLOW_MOST, RecordOptions, TakeDump};
pub use order::Keep;
pub use order::resident_of;
pub use path_json::{path_from_json, path_to_json};
pub use processes::{
    DumpInto, End, EndedSpool, FollowedOutcome, FollowedProcess, Follower, NotRecordedProcesses, Outcome,
    PythonVersion, RecordInto, Recorded, UnrecordedProgram,
};
pub use program::{LinkedIn, NotRecorded, NotRecordedReason, linked_in, not_recorded};
pub use recover::{Recovered, ResumePoint, Spooled};
pub use registers::ThreadRegisters;
pub use spool::{SPOOL_BYTES, memory_left};
#[cfg(target_arch = "x86_64")]
pub use start::record_process;
pub use start::{RECORDER, record, record_with};

use hatf_trace::Result;

/// The recorder and the trace format must agree on the numbers of Python frames.
const _: () = assert!(hatf_record::PYTHON_FRAMES == hatf_trace::stacks::PYTHON_FRAMES);
const _: () = assert!(
    matches!(hatf_record::names::EVENTS.as_bytes(), b"events")
        && matches!(hatf_trace::trace::SPOOLED_EVENTS.as_bytes(), b"events")
);

/// Returns the arguments of a running process, if [`record_process`] can record it.
///
/// # Errors
/// Returns an error if the process cannot be recorded.
#[cfg(target_arch = "x86_64")]
pub fn command_of_process(process: u32) -> Result<Vec<OsString>> {
    attach::command(process)
}

/// Reports that the process cannot be recorded, because attaching is not implemented for this machine.
///
/// # Errors
/// Always returns an error.
#[cfg(not(target_arch = "x86_64"))]
pub fn command_of_process(process: u32) -> Result<Vec<OsString>> {
    Err(hatf_trace::Error::Trace(
        format!("cannot attach to process {process}: attaching is only supported on x86-64").into(),
    ))
}

/// Reports that the process cannot be recorded, like [`command_of_process`].
///
/// # Errors
/// Always returns an error.
#[cfg(not(target_arch = "x86_64"))]
pub fn record_process(process: u32, _: &mut dyn hatf_trace::EventSink, _: RecordOptions<'_>) -> Result<Outcome> {
    command_of_process(process).map(|_| unreachable!())
}

/// Reports that the process cannot be stopped, like [`command_of_process`].
///
/// # Errors
/// Always returns an error.
#[cfg(not(target_arch = "x86_64"))]
pub fn while_stopped<T: Send>(
    process: u32,
    _: impl FnOnce(&[ThreadRegisters]) -> T + Send,
) -> Result<(T, std::time::Duration)> {
    command_of_process(process).map(|_| unreachable!())
}

/// Parses arbitrary bytes as the kernel's data about a process, which is examined before recording. For fuzzing.
#[doc(hidden)]
pub fn read_process(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    attach::read_any(bytes);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
