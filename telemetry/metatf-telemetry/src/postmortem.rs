//! The events of a killed or running process, from its unfinished trace and its buffers.
//!
//! This file exceeds 400 lines, because the code that finds the buffers, copies the trace and adds the remaining events
//! belongs together.
//!
//! ```
//! use metatf_telemetry::postmortem::Buffers;
//! use metatf_telemetry::{Place, Settings};
//!
//! # #[metatf_derive::metatf(dtd = "tests/events.dtd", emitters = "crate::events")]
//! # mod events {}
//! let folder = tempfile::tempdir()?;
//! let place = Place::Folder(folder.path().to_owned());
//! let settings = Settings { place, drain: false, threads: 4, ..Settings::default() };
//! let telemetry = events::TELEMETRY.start_to(settings, Box::new(Vec::<u8>::new()))?;
//! events::step(42);
//!
//! // Usually, the process has been killed, and another process opens the buffers.
//! let path = events::TELEMETRY.buffers().ok_or("no buffers")?;
//! let (found, _recovered) = Buffers::open(&path)?.recover(Box::new(Vec::<u8>::new()))?;
//! assert_eq!((found.in_trace, found.in_buffers), (0, 1));
//! telemetry.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use metatf::ErrorKind;
use metatf::container::Reader;
use metatf::dynamic::Trace;
use metatf::reader::Event;

use crate::clock::{Line, Moment};
use crate::control::Change;
use crate::core_dump;
use crate::encode::{Encoder, Scene, write_places};
use crate::error::Error;
use crate::events::{Part, Place, find, order};
use crate::folder;
use crate::image::{Image, ImageRing, name_of};
use crate::layout::{Header, MAGIC, MAGIC_CHUNKS};
use crate::sys;
use crate::table::{Source, Table};
use crate::trace_file::{TraceSink, numbered};
use crate::unwritten::Unwritten;

/// The buffers of a process that is running or has ended.
pub struct Buffers {
    image: Image,
    table: Table,
}

/// The result of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The number of records in the unfinished trace.
    pub in_trace: u64,
    /// The number of events found only in the buffers.
    pub in_buffers: u64,
    /// The threads, as pairs of ID and name.
    pub threads: Vec<(u32, String)>,
    /// The number of events dropped because no ring was free.
    pub refused: u64,
    /// Warnings about inconsistencies.
    pub warnings: Vec<String>,
    /// Descriptions of recorded events that are missing from the result, because a trace is missing or corrupt or a
    /// part of the buffers is unreadable.
    pub lost: Vec<String>,
}

