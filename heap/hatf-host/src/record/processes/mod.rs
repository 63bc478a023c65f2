//! Records each process until it ends by draining its events into a sink. Processes created by a recorded process are
//! followed, each by a separate thread.

mod alarm;
mod control;
mod drain;
mod follow;
mod followed_process;
mod last_program;
mod on_drop;
mod origin;
mod outcome;
mod process;
mod python_version;
mod unrecorded_children;

pub(crate) use alarm::notify;
pub(crate) use control::{Control, ControlSignals};
pub use drain::DumpInto;
pub(crate) use drain::{Drain, Keeping};
pub(crate) use follow::{CHUNKS_EACH, Progress, Shared};
pub use follow::{FollowedOutcome, Follower, RecordInto};
pub use followed_process::FollowedProcess;
pub(crate) use last_program::LastProgram;
pub(crate) use on_drop::OnDrop;
pub(crate) use origin::{Origin, Scope};
pub use outcome::{EndedSpool, NotRecordedProcesses, Outcome, Recorded};
pub use process::End;
pub(crate) use process::Process;
#[cfg(target_arch = "x86_64")]
pub(crate) use process::{OtherProcess, began, is_alive};
pub use python_version::PythonVersion;
pub use unrecorded_children::UnrecordedProgram;
