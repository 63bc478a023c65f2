//! A trace in segments: a directory of traces, each of which begins with the live state and is complete by itself.
//!
//! The next segment is created with its live state before the current segment is completed and gets its final name.
//! Therefore, the unfinished segment with the lowest number always contains the live state, and `hatf recover` continues
//! it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hatf::share::{LiveState, SegmentStart};
use hatf_host::record::{Keep, ResumePoint};
use hatf_trace::event::{Event, EventKind, EventSink, SEGMENT, SEGMENT_END, UserMetadata};
use hatf_trace::forms::Segments;
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::{Error, Result};
use metatf::container::WriteOptions;
use metatf_cli::OutputFolder;
use serde_json::json;

use super::options::Record as Options;
use super::trace_output::{TraceForm, about_output, full};
use crate::command::print_message;

/// The number of events after which the limits are checked.
const CHECK: u32 = 4096;
/// The number of bytes written in one call.
const BUFFER: usize = 1 << 18;

/// A sink that writes a recording to the segments of a directory.
pub(crate) struct Rotation {
    folder: OutputFolder,
    form: TraceForm,
    write: WriteOptions,
    rotate: Keep,
    room: Arc<Room>,
    current: Segment,
    state: LiveState,
    resume: ResumePoint,
    /// The number of heaps of programs that ended before this segment.
    heaps: u64,
    /// The user metadata that describe the recording.
    user_metadata: UserMetadata,
    unchecked: u32,
}

/// The segment being written.
struct Segment {
    number: u64,
    writer: HeapWriter<'static>,
    file: File,
    /// The number of bytes written to the file.
    bytes: Arc<AtomicU64>,
    begun: Instant,
    /// The number of events that the recorder lost.
    lost: u64,
}

/// The disk space of the segments.
struct Room {
    folder: OutputFolder,
    retain: Option<Keep>,
    kept: Mutex<KeptSegments>,
}

#[derive(Default)]
struct KeptSegments {
    complete: VecDeque<CompleteSegment>,
    /// The error after which nothing more is written.
    error: Option<i32>,
    was_full: bool,
}

struct CompleteSegment {
    number: u64,
    bytes: u64,
    ended: Instant,
}

/// The file of a segment. If the disk is full, the oldest segments are deleted, provided that the user has limited the
/// segments to retain.
struct SegmentFile {
    file: File,
    /// The number of bytes written.
    bytes: Arc<AtomicU64>,
    room: Arc<Room>,
}

/// Creates the directory for the segments of a trace. If the directory contains anything, creates one whose name has a
/// number, so that the segments of earlier recordings are kept.
///
/// # Errors
/// Returns an error if the directory cannot be created.
pub(crate) fn new_folder(path: &Path) -> Result<PathBuf> {
    let numbered = |number: u32| {
        let mut name = OsString::from(path);
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let places = std::iter::once(path.to_owned()).chain((1..).map(numbered));
    for place in places {
        if super::trace_output::folder_of(&place).exists() {
            continue;
        }
        match fs::create_dir(&place) {
            Ok(()) => return Ok(place),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(full(Error::system(place.display().to_string())(error))),
        }
        let is_empty = fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_none());
        if is_empty {
            return Ok(place);
        }
    }
    Err(Error::Usage(format!("{}: there is no free name", path.display())))
}

/// Returns the interval at which the sink must be flushed so that segments do not become much longer than requested.
pub(super) fn flush(options: &Options) -> Option<Duration> {
    let asked = options.flush.map(Duration::from_secs);
    let rotate = match options.rotate {
        Some(Keep::Time(time)) => Some(Duration::from_nanos((time / 2).max(100_000_000))),
        _ => None,
    };
    asked.into_iter().chain(rotate).min()
}

impl Rotation {
    /// Begins the first segment.
    ///
    /// # Errors
    /// Returns an error if the segment cannot be created.
    pub(crate) fn new(folder: &OutputFolder, options: &Options, write: &WriteOptions) -> Result<Self> {
        let form = TraceForm::of(options);
        let room = Arc::new(Room { folder: folder.clone(), retain: options.retain, kept: Mutex::default() });
        let current = Segment::new(&room, 1, form, write)?;
        Ok(Self {
            folder: folder.clone(),
            form,
            write: write.clone(),
            rotate: options.rotate.unwrap_or(Keep::Bytes(u64::MAX)),
            room,
            current,
            state: LiveState::default(),
            resume: ResumePoint::default(),
            heaps: 0,
            user_metadata: UserMetadata::new(),
            unchecked: 0,
        })
    }

