//! A recording in progress as seen by another process: the content of its spool, and requests to the recording.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use hatf_record::CHUNK_BYTES;

use super::path_json::path_from_json;
use super::recover::Spooled;
use super::spool::{CONTROL, SpoolFile, WATCHED, left_behind};
use hatf_trace::Result;
use hatf_trace::event::UserMetadata;

/// A recording in progress, found by its spool.
#[derive(Debug)]
pub struct Ongoing {
    /// The spool of the process.
    file: SpoolFile,
    /// The spool of the first process, which contains the files that control the recording; `None` if this process is
    /// the first.
    first: Option<SpoolFile>,
}

/// The state of a spool, including the counts that its program has reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpoolState {
    /// The recorded process, or 0 if it has not loaded the recorder yet.
    pub process: u32,
    /// The number of bytes of events that have not been safely written to the trace yet, counted in whole chunks.
    pub backlog: u64,
    /// The capacity of the spool in bytes.
    pub room: u64,
    /// Events that the program had to drop.
    pub dropped: u64,
    /// The number of times that a thread found no room in the spool.
    pub waits: u64,
    /// Whether recording is off.
    pub is_off: bool,
    /// The number of further processes being recorded.
    pub followed: u32,
}

impl Ongoing {
    /// Finds the recording that writes a trace. `user_metadata` is the user metadata of the trace, as far as it has
    /// been read.
    #[must_use]
    pub fn of_trace(trace: &Path, user_metadata: &UserMetadata) -> Option<Self> {
        let named = Spooled::of_recording(user_metadata);
        let absolute = std::path::absolute(trace).ok()?;
        let writes = |folder: &PathBuf| output_of(folder).is_some_and(|output| output == absolute);
        let all = named.into_iter().chain(left_behind());
        let folder =
            all.flat_map(|folder| std::iter::once(folder.clone()).chain(processes_in(&folder))).find(writes)?;
        Self::open(&folder)
    }

    /// Finds the recording of a process, and its trace.
    #[must_use]
    pub fn of_process(process: u32) -> Option<(Self, PathBuf)> {
        // The process has mapped its spool, so the spool's path is in this list.
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
        let mut folders = maps.lines().filter_map(|line| {
            let path = Path::new(line.get(line.find('/')?..)?);
            (path.file_name()? == hatf_record::names::EVENTS).then(|| path.parent().map(Path::to_owned))?
        });
        folders.find_map(|folder| {
            let ongoing = Self::open(&folder)?;
            (ongoing.state().process == process).then_some((ongoing, output_of(&folder)?))
        })
    }

    fn open(folder: &Path) -> Option<Self> {
        let file = SpoolFile::look(folder).ok()?;
        let first = folder.parent().and_then(|parent| SpoolFile::look(parent).ok());
        let ongoing = Self { file, first };
        ongoing.is_recorded().then_some(ongoing)
    }

    /// Returns whether the process is still being recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.file.is_in_use()
    }

    /// Returns the directory of the spool.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.file.folder().path()
    }

    /// Returns the current state of the spool.
    #[must_use]
    pub fn state(&self) -> SpoolState {
        let spool = self.file.spool();
        let header = spool.header();
        let bytes = |chunks: usize| (chunks * CHUNK_BYTES) as u64;
        let first = self.first.as_ref().map_or(header, |first| first.spool().header());
        SpoolState {
            process: header.process.load(Ordering::Relaxed),
            backlog: bytes(spool.taken().count()),
            room: bytes(spool.chunks()),
            dropped: header.dropped.load(Ordering::Relaxed),
            waits: header.waits.load(Ordering::Relaxed),
            is_off: header.is_off(),
            followed: first.followed.load(Ordering::Relaxed),
        }
    }

    /// Marks the recording as watched. For the next three seconds, the trace is flushed twice per second.
    ///
    /// # Errors
    /// Returns an error if a system call failed.
    pub fn watch(&self) -> Result<()> {
        self.control().write(WATCHED, &[])
    }

    /// Sets a mark in the traces of all processes. `number` must differ from the number of the previous mark.
    ///
    /// # Errors
    /// Returns an error if a system call failed.
    pub fn mark(&self, name: &str, number: u64) -> Result<()> {
        self.control().write(CONTROL, format!("mark {name}\n{}.{number}\n", std::process::id()).as_bytes())
    }

    fn control(&self) -> &SpoolFile {
        self.first.as_ref().unwrap_or(&self.file)
    }
}

/// Returns the path of the trace that is made from a directory's spool.
fn output_of(folder: &Path) -> Option<PathBuf> {
    path_from_json(&SpoolFile::origin_of(folder).ok()?["about"]["output"])
}

/// Returns the process directories in the directory of a program.
fn processes_in(folder: &Path) -> Vec<PathBuf> {
    SpoolFile::look(folder).and_then(|file| file.processes()).unwrap_or_default()
}
