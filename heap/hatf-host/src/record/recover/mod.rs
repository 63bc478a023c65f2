//! Makes a trace from a spool that was left behind because `hatf record` was killed.
//!
//! The unfinished trace contains complete groups, and chunks are reused only when their events are in the trace, so the
//! spool contains everything that the trace lacks. The number of events of each thread in the trace determines where
//! that thread continues.

mod unfinished_trace;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use hatf_record::Clock;
use serde_json::{Value, json};

use super::order::{CountingSink, Encode, LastPart, Merge, Moment, PendingSamples, Timeline, Translator, clock_name};
use super::processes::{End, FollowedProcess, Origin};
use super::spool::{ORIGIN, SpoolFile, StackFile, left_behind};
use hatf_trace::event::{EventSink, EventSource, UserMetadata};
use hatf_trace::forms::{self, Input, OpenOptions};
use hatf_trace::{Error, Result};
pub use unfinished_trace::ResumePoint;
use unfinished_trace::UnfinishedTrace;

/// A spool that was left behind.
#[derive(Debug)]
pub struct Spooled {
    file: SpoolFile,
    origin: Value,
}

/// The outcome of [`Spooled::recover`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Events in the trace.
    pub events: u64,
    /// Events that the unfinished trace contained.
    pub from_trace: u64,
    /// Events of the program that are missing. This is an upper bound if a part of the spool is
    /// [unreadable](Self::unreadable).
    pub lost: u64,
    /// Lost events that were once in the unfinished trace, but were removed from it by truncation or a disk error.
    pub missing: u64,
    /// Lost events that may be in an unreadable part of the spool.
    pub unreadable: u64,
    /// Whether some of the stacks cannot be read.
    pub are_stacks_damaged: bool,
    /// Repairs among the events from the spool; see [`super::Recorded::repairs`].
    pub repairs: u64,
    /// The start of the recording of the process, in nanoseconds since the recording of the program began.
    pub began: u64,
    /// The way the process ended.
    pub end: End,
}

impl Recovered {
    /// Returns whether everything in the spool is in the trace.
    #[must_use]
    pub fn is_all_read(&self) -> bool {
        self.unreadable == 0 && !self.are_stacks_damaged
    }
}

