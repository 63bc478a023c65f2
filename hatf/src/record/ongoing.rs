//! A recording in progress, as another process sees it: what is in its spool, and what can be asked of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use hatf_record::CHUNK_BYTES;

use super::path_json::path_from_json;
use super::recover::Spooled;
use super::spool::{CONTROL, SpoolFile, WATCHED, left_behind};
use crate::Result;
use crate::event::UserMetadata;

/// A recording in progress, by its spool.
#[derive(Debug)]
pub struct Ongoing {
    /// The spool of the process.
    file: SpoolFile,
    /// That of the program, which has the files by which the recording is controlled, where the process is not the first.
    first: Option<SpoolFile>,
}

/// What a spool holds, and what its program has said of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpoolState {
    /// The process that is recorded; 0: it has not loaded the recorder yet.
    pub process: u32,
    /// Bytes of events that are not safe in the trace yet, in whole chunks.
    pub backlog: u64,
    /// Bytes that there may be.
    pub room: u64,
    /// Events that the program had to drop.
    pub dropped: u64,
    /// Times that a thread found no room.
    pub waits: u64,
    /// Recording is off.
    pub is_off: bool,
    /// Further processes that are recorded now.
    pub followed: u32,
}

impl Ongoing {
    /// Finds the recording that writes a trace. `user_metadata` is what the trace says of itself, as far as that was read.
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
        // The process has its spool mapped.
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

    /// Returns whether it is still being recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.file.is_in_use()
    }

    /// Returns the folder of the spool.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.file.folder().path()
    }

    /// Returns what the spool holds at this moment.
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

    /// Says that somebody watches: for three seconds from now on the trace is flushed twice in a second.
    ///
    /// # Errors
    /// The system's.
    pub fn watch(&self) -> Result<()> {
        self.control().write(WATCHED, &[])
    }

    /// Sets a mark in the traces of all processes, at this moment. `number` has to be another than that of the last mark.
    ///
    /// # Errors
    /// The system's.
    pub fn mark(&self, name: &str, number: u64) -> Result<()> {
        self.control().write(CONTROL, format!("mark {name}\n{}.{number}\n", std::process::id()).as_bytes())
    }

    fn control(&self) -> &SpoolFile {
        self.first.as_ref().unwrap_or(&self.file)
    }
}

/// Returns the trace that is made of a folder's spool.
fn output_of(folder: &Path) -> Option<PathBuf> {
    path_from_json(&SpoolFile::origin_of(folder).ok()?["about"]["output"])
}

/// Returns the folders of the processes in that of a program.
fn processes_in(folder: &Path) -> Vec<PathBuf> {
    SpoolFile::look(folder).and_then(|file| file.processes()).unwrap_or_default()
}
