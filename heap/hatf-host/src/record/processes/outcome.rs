//! The outcome of a recording.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use hatf_record::{NotFollowed, Stop};

use super::python_version::PythonVersion;
use super::unrecorded_children::UnrecordedProgram;
use crate::record::program::LinkedIn;
use crate::record::spool::SpoolFile;
use hatf_trace::Error;

/// The recorded data of a process.
#[derive(Debug)]
pub struct Recorded {
    /// Events in the trace.
    pub events: u64,
    /// Events that the sink had flushed before the trace was finished. If the sink then fails, the trace contains at
    /// least these events.
    pub flushed: u64,
    /// Allocation calls in the trace.
    pub allocations: u64,
    /// Events of the program that were lost, so the trace does not contain them.
    pub lost: u64,
    /// The reason why the spool could not grow, if it could not.
    pub not_grown: Option<io::Error>,
    /// Events that were held until an event of another thread was passed on, because the stamps of the two events
    /// contradicted each other.
    pub repairs: u64,
    /// Recorded program images: 0 if the program never loaded the recorder, more than 1 if it executed other programs.
    pub images: u64,
    /// The files of the images.
    pub programs: BTreeSet<PathBuf>,
    /// The statically linked allocators of these programs whose calls were not recorded.
    pub unrecorded: Vec<LinkedIn>,
    /// Whether the process executed another program that did not load the recorder.
    pub left: bool,
    /// That program, if known.
    pub became: Option<UnrecordedProgram>,
    /// The number of times that the program had to wait for space in the spool.
    pub waits: u64,
    /// Whether requested stacks are missing, because the stack table did not fit or because stacks cannot be walked on
    /// this machine.
    pub stackless: bool,
    /// The version of Python. Its frames are in the stacks if that version is supported.
    pub python: Option<PythonVersion>,
    /// Calls without a stack because the stack table was full.
    pub stacks_missed: u64,
    /// Allocation calls whose stack has one frame.
    pub single_frames: u64,
    /// Processes forked by this one.
    pub forks: u32,
    /// The reason why recording ended before the program, if it did.
    pub stopped: Option<Stop>,
    /// The number of times that recording resumed.
    pub starts: u64,
    /// Whether recording was off at the end.
    pub is_off: bool,
    /// The duration of the kept part, if the spool had no room for the time requested by [`crate::record::Keep::Time`].
    pub kept_short: Option<Duration>,
    /// With `--keep`, the first error in saving the images, modules, threads and the like of discarded chunks next to the
    /// spool. The trace contains these events, but they would have been lost if the recorder had been killed.
    pub not_lasting: Option<Error>,
    /// The run time of the process.
    pub duration: Duration,
    /// The sink's error. The program continued without being recorded.
    pub sink_error: Option<Error>,
}

/// Processes created by the program that were not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotRecordedProcesses {
    /// The minimum number of such processes.
    pub count: u32,
    /// The reasons why some of these processes were not recorded. The remaining processes were excluded by
    /// [`crate::record::RecordOptions`].
    pub reasons: Vec<NotFollowed>,
    /// Additional processes that were about to be forked but were never heard from. They ended immediately or never
    /// existed.
    pub unheard: u32,
    /// Programs of such processes that cannot load the recorder. Processes that end soon may be missing.
    pub programs: Vec<UnrecordedProgram>,
}

impl fmt::Display for NotRecordedProcesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.count == 1 { "process" } else { "processes" };
        write!(f, "{} other {what} not recorded", self.count)?;
        for (place, reason) in self.reasons.iter().enumerate() {
            f.write_str(if place == 0 { ": " } else { ", or " })?;
            f.write_str(match reason {
                NotFollowed::Most => {
                    "the maximum number of processes was already being recorded (--follow-most, ulimit -n)"
                }
                NotFollowed::User => "they ran as another user, who cannot open the spool",
                NotFollowed::Root => "they had a different root directory, which does not contain the spool",
                NotFollowed::Files => "they had no free file descriptors",
                NotFollowed::Filter => "the program may have a seccomp filter",
                NotFollowed::Room => "there was not enough space for their spools",
            })?;
        }
        Ok(())
    }
}

/// The outcome of a recording.
#[derive(Debug)]
pub struct Outcome {
    /// The exit status of the program.
    pub status: ExitStatus,
    /// The recorded data of the program.
    pub recorded: Recorded,
    /// The number of recorded processes created by the program.
    pub followed: u32,
    /// Processes that were not recorded.
    pub not_followed: NotRecordedProcesses,
    /// Errors of processes that could not be recorded completely.
    pub follow_errors: Vec<Error>,
    /// The reason why the program could not open the spool although it loaded the recorder.
    pub refused: Option<io::Error>,
    /// The spool, including the spools of further processes. It contains everything that is not in a trace.
    pub spool: EndedSpool,
}

/// The spool of a recording that has ended. It is removed on drop unless it is kept.
#[derive(Debug)]
pub struct EndedSpool(SpoolFile);

impl EndedSpool {
    pub(crate) fn new(file: SpoolFile) -> Self {
        Self(file)
    }

    /// Keeps the spool, so that [`crate::record::Spooled`] can make a trace from it. Returns its directory.
    #[must_use]
    pub fn keep(mut self) -> PathBuf {
        self.0.set_temporary(false);
        self.0.folder().path().to_owned()
    }
}

impl Recorded {
    /// Returns the reason why recording ended before the program, or `None` if it did not. Later events of the program
    /// were not recorded and do not count as lost.
    #[must_use]
    pub fn ended_early(&self) -> Option<&'static str> {
        match self.stopped {
            Some(Stop::Full) => Some("the spool was full"),
            Some(Stop::Confined) => Some("the program dropped permissions that recording requires"),
            None => self.sink_error.as_ref().map(|_| "the trace could not be written"),
        }
    }
}

impl Outcome {
    /// Returns the exit status that a shell would report: the program's own status, or 128 plus the signal number.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let code = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => code,
            (None, Some(signal)) => 128 + signal,
            (None, None) => 1,
        };
        u8::try_from(code).unwrap_or(1)
    }

    /// Returns a warning for the user if the trace is not what was requested.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        if self.recorded.images == 0 {
            let spool = self.spool.0.folder().path().display();
            return Some(match (&self.refused, self.status.signal()) {
                (Some(error), _) => {
                    format!("nothing was recorded: the program could not open the spool in {spool}: {error}")
                }
                (None, Some(signal)) => {
                    format!("the program was killed by signal {signal} before it loaded the recorder")
                }
                (None, None) => "the program did not load the recorder: it is statically linked, set-user-ID, built \
                                 for a different CPU architecture, or not allowed to open the spool"
                    .to_owned(),
            });
        }
        let lost = self.recorded.lost;
        let lost = (lost > 0).then(|| match &self.recorded.not_grown {
            Some(error) => {
                let spool = self.spool.0.path();
                format!("{lost} events were lost; {} could not grow: {error}", spool.display())
            }
            None => format!("{lost} events were lost"),
        });
        let ended = self.recorded.ended_early();
        let ended =
            ended.map(|why| format!("recording ended early: {why}; later events of the program were not recorded"));
        let said: Vec<_> = ended.into_iter().chain(lost).collect();
        (!said.is_empty()).then(|| said.join("; "))
    }
}