impl Spooled {
    /// Opens the spool in a directory.
    ///
    /// # Errors
    /// Returns an error if the directory contains no spool or does not belong to this user alone, or if the spool
    /// belongs to a recording in progress or to a running program.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::open_by(folder, || folder.parent().and_then(origin_of))
    }

    /// Opens the spool of a process created by the program: one of [`Spooled::processes`].
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Spooled::open`].
    pub fn open_process(&self, folder: &Path) -> Result<Self> {
        Self::open_by(folder, || Some(self.origin.clone()))
    }

    /// Opens a spool. `first` returns the data kept next to the spool of the program that was started.
    fn open_by(folder: &Path, first: impl FnOnce() -> Option<Value>) -> Result<Self> {
        let busy = |by: &str| Error::Trace(format!("{}: {by}", folder.display()).into());
        let file = SpoolFile::open(folder).map_err(|error| match error {
            Error::System(_, cause) if cause.kind() == std::io::ErrorKind::WouldBlock => {
                busy("another process is recording to this spool or recovering it")
            }
            other => other,
        })?;
        let process = file.spool().header().process.load(Relaxed);
        let maps = std::fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        let path = file.path().canonicalize().unwrap_or_else(|_| file.path());
        if process != 0 && maps.contains(&*path.to_string_lossy()) {
            return Err(busy(&format!(
                "the program (process {process}) is still running and being recorded: try again after it has ended"
            )));
        }
        let origin = match file.origin() {
            Err(Error::System(_, cause)) if cause.kind() == std::io::ErrorKind::NotFound => match first() {
                // `hatf record` was killed before it noticed this process.
                Some(first) => Origin::of_recovered(first, &FollowedProcess::of(&file)),
                // The process created its spool by itself, without `hatf record`.
                None if is_standalone(&file) => Origin::of_standalone(&file),
                None => return Err(Error::System(folder.join(ORIGIN).display().to_string(), cause)),
            },
            origin => origin?,
        };
        Ok(Self { file, origin })
    }

    /// Returns the existing spool directories of processes that the program created.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub fn processes(&self) -> Result<Vec<PathBuf>> {
        let mut folders = self.file.processes()?;
        folders.sort();
        Ok(folders)
    }

    /// Returns whether the process created the spool by itself, without `hatf record`. In this case, the spool does not
    /// specify the trace to write.
    #[must_use]
    pub fn is_standalone(&self) -> bool {
        is_standalone(&self.file)
    }

    /// Returns the process to which the spool belongs, or `None` for the program that was started.
    #[must_use]
    pub fn process(&self) -> Option<FollowedProcess> {
        let process = FollowedProcess::of(&self.file);
        (process.number > 1).then_some(process)
    }

    /// Returns the directories of existing spools, including the spools of recordings in progress.
    #[must_use]
    pub fn left_behind() -> Vec<PathBuf> {
        left_behind()
    }

    /// Returns the directory of the spool that contains the rest of an unfinished trace, or `None` if no such spool
    /// exists or the trace does not identify it.
    #[must_use]
    pub fn of_trace(trace: &Path) -> Option<PathBuf> {
        let mut input = Input::open(trace).ok()?;
        let is_metatf = input.is_metatf().unwrap_or(false);
        let mut reader = is_metatf.then(|| forms::read(input, &OpenOptions::default()).ok()).flatten()?;
        // The user metadata precedes the first event.
        let _ = reader.next();
        Self::of_recording(&reader.user_metadata())
    }

    /// Returns the spool directory of a recording, based on the user metadata of its trace.
    #[must_use]
    pub fn of_recording(user_metadata: &UserMetadata) -> Option<PathBuf> {
        // A slash is followed by the number of a process. The spool of this process is inside the directory of the
        // program's spool.
        let program = |recording: &Value| recording.as_str()?.split('/').next().map(str::to_owned);
        let recording = program(user_metadata.get("recording")?)?;
        let named = user_metadata.get("spool").and_then(Value::as_str).map(PathBuf::from);
        named.into_iter().chain(left_behind()).find(|folder| {
            let origin = SpoolFile::origin_of(folder).unwrap_or_default();
            program(&origin["start"]["user_metadata"]["recording"]).as_ref() == Some(&recording)
        })
    }

    /// Returns the directory of the spool.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.file.folder().path()
    }

    /// Returns the data kept next to the spool: see [`super::RecordOptions::about`].
    #[must_use]
    pub fn about(&self) -> &Value {
        &self.origin["about"]
    }

    /// Returns the name of the recording, which is also in the user metadata of its trace.
    #[must_use]
    pub fn recording(&self) -> Option<&Value> {
        self.origin["start"]["user_metadata"].get("recording")
    }

    /// Returns the program and its arguments. For a private recording, returns only the program's name.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        let words = self.origin["start"]["user_metadata"]["command"].as_array();
        let words: Vec<_> = words.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect();
        if words.is_empty() { vec![self.program().to_owned()] } else { words }
    }

    /// Returns the recorded program.
    #[must_use]
    pub fn program(&self) -> &str {
        self.origin["start"]["user_metadata"]["program"].as_str().unwrap_or("?")
    }

    /// Passes the events of the unfinished trace, up to its truncation, to a sink, followed by the events of the spool.
    ///
    /// # Errors
    /// Returns an error if the sink failed, a file next to the spool is corrupt, or the system cannot read the trace.
    pub fn recover(&self, written: Option<&mut dyn EventSource>, sink: &mut dyn EventSink) -> Result<Recovered> {
        let spool = self.file.spool();
        let start = &self.origin["start"];
        let number = |key: &str| start[key].as_u64();
        let clock = number("clock").and_then(|number| Clock::from_number(u32::try_from(number).ok()?));
        let (Some(clock), Some(stamp), Some(nanoseconds)) = (clock, number("stamp"), number("nanoseconds")) else {
            return Err(Error::Trace(
                format!("{}: not the spool of a recording", self.file.folder().path().display()).into(),
            ));
        };
        if let Some(user_metadata) = start["user_metadata"].as_object() {
            sink.user_metadata(user_metadata)?;
        }
        let mut timeline = Timeline::new(Moment { stamp, nanoseconds });
        self.moments().into_iter().for_each(|moment| timeline.learn(moment));
        let mut merge = Merge::new(spool);
        let mut translator = Translator::default();
        let mut sink = CountingSink::new(sink);
        let mut trace = UnfinishedTrace::default();
        if let Some(written) = written {
            trace.copy(written, &mut sink)?;
        }
        let from_trace = sink.events;
        let whole = trace.whole;
        // The trace was truncated later, or its disk lost data. The chunks with the missing events have been reused.
        let in_segments = from_trace.saturating_add_signed(trace.before);
        let had = spool.header().in_trace.load(Relaxed).saturating_sub(in_segments);
        let misses = had > 0 && !whole && numbers_events(&self.origin);
        if misses {
            // It is unknown which blocks ended in the missing part.
            trace.has.uncertain = true;
            trace.has.freed.clear();
        }
        // This timeline has fewer clock readings, so it may convert a stamp to a slightly earlier time than the trace
        // contains.
        timeline.go_on_from(trace.time);
        trace.go_on(&mut merge, &mut translator);
        let stacks = StackFile::open(self.file.folder());
        let mut encode =
            Encode { merge, translator, timeline, stacks, resident: PendingSamples::default(), sink, last: 0 };
        let dropped = spool.header().dropped.load(Relaxed);
        let missing = if misses { encode.pass_missing(had, spool.header().in_trace_until.load(Relaxed)) } else { 0 };
        let mut unreadable = 0;
        if !whole {
            match spool.header().horizon.load(Relaxed) {
                0 => encode.rest(u64::MAX),
                horizon => LastPart::from_json(horizon, &self.file.lasting()?).encode(&mut encode, u64::MAX),
            }
            unreadable = self.file.unreadable_slots();
            let lost = dropped.saturating_add(encode.merge.counted().gaps).saturating_add(missing);
            let lost = lost.saturating_add(unreadable);
            let repairs = encode.merge.counted().repairs;
            let counts = json!({"lost": lost, "repairs": repairs, "stamps": clock_name(clock), "recovered": true});
            let end = End::of_exit(spool.header());
            let dropped = dropped.saturating_add(unreadable);
            encode.finish(dropped, end.event(), counts.as_object().cloned().unwrap_or_default());
        }
        let counted = encode.merge.counted();
        let lost = dropped.saturating_add(counted.gaps).saturating_add(missing).saturating_add(unreadable);
        let (events, are_stacks_damaged) = (encode.sink.events, encode.stacks.is_damaged());
        encode.sink.error.map_or(Ok(()), Err)?;
        let began = spool.header().start.load(Relaxed).saturating_sub(nanoseconds);
        let end = End::of_exit(spool.header());
        let repairs = counted.repairs;
        Ok(Recovered { events, from_trace, lost, missing, unreadable, are_stacks_damaged, repairs, began, end })
    }

    /// Removes the spool. If its directory contains spools of other processes, these spools and the directory are kept.
    pub fn remove(self) {
        self.file.remove_alone();
    }

    /// Returns the clock readings taken when threads took chunks.
    fn moments(&self) -> Vec<Moment> {
        let spool = self.file.spool();
        let heads = spool.taken().filter_map(|chunk| spool.chunk(chunk)).map(|chunk| chunk.head());
        let moment = |head: &hatf_record::ChunkHead| Moment {
            stamp: head.stamp.load(Relaxed),
            nanoseconds: head.nanoseconds.load(Relaxed),
        };
        let mut moments: Vec<_> = heads.map(moment).filter(|moment| moment.stamp != 0).collect();
        moments.sort_by_key(|moment| moment.stamp);
        moments
    }
}

/// Returns the data that is, or would be, kept next to the spool in a directory.
fn origin_of(folder: &Path) -> Option<Value> {
    let of_spool = || SpoolFile::open(folder).ok().filter(is_standalone).map(|file| Origin::of_standalone(&file));
    SpoolFile::origin_of(folder).ok().or_else(of_spool)
}

/// Returns whether a trace contains every event passed to its writer. The paper's format contains only some of these
/// events.
fn numbers_events(origin: &Value) -> bool {
    origin["about"]["format"] == "heap"
}

fn is_standalone(file: &SpoolFile) -> bool {
    file.spool().header().recorder.load(Relaxed) == 0
}

#[cfg(test)]
mod tests;