    /// Deletes the segments and their directory, because nothing was recorded.
    pub(crate) fn abandon(self) {
        let name = Segments::unfinished_name(self.current.number);
        self.current.writer.abandon();
        self.folder.remove(name.as_ref());
        // This succeeds only if the directory is empty.
        let _ = fs::remove_dir(self.folder.path());
    }

    /// Completes the last segment and waits until it is on disk. Returns the total size of the retained segments.
    ///
    /// # Errors
    /// Returns an error if the segment cannot be written. Its file keeps the name of an unfinished segment.
    pub(crate) fn finish(self) -> Result<u64> {
        let Self { folder, room, current, .. } = self;
        let name = current.number;
        current.end(&room, None)?;
        folder.sync().map_err(Error::system(folder.path().join(Segments::name(name)).display().to_string()))?;
        let kept = room.kept();
        Ok(kept.complete.iter().map(|segment| segment.bytes).sum())
    }

    /// Starts the next segment if the current one is large or old enough.
    #[cold]
    fn check(&mut self) -> Result<()> {
        self.unchecked = 0;
        let written = self.current.bytes.load(Ordering::Relaxed);
        self.room.retain(Instant::now(), written);
        let (limit, now) = match self.rotate {
            Keep::Time(limit) => (limit, u64::try_from(self.current.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)),
            Keep::Bytes(limit) => (limit, written),
        };
        // A thread that ended within a realloc must not prevent rotation forever.
        if now < limit || !self.resume.is_between_calls() && now / 2 < limit {
            return Ok(());
        }
        let start = self.state.start_segment()?;
        self.heaps += start.heaps();
        let number = self.current.number + 1;
        let mut next = Segment::new(&self.room, number, self.form, &self.write)?;
        next.begin(&self.user_metadata, self.resume.start_segment(), Some(&start))?;
        std::mem::replace(&mut self.current, next).end(&self.room, Some(&start))
    }
}

impl EventSink for Rotation {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let own = Event { heap: event.heap.saturating_sub(self.heaps), ..*event };
        self.resume.note(event);
        self.state.event(&own)?;
        if let EventKind::Lost { events } = own.kind {
            self.current.lost = self.current.lost.saturating_add(events);
        }
        self.current.writer.event(&own).map_err(|error| self.current.about(&self.room, error))?;
        self.unchecked += 1;
        if self.unchecked >= CHECK { self.check() } else { Ok(()) }
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.current.writer.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.state.user_metadata(user_metadata)?;
        if self.user_metadata.is_empty() {
            self.user_metadata.clone_from(user_metadata);
            return self.current.begin(user_metadata, self.resume.start_segment(), None);
        }
        let mut user_metadata = user_metadata.clone();
        // These counts are about the whole recording, but the segment describes only a part of it.
        user_metadata.remove("events");
        user_metadata.insert("lost".to_owned(), self.current.lost.into());
        self.current.writer.user_metadata(&user_metadata)
    }

    fn flush(&mut self) -> Result<()> {
        self.current.writer.flush().map_err(|error| self.current.about(&self.room, error))?;
        self.check()
    }
}

impl Segment {
    fn new(room: &Arc<Room>, number: u64, form: TraceForm, write: &WriteOptions) -> Result<Self> {
        let name = Segments::unfinished_name(number);
        let problem = || Error::system(room.folder.path().join(&name).display().to_string());
        let created = room.with_room(|| room.folder.new_file(name.as_ref()));
        let file = created.and_then(|file| Ok((file.try_clone()?, file))).map_err(|error| full(problem()(error)))?;
        let TraceForm { resolution, group_records, plain, .. } = form;
        let heap = HeapOptions { write: write.clone(), resolution, group_records, plain };
        let (file, written) = file;
        let bytes = Arc::default();
        let target = SegmentFile { file: written, bytes: Arc::clone(&bytes), room: Arc::clone(room) };
        let sink = BufWriter::with_capacity(BUFFER, target);
        let writer = HeapWriter::new(sink, &heap).map_err(|error| about_output(&name, error))?;
        Ok(Self { number, writer, file, bytes, begun: Instant::now(), lost: 0 })
    }

