//! Recording a program: it is run with the recorder preloaded, or attached to while it runs, and what its heap does is given to a sink.
//!
//! | folder | question |
//! | --- | --- |
//! | `program` | What of a program can be recorded? |
//! | `spool` | Where do events lie until they are in a trace? |
//! | `order` | In what order did it happen? |
//! | `processes` | What becomes of each process that is recorded? |
//! | `attach` | How is a process that runs made to load the recorder? |
//! | `start` | How does a recording begin? |
//! | `recover` | What is left where `hatf record` was killed? |
//! | `ongoing` | How does another process see a recording? |
//!
//! Each names those above it alone, and [`RecordOptions`].

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
mod spool;
mod start;

use std::ffi::OsString;

pub use hatf_record::{Clock, NotFollowed, Stop, WhenFull};

#[doc(hidden)]
pub use fuzz_drain::drain_any;
pub use ongoing::{Ongoing, SpoolState};
pub use options::{FOLLOW_MOST, RecordOptions, TakeDump};
pub use order::Keep;
#[cfg(feature = "watch")]
pub(crate) use order::resident_of;
pub use path_json::{path_from_json, path_to_json};
pub use processes::{
    DumpInto, End, EndedSpool, FollowedOutcome, FollowedProcess, Follower, NotRecordedProcesses, Outcome,
    PythonVersion, RecordInto, Recorded,
};
pub use program::{LinkedIn, NotRecorded, NotRecordedReason, linked_in, not_recorded};
pub use recover::{Recovered, Spooled};
pub use spool::{SPOOL_BYTES, memory_left};
#[cfg(target_arch = "x86_64")]
pub use start::record_process;
pub use start::{record, record_with};

use crate::Result;

/// The recorder's words and numbers that a trace, too, has.
const _: () = assert!(hatf_record::PYTHON_FRAMES == hatf_trace::stacks::PYTHON_FRAMES);
const _: () = assert!(
    matches!(hatf_record::names::EVENTS.as_bytes(), b"events")
        && matches!(hatf_trace::trace::SPOOLED_EVENTS.as_bytes(), b"events")
);

/// Returns the arguments of a process that runs, if it can be recorded by [`record_process`].
///
/// # Errors
/// It cannot.
#[cfg(target_arch = "x86_64")]
pub fn command_of_process(process: u32) -> Result<Vec<OsString>> {
    attach::command(process)
}

/// Says that it cannot be recorded: nobody has made that for this machine yet.
///
/// # Errors
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub fn command_of_process(process: u32) -> Result<Vec<OsString>> {
    Err(crate::Error::Trace(format!("process {process} can be recorded while it runs on x86-64 alone").into()))
}

/// As [`command_of_process`].
///
/// # Errors
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub fn record_process(process: u32, _: &mut dyn crate::EventSink, _: RecordOptions<'_>) -> Result<Outcome> {
    command_of_process(process).map(|_| unreachable!())
}

/// Reads any bytes as what the kernel says of a process, which is looked at before it is recorded. For fuzzing.
#[doc(hidden)]
pub fn read_process(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    attach::read_any(bytes);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
