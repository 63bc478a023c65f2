//! What became of a recording.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use hatf_record::{NotFollowed, Stop};

use super::python_version::PythonVersion;
use crate::Error;
use crate::record::spool::SpoolFile;

/// What was recorded of a process.
#[derive(Debug)]
pub struct Recorded {
    /// Events in the trace.
    pub events: u64,
    /// Events that the sink had flushed before the end: at least these are in the trace where it fails then.
    pub flushed: u64,
    /// Calls among them that allocate.
    pub allocations: u64,
    /// Events that the program made and that did not arrive.
    pub lost: u64,
    /// Events that had to be held until one of another thread was given, as the stamps of the two contradicted each other.
    pub repairs: u64,
    /// Program images recorded: 0 if the program never loaded the recorder, over 1 if it turned into
    /// others by exec.
    pub images: u64,
    /// The files of its images.
    pub programs: BTreeSet<PathBuf>,
    /// Functions of an allocator that a program has linked in whose calls were recorded.
    pub linked: u32,
    /// It has become another program by exec, which did not load the recorder.
    pub left: bool,
    /// Times that the program had to wait for space in the spool.
    pub waits: u64,
    /// Stacks were asked for, and there are none: no room for their table, or no way to find them on this machine.
    pub stackless: bool,
    /// The version of Python whose frames are in stacks, or, where it is not known, are not.
    pub python: Option<PythonVersion>,
    /// Calls that have no stack because the table of stacks had no room for it.
    pub stacks_missed: u64,
    /// Calls that allocate whose stack has one frame.
    pub single_frames: u64,
    /// Processes that it forked.
    pub forks: u32,
    /// Why recording ended before the program did.
    pub stopped: Option<Stop>,
    /// How often recording went on after it was off.
    pub starts: u64,
    /// Recording was off when it ended.
    pub is_off: bool,
    /// The last part for so long was kept, where [`crate::record::Keep::Time`] asked for more: the spool had no room for it.
    pub kept_short: Option<Duration>,
    /// Why what lasts of events that were given back could not be noted beside the spool, where the last part is kept. The trace has it;
    /// after a kill it could not have been recovered.
    pub not_lasting: Option<Error>,
    /// How long it ran.
    pub duration: Duration,
    /// The sink's error. The program went on without being recorded.
    pub sink_error: Option<Error>,
}

/// Processes that the program made and that were not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotRecordedProcesses {
    /// At least this many.
    pub count: u32,
    /// Why some of them were not. Others were not to be, as [`crate::record::RecordOptions`] say.
    pub reasons: Vec<NotFollowed>,
    /// Besides, processes that were about to be forked and of which nothing was heard: they ended at once, or were never there.
    pub unheard: u32,
}

impl fmt::Display for NotRecordedProcesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.count == 1 { "process" } else { "processes" };
        write!(f, "{} other {what} not recorded", self.count)?;
        for (place, reason) in self.reasons.iter().enumerate() {
            f.write_str(if place == 0 { ": " } else { ", or " })?;
            f.write_str(match reason {
                NotFollowed::Most => "as many were recorded as may be at once (--follow-most, ulimit -n)",
                NotFollowed::User => "they ran as another user, who cannot open the spool",
                NotFollowed::Root => "they had another root folder, where the spool is not found",
                NotFollowed::Files => "they had no file descriptor left",
                NotFollowed::Filter => "the program may have a filter for system calls",
                NotFollowed::Room => "there was no room for their spools",
            })?;
        }
        Ok(())
    }
}

/// The outcome of a recording.
#[derive(Debug)]
pub struct Outcome {
    /// How the program ended.
    pub status: ExitStatus,
    /// What was recorded of it.
    pub recorded: Recorded,
    /// Processes that the program made and that were recorded.
    pub followed: u32,
    /// Processes that were not recorded.
    pub not_followed: NotRecordedProcesses,
    /// The errors of processes that could not be recorded, or not whole.
    pub follow_errors: Vec<Error>,
    /// Why the program could not open the spool, though it has loaded the recorder.
    pub refused: Option<io::Error>,
    /// The spool, with those of processes. All that is not in a trace is in it.
    pub spool: EndedSpool,
}

/// The spool of a recording that has ended: it is removed when this is dropped, unless it is kept.
#[derive(Debug)]
pub struct EndedSpool(SpoolFile);

impl EndedSpool {
    pub(crate) fn new(file: SpoolFile) -> Self {
        Self(file)
    }

    /// Leaves it where it is, for [`crate::record::Spooled`] to make a trace of, and returns its folder.
    #[must_use]
    pub fn keep(mut self) -> PathBuf {
        self.0.set_temporary(false);
        self.0.folder().path().to_owned()
    }
}

impl Recorded {
    /// Returns why recording ended before the program did; `None`: it did not. What the program did after that was not recorded, and is
    /// not counted as lost.
    #[must_use]
    pub fn ended_early(&self) -> Option<&'static str> {
        match self.stopped {
            Some(Stop::Full) => Some("the spool was full"),
            Some(Stop::Confined) => Some("the program gave up what recording needs"),
            None => self.sink_error.as_ref().map(|_| "the trace could not be written"),
        }
    }
}

impl Outcome {
    /// Returns the exit status a shell would give: the program's, or 128 and the signal's number.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let code = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => code,
            (None, Some(signal)) => 128 + signal,
            (None, None) => 1,
        };
        u8::try_from(code).unwrap_or(1)
    }

    /// Something the user should know where the trace is not what was asked for.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        if self.recorded.images == 0 {
            let spool = self.spool.0.folder().path().display();
            return Some(match (&self.refused, self.status.signal()) {
                (Some(error), _) => {
                    format!("nothing was recorded: the program could not open the spool in {spool}: {error}")
                }
                (None, Some(signal)) => {
                    format!("the program was ended by signal {signal} before it loaded the recorder")
                }
                (None, None) => "the program did not load the recorder: it is statically linked, or set-user-ID, or \
                                 for another machine, or it may not open the spool"
                    .to_owned(),
            });
        }
        let lost = self.recorded.lost;
        let lost = (lost > 0).then(|| format!("{lost} events were lost"));
        let ended = self.recorded.ended_early();
        let ended =
            ended.map(|why| format!("recording ended early: {why}; what the program did then was not recorded"));
        let said: Vec<_> = ended.into_iter().chain(lost).collect();
        (!said.is_empty()).then(|| said.join("; "))
    }
}