    /// Writes the user metadata and the live state, and flushes both.
    fn begin(
        &mut self,
        user_metadata: &UserMetadata,
        resume: UserMetadata,
        start: Option<&SegmentStart>,
    ) -> Result<()> {
        let carried = |count: fn(&SegmentStart) -> u64| start.map_or(0, count);
        let about = json!({
            "number": self.number,
            "carried_records": carried(SegmentStart::records),
            "carried_blocks": carried(SegmentStart::blocks),
            "carried_bytes": carried(SegmentStart::bytes),
        });
        let mut user_metadata = user_metadata.clone();
        user_metadata.extend(resume);
        user_metadata.insert(SEGMENT.to_owned(), about);
        self.writer.user_metadata(&user_metadata)?;
        if let Some(start) = start {
            start.give(&mut self.writer)?;
            self.writer.flush()?;
        }
        Ok(())
    }

    /// Completes the segment and gives it its final name. `next` is the start of the next segment, if there is one.
    fn end(self, room: &Room, next: Option<&SegmentStart>) -> Result<()> {
        let Self { number, mut writer, file, lost, .. } = self;
        let [from, to] = [Segments::unfinished_name(number), Segments::name(number)];
        let name = room.folder.path().join(&from).display().to_string();
        if let Some(next) = next {
            let end = json!({"blocks": next.blocks(), "bytes": next.bytes()});
            let counts = UserMetadata::from_iter([(SEGMENT_END.to_owned(), end), ("lost".to_owned(), lost.into())]);
            writer.user_metadata(&counts)?;
        }
        let written = writer.finish().map(drop).map_err(|error| full(about_output(&name, error)));
        room.failed().map_or(Ok(()), |error| Err(full(Error::system(name.clone())(error))))?;
        written?;
        let placed = file.sync_all().and_then(|()| room.folder.rename(from.as_ref(), to.as_ref()));
        placed.and_then(|()| file.metadata()).map_err(|error| full(Error::system(name)(error))).map(|metadata| {
            let ended = Instant::now();
            room.kept().complete.push_back(CompleteSegment { number, bytes: metadata.len(), ended });
            room.retain(ended, 0);
        })
    }

    /// Replaces an error of the writer by its cause, if the file has failed.
    fn about(&self, room: &Room, error: Error) -> Error {
        let name = room.folder.path().join(Segments::unfinished_name(self.number)).display().to_string();
        full(room.failed().map_or_else(|| about_output(&name, error), Error::system(name.clone())))
    }
}

impl Room {
    fn kept(&self) -> MutexGuard<'_, KeptSegments> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error of the file, if it has failed.
    fn failed(&self) -> Option<io::Error> {
        self.kept().error.map(io::Error::from_raw_os_error)
    }

    /// Deletes the oldest complete segments beyond the limit. `current` is the size of the segment being written.
    fn retain(&self, now: Instant, current: u64) {
        let mut kept = self.kept();
        match self.retain {
            None => {}
            Some(Keep::Time(limit)) => {
                let limit = Duration::from_nanos(limit);
                while kept.complete.front().is_some_and(|oldest| now.duration_since(oldest.ended) > limit) {
                    self.delete_oldest(&mut kept);
                }
            }
            Some(Keep::Bytes(limit)) => {
                let total = |kept: &KeptSegments| {
                    kept.complete.iter().fold(current, |sum, segment| sum.saturating_add(segment.bytes))
                };
                while total(&kept) > limit && self.delete_oldest(&mut kept) {}
            }
        }
    }

    /// Deletes the oldest complete segment. Returns whether there was one.
    fn delete_oldest(&self, kept: &mut KeptSegments) -> bool {
        let Some(oldest) = kept.complete.pop_front() else { return false };
        self.folder.remove(Segments::name(oldest.number).as_ref());
        true
    }

    /// Calls `act`, and deletes the oldest segments until there is enough space, if the user has limited the segments
    /// to retain.
    fn with_room<T>(&self, mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            let result = act();
            let is_full =
                |error: &io::Error| matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            let mut kept = self.kept();
            if self.retain.is_none() || !result.as_ref().is_err_and(is_full) || !self.delete_oldest(&mut kept) {
                return result;
            }
            if !std::mem::replace(&mut kept.was_full, true) {
                let folder = self.folder.path().display();
                print_message(&format!("{folder}: no space left, so the oldest segments are deleted earlier"));
            }
        }
    }
}

impl Write for SegmentFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(error) = self.room.failed() {
            return Err(error);
        }
        let written = self.room.with_room(|| (&self.file).write(bytes));
        match &written {
            Ok(written) => drop(self.bytes.fetch_add(*written as u64, Ordering::Relaxed)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => self.room.kept().error = Some(error.raw_os_error().unwrap_or(libc::EIO)),
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for SegmentFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