/// The trace of a process.
enum Unfinished {
    Found(PathBuf),
    /// A trace that is missing for the given reason, so its events are lost.
    Missing(PathBuf, &'static str),
}

/// Finds buffers, given a buffers file, a core dump, the trace of a process, or a process ID.
///
/// # Errors
/// Returns an error if there are no buffers.
pub fn locate(name: &str) -> Result<Buffers, Error> {
    match name.parse::<u32>() {
        Ok(process) if !Path::new(name).exists() => of_process(process),
        _ => Buffers::open(Path::new(name)),
    }
}

/// Finds the newest buffers of a process in the default directory, or in the one set by `METATF_TELEMETRY_FOLDER`. In a
/// directory that other users may write to, only files of this user are trusted.
fn of_process(process: u32) -> Result<Buffers, Error> {
    let set = sys::environment("METATF_TELEMETRY_FOLDER").filter(|folder| !folder.is_empty());
    let folder = set.map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let files = folder::files(&folder).map_err(|error| Error::File("read the directory", folder.clone(), error))?;
    let mut refused = None;
    for path in files.into_iter().filter(|file| file.process == process).map(|file| file.path) {
        match folder::open_own(&path) {
            Ok(file) => return Buffers::of(file, 0, &path),
            Err(error) => refused = Some(Error::File("open", path, error)),
        }
    }
    Err(refused.unwrap_or_else(|| {
        Error::Trace(format!(
            "process {process} has no buffers in {}: the process does not use telemetry, has ended normally, or uses \
             another directory, which you can set with METATF_TELEMETRY_FOLDER",
            folder.display()
        ))
    }))
}

impl Buffers {
    /// Opens a buffers file, the buffers file that a trace refers to, or the buffers in a core dump.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or contains no buffers.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |path: &Path, error| Error::File("open", path.to_owned(), error);
        let file = folder::open(path).map_err(|error| failed(path, error))?;
        let mut first = [0; 8];
        match file.read_exact_at(&mut first, 0) {
            Ok(()) if [MAGIC, MAGIC_CHUNKS].contains(&u64::from_ne_bytes(first)) => return Self::of(file, 0, path),
            // A file of fewer than 8 bytes contains no buffers.
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(Error::File("read", path.to_owned(), error));
            }
            _ => {}
        }
        if first.starts_with(b"\x7fELF") {
            let from = core_dump::find(&file)?;
            return Self::of(file, from, path);
        }
        if first.starts_with(b"\x7fMTF") {
            let buffers = named_by(path)?;
            // A forged trace may refer to any file.
            let file = folder::open_own(&buffers).map_err(|error| failed(&buffers, error))?;
            return Self::of(file, 0, &buffers);
        }
        let path = path.display();
        Err(Error::Trace(format!("expected telemetry buffers, a telemetry trace or a core dump, found {path}")))
    }

    fn of(file: File, from: u64, path: &Path) -> Result<Self, Error> {
        let image = Image::open(file, path, from)?;
        let table = Table::parse(&image.texts.table)?;
        Ok(Self { image, table })
    }

    /// Returns the file that contains the buffers.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.image.path
    }

    /// Returns the ID of the process that owns the buffers.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.image.process()
    }

    /// Returns the names of the kinds, starting at bit 0.
    #[must_use]
    pub fn kinds(&self) -> Vec<&str> {
        self.table.kinds()
    }

    /// Returns the kind of an event, given the number of its section and its tag, and the index of the leaf (not
    /// counting the tag) that contains its thread.
    #[must_use]
    pub fn kind_of(&self, section: u8, tag: u32) -> Option<(&str, Option<usize>)> {
        let mut events = self.table.events.iter().chain(&self.table.nested);
        let event = events.find(|event| event.section == section && event.tag == tag)?;
        let thread = event.sources.iter().position(|source| *source == Source::Thread);
        Some((self.table.kinds.get(usize::from(event.kind))?, thread))
    }

    /// Returns the enabled kinds.
    #[must_use]
    pub fn control(&self) -> u64 {
        self.image.control()
    }

    /// Requests that the process change its enabled kinds. If the names have signs, as in `+Pool -Arena`, only these
    /// kinds change. A process that drains its buffers applies the request within 100 ms. Returns the requested control
    /// word.
    ///
    /// # Errors
    /// Returns an error if the DTD does not declare one of the kinds, the process has ended, or the file cannot be
    /// written.
    pub fn set_kinds(&self, kinds: &str) -> Result<u64, Error> {
        let change = Change::parse(kinds, &self.kinds())?;
        if !self.image.is_live() {
            let (path, process) = (self.image.path.display(), self.process());
            return Err(Error::Trace(format!("process {process} of {path} has ended and cannot be controlled")));
        }
        let word = self.image.control_now().map_err(|error| Error::File("read", self.image.path.clone(), error))?;
        let word = change.of(word);
        let put = |at: usize, bytes: &[u8]| {
            self.image.put(at, bytes).map_err(|error| Error::File("write", self.image.path.clone(), error))
        };
        put(core::mem::offset_of!(Header, wanted), &word.to_ne_bytes())?;
        // The count may be any number that differs from the previous one.
        let count = crate::clock::monotonic() & 0xffff_ffff;
        put(core::mem::offset_of!(Header, wanted_count), &(u32::try_from(count).unwrap_or(0) | 1).to_ne_bytes())?;
        Ok(word)
    }

    /// Writes the trace of the process, which consists of the records of its unfinished trace and the events found only
    /// in the buffers. [`Found::lost`] describes missing events. If their number is known, the trace reports them as
    /// dropped events.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be written, an existing unfinished trace cannot be read, or the buffers are
    /// inconsistent. Partly corrupt data is read up to the corruption.
    pub fn recover(&self, sink: TraceSink) -> Result<(Found, TraceSink), Error> {
        let Image { texts, .. } = &self.image;
        let mut found = Found { refused: self.image.refused(), ..Found::default() };
        let mut encoder = Encoder::new(&texts.name, &texts.dtd, self.table.clone(), self.image.process(), sink)?;
        if let Err(error) = self.recover_into(&mut encoder, &mut found) {
            encoder.abandon();
            return Err(error);
        }
        let wall = self.image.start_wall();
        let (in_buffers, is_whole) = (found.in_buffers, found.lost.is_empty());
        encoder.metadata(&format!(
            r#"{{"telemetry_recovered":{{"start_wall_ns":{wall},"in_buffers":{in_buffers},"whole":{is_whole}}}}}"#
        ))?;
        Ok((found, encoder.finish()?))
    }

    fn recover_into(&self, encoder: &mut Encoder, found: &mut Found) -> Result<(), Error> {
        let trace = self.find_trace()?;
        if let Unfinished::Found(path) = &trace {
            self.copy_trace(path, encoder, found)?;
        }
        if self.image.has_chunks {
            self.add_chunks(&trace, encoder, found)
        } else {
            let missing = self.missing(&trace, encoder, found);
            self.add_buffers(missing, encoder, found)
        }
    }

    /// Finds the trace of the process, either at the path stored in the buffers or at that path with the process ID
    /// inserted. The latter is the trace of a forked child, or of a process that found the original name in use.
    fn find_trace(&self) -> Result<Unfinished, Error> {
        let trace = PathBuf::from(OsStr::from_bytes(&self.image.texts.trace));
        let own = numbered(&trace, self.image.process());
        let mut reason = "does not exist";
        for path in [&trace, &own] {
            match self.is_mine(path)? {
                Some(true) => return Ok(Unfinished::Found(path.clone())),
                Some(false) => reason = "is the trace of another run",
                None => {}
            }
        }
        Ok(Unfinished::Missing(trace, reason))
    }

    /// Returns the number of trace records missing from the result, according to the last batch.
    fn missing(&self, trace: &Unfinished, encoder: &Encoder, found: &mut Found) -> u64 {
        let (batch, _) = self.image.batches();
        let done = self.image.batch(usize::from(batch & 1 == 1)).records;
        let missing = done.iter().zip(encoder.records()).map(|(done, known)| done.saturating_sub(*known));
        let missing = missing.fold(0_u64, u64::saturating_add);
        match trace {
            Unfinished::Found(_) if missing == 0 => {}
            Unfinished::Found(path) => {
                found.lost.push(format!("{}: {missing} records of this trace cannot be read", path.display()));
            }
            Unfinished::Missing(path, reason) if missing > 0 => {
                found.lost.push(format!(
                    "{} {reason}, so {missing} records of the process's trace are missing",
                    path.display()
                ));
            }
            Unfinished::Missing(path, reason) if *reason != "does not exist" => {
                found.warnings.push(format!("{} {reason}", path.display()));
            }
            Unfinished::Missing(..) => {}
        }
        missing
    }

    /// Copies the unfinished trace, up to its end or the first corruption.
    fn copy_trace(&self, path: &Path, encoder: &mut Encoder, found: &mut Found) -> Result<(), Error> {
        let reader = Reader::salvage(path).and_then(|reader| Trace::new(encoder.schema().clone(), reader));
        let mut trace = reader.map_err(|error| unreadable(path, &error))?;
        trace.reader_mut().set_salvage(true);
        // Events refer to the elements of tables.
        trace.reader_mut().set_all(true);
        let schema = encoder.schema().clone();
        let mut user = 0;
        loop {
            let entry = match trace.next_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(error) => {
                    found.lost.push(format!("{}: {}", path.display(), metatf::explain(&schema.format, &error)));
                    break;
                }
            };
            match entry.event {
                Event::Record(at) | Event::Comment(at) => {
                    encoder.copy(at.section, at.record, entry.record)?;
                    found.in_trace += u64::from(matches!(entry.event, Event::Record(_)));
                }
                Event::Element(at, shared) => encoder.element(at.section, shared, entry.record)?,
                _ => {}
            }
            let metadata = trace.reader().container().user_metadata();
            for json in metadata.iter().skip(user) {
                encoder.metadata(&String::from_utf8_lossy(json))?;
            }
            user = metadata.len();
        }
        Ok(())
    }

    /// Returns whether a trace belongs to this process, or `None` if there is no file.
    fn is_mine(&self, path: &Path) -> Result<Option<bool>, Error> {
        let failed = |error| Error::File("open", path.to_owned(), error);
        match path.metadata() {
            Ok(about) if about.is_file() => {}
            // A pipe cannot be read again.
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        // Open the file to get the system's error message.
        File::open(path).map_err(failed)?;
        let reader = match Reader::salvage(path) {
            Ok(reader) => reader,
            Err(error) if matches!(error.kind, ErrorKind::Io(_)) => return Err(unreadable(path, &error)),
            // The file does not even have a header.
            Err(_) => return Ok(Some(false)),
        };
        let Ok(mut trace) = Trace::embedded(reader) else { return Ok(Some(false)) };
        trace.reader_mut().set_salvage(true);
        // The metadata precedes the first record.
        if let Err(error) = trace.next_entry()
            && matches!(error.kind, ErrorKind::Io(_))
        {
            return Err(unreadable(path, &error));
        }
        let container = trace.reader().container();
        let mine = format!("\"start_wall_ns\":{}", self.image.start_wall());
        let named = |json: &Vec<u8>| String::from_utf8_lossy(json).contains(&mine);
        let same_dtd = container.dtd_text() == Some(self.image.texts.dtd.as_bytes());
        Ok(Some(same_dtd && container.user_metadata().iter().any(named)))
    }

    /// Adds the events found only in the buffers, preceded by the number of missing records.
    fn add_buffers(&self, missing: u64, encoder: &mut Encoder, found: &mut Found) -> Result<(), Error> {
        let (batch, preparing) = self.image.batches();
        let (side, other) = (usize::from(batch & 1 == 1), usize::from(batch & 1 == 0));
        let done = self.image.batch(side);
        let start = self.image.start_nanoseconds();
        let rings = self.rings(found);
        let mut parts = Vec::new();
        let mut names = BTreeMap::new();
        for (index, ring) in &rings {
            names.insert(ring.thread, name_of(ring.name));
            parts.push(self.image.part(*index, ring, side, &mut names).unwrap_or_else(|error| {
                found.lost.push(error.to_string());
                Part { thread: ring.thread, ..Part::default() }
            }));
        }
        found.threads = names.into_iter().collect();
        let mut last = done.moment;
        if missing > 0 {
            encoder.dropped(&[missing, last.stamp], 0, &Scene { line: self.line(last), start })?;
        }
        let before: u64 = encoder.records().iter().sum();
        // If records of the trace are missing, it may also lack strings that events refer to, so write all strings
        // again.
        let mut strings = if missing > 0 { 0 } else { done.strings };
        if preparing == batch + 1 {
            let next = self.image.batch(other);
            let scene = Scene { line: Line::through(last, next.moment), start };
            // Records of this batch that are already in the trace.
            let known = *encoder.records();
            let skip = std::array::from_fn(|section| known[section].saturating_sub(done.records[section]));
            encoder.skip(&skip);
            let mut batch_parts: Vec<Part> = Vec::new();
            for (part, (_, ring)) in parts.iter_mut().zip(&rings) {
                let end = self.image.end(ring, other);
                let mut of_batch = part.clone();
                part.begin_at(end);
                of_batch.words.truncate(of_batch.words.len() - part.words.len());
                batch_parts.push(of_batch);
            }
            self.write_strings(encoder, (strings, Some(next.strings)), &scene, found)?;
            strings = strings.max(next.strings);
            self.write(encoder, &mut batch_parts, &scene, found)?;
            for (part, of_batch) in parts.iter_mut().zip(&batch_parts) {
                part.thread = of_batch.last_thread();
            }
            if next.sync.1 != 0 {
                encoder.clock_sync(next.sync.0, next.sync.1, &scene)?;
            }
            encoder.skip(&[0; 256]);
            last = next.moment;
        }
        let scene = Scene { line: self.line(last), start };
        self.write_strings(encoder, (strings, None), &scene, found)?;
        self.write(encoder, &mut parts, &scene, found)?;
        for part in parts.iter().filter(|part| part.dropped != 0) {
            encoder.dropped(&[part.dropped, last.stamp], part.thread, &scene)?;
        }
        if found.refused != 0 {
            encoder.dropped(&[found.refused, last.stamp], 0, &scene)?;
        }
        let strings_refused = self.image.strings_refused();
        if strings_refused != 0 {
            found.warnings.push(format!("{strings_refused} strings did not fit in the buffers and have no ID"));
        }
        found.in_buffers = encoder.records().iter().sum::<u64>() - before;
        Ok(())
    }

    /// Returns the used rings with their indices.
    fn rings(&self, found: &mut Found) -> Vec<(u32, ImageRing)> {
        let mut rings = Vec::new();
        for index in 0..self.image.rings {
            match self.image.ring(index) {
                Ok(Some(ring)) => rings.push((index, ring)),
                Ok(None) => {}
                Err(error) => {
                    let (all, path) = (self.image.rings, self.image.path.display());
                    found.lost.push(format!(
                        "{path}: cannot read ring {index} and the following rings of {all} rings: {error}"
                    ));
                    break;
                }
            }
        }
        rings
    }

    /// Adds the chunks that a program with the header for C did not write to its trace.
    fn add_chunks(&self, trace: &Unfinished, encoder: &mut Encoder, found: &mut Found) -> Result<(), Error> {
        let path = match trace {
            Unfinished::Found(path) => Some(path.as_path()),
            Unfinished::Missing(path, reason) => {
                found
                    .lost
                    .push(format!("{} {reason}, so the events of the process's trace are missing", path.display()));
                None
            }
        };
        let mut unwritten = Unwritten::of(&self.image, path);
        unwritten.write(encoder)?;
        found.threads = unwritten.threads().map(|thread| (thread, String::new())).collect();
        found.warnings.append(&mut unwritten.warnings);
        found.lost.append(&mut unwritten.lost);
        found.in_buffers = encoder.records().iter().sum::<u64>() - found.in_trace;
        Ok(())
    }

    /// Returns the line that converts stamps after the last batch to nanoseconds.
    fn line(&self, last: Moment) -> Line {
        Line::of_rate(last, self.image.rate())
    }

    /// Writes the strings that are missing from the trace.
    fn write_strings(
        &self,
        encoder: &mut Encoder,
        range: (u64, Option<u64>),
        scene: &Scene,
        found: &mut Found,
    ) -> Result<(), Error> {
        match self.image.strings(range.0, range.1) {
            Ok(words) if encoder.strings(&words, scene)? => {}
            Ok(_) => found.lost.push("the interned strings are corrupt: some IDs have no string".to_owned()),
            Err(error) => found.lost.push(error.to_string()),
        }
        Ok(())
    }

    /// Writes the events of parts.
    fn write(&self, encoder: &mut Encoder, parts: &mut [Part], scene: &Scene, found: &mut Found) -> Result<(), Error> {
        let mut places: Vec<Place> = Vec::new();
        for (index, part) in (0..).zip(parts.iter_mut()) {
            if let Err(damage) = find(&self.table, index, part, u64::MAX, &mut places) {
                let (thread, at) = (part.thread, damage.0);
                found.lost.push(format!("the ring of thread {thread} is corrupt at {at}, so later events are lost"));
            }
        }
        order(&mut places);
        write_places(encoder, parts, &places, scene)
    }
}

/// Converts an error in the trace of a process.
fn unreadable(path: &Path, error: &metatf::Error) -> Error {
    Error::Trace(format!("cannot read the trace {}: {error}", path.display()))
}

/// Returns the user metadata at the start of a trace.
fn metadata(path: &Path) -> Result<Vec<String>, String> {
    let reader = Reader::salvage(path).map_err(|error| error.to_string())?;
    let mut trace = Trace::embedded(reader).map_err(|error| error.to_string())?;
    trace.reader_mut().set_salvage(true);
    // The metadata precedes the first record.
    let _ = trace.next_entry();
    let all = trace.reader().container().user_metadata();
    Ok(all.iter().map(|json| String::from_utf8_lossy(json).into_owned()).collect())
}

/// Returns the path of the buffers stored in the metadata of a trace.
fn named_by(path: &Path) -> Result<PathBuf, Error> {
    let fail = |message: String| Error::Trace(format!("{}: {message}", path.display()));
    let named = metadata(path).map_err(fail)?.iter().find_map(|json| {
        let (_, rest) = json.split_once("\"buffers\":\"")?;
        rest.split('"').next().map(PathBuf::from)
    });
    let buffers = named.ok_or_else(|| fail("the trace does not refer to telemetry buffers".to_owned()))?;
    if buffers.exists() {
        Ok(buffers)
    } else {
        Err(fail(format!("the trace is complete, so its buffers {} no longer exist", buffers.display())))
    }
}
