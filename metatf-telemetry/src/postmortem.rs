//! The events of a process that was killed, or that runs: its unfinished trace and its buffers together.
//!
//! It has over 400 lines: where buffers are found, what of a trace is theirs, and what they have besides, is one answer.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

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
use crate::image::{Image, name_of};
use crate::layout::{Header, MAGIC, MAGIC_CHUNKS};
use crate::sys;
use crate::table::{Source, Table};
use crate::trace_file::{TraceSink, numbered};
use crate::unwritten::Unwritten;

/// Buffers that a process has, or has left.
pub struct Buffers {
    image: Image,
    table: Table,
    path: PathBuf,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Records of the unfinished trace.
    pub in_trace: u64,
    /// Events that only the buffers had.
    pub in_buffers: u64,
    /// Threads: number and name.
    pub threads: Vec<(u32, String)>,
    /// Events of threads that found no ring.
    pub refused: u64,
    /// What is not as it should be, in sentences.
    pub warnings: Vec<String>,
}

/// Finds buffers by what a user names: a buffers file, a core dump, the trace of the process, or the process's number.
///
/// # Errors
/// There are none.
pub fn locate(name: &str) -> Result<Buffers, Error> {
    match name.parse::<u32>() {
        Ok(process) if !Path::new(name).exists() => of_process(process),
        _ => Buffers::open(Path::new(name)),
    }
}

/// Finds the newest buffers of a process in the folder where they are by default, or that `METATF_TELEMETRY_FOLDER` names. In a folder that
/// others may write to, those of another user are not the process's.
fn of_process(process: u32) -> Result<Buffers, Error> {
    let set = sys::environment("METATF_TELEMETRY_FOLDER").filter(|folder| !folder.is_empty());
    let folder = set.map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let files = folder::files(&folder).map_err(|error| Error::File("read the folder", folder.clone(), error))?;
    let mut refused = None;
    for path in files.into_iter().filter(|file| file.process == process).map(|file| file.path) {
        match folder::open_own(&path) {
            Ok(file) => return Buffers::of(file, 0, &path),
            Err(error) => refused = Some(Error::File("open", path, error)),
        }
    }
    Err(refused.unwrap_or_else(|| {
        Error::Trace(format!(
            "process {process} has no buffers in {}: it uses no telemetry, has ended by itself, or another folder \
             (METATF_TELEMETRY_FOLDER)",
            folder.display()
        ))
    }))
}

impl Buffers {
    /// Opens a buffers file, the one that a trace names, or the one in a core dump.
    ///
    /// # Errors
    /// The file cannot be read, or has no buffers.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |path: &Path, error| Error::File("open", path.to_owned(), error);
        let file = folder::open(path).map_err(|error| failed(path, error))?;
        let mut first = [0; 8];
        let read = file.read_at(&mut first, 0).unwrap_or(0);
        if read == 8 && [MAGIC, MAGIC_CHUNKS].contains(&u64::from_ne_bytes(first)) {
            return Self::of(file, 0, path);
        }
        if first.starts_with(b"\x7fELF") {
            let from = core_dump::find(&file)?;
            return Self::of(file, from, path);
        }
        if first.starts_with(b"\x7fMTF") {
            let buffers = named_by(path)?;
            // A made-up trace may name anything.
            let file = folder::open_own(&buffers).map_err(|error| failed(&buffers, error))?;
            return Self::of(file, 0, &buffers);
        }
        let path = path.display();
        Err(Error::Trace(format!("{path} is neither telemetry buffers, nor a trace with telemetry, nor a core dump")))
    }

    fn of(file: File, from: u64, path: &Path) -> Result<Self, Error> {
        let image = Image::open(file, from)?;
        let table = Table::parse(&image.texts.table)?;
        Ok(Self { image, table, path: path.to_owned() })
    }

    /// Returns the file that the buffers are in.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the process that the buffers are of.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.image.process()
    }

    /// Returns the names of the kinds, from bit 0.
    #[must_use]
    pub fn kinds(&self) -> Vec<&str> {
        self.table.kinds()
    }

    /// Returns the kind of an event, by the number of its section and its tag, and which leaf behind the tag has its thread.
    #[must_use]
    pub fn kind_of(&self, section: u8, tag: u32) -> Option<(&str, Option<usize>)> {
        let event = self.table.events.iter().find(|event| event.section == section && event.tag == tag)?;
        let thread = event.sources.iter().position(|source| *source == Source::Thread);
        Some((self.table.kinds.get(usize::from(event.kind))?, thread))
    }

    /// Returns the kinds that are on.
    #[must_use]
    pub fn control(&self) -> u64 {
        self.image.control()
    }

    /// Asks the process for other kinds, `+Pool -Arena`: for a change of these alone, from those that are on now. It obeys within a tenth of
    /// a second, if it drains by itself. Returns the control word that it is to have.
    ///
    /// # Errors
    /// A name that the DTD does not have; the process has ended; the file cannot be written.
    pub fn set_kinds(&self, kinds: &str) -> Result<u64, Error> {
        let change = Change::parse(kinds, &self.kinds())?;
        if !self.image.is_live() {
            let (path, process) = (self.path.display(), self.process());
            return Err(Error::Trace(format!("process {process} of {path} has ended: nobody obeys")));
        }
        let word = self.image.control_now().map_err(|error| Error::File("read", self.path.clone(), error))?;
        let word = change.of(word);
        let put = |at: usize, bytes: &[u8]| {
            self.image.put(at, bytes).map_err(|error| Error::File("write", self.path.clone(), error))
        };
        put(core::mem::offset_of!(Header, wanted), &word.to_ne_bytes())?;
        // Any other number than before.
        let count = crate::clock::monotonic() & 0xffff_ffff;
        put(core::mem::offset_of!(Header, wanted_count), &(u32::try_from(count).unwrap_or(0) | 1).to_ne_bytes())?;
        Ok(word)
    }

    /// Writes the trace of the process: what its unfinished trace has, and what only the buffers have.
    ///
    /// # Errors
    /// The trace that is written; buffers that make no sense. What is damaged in part is read up to there, with a warning.
    pub fn recover(&self, sink: TraceSink) -> Result<(Found, TraceSink), Error> {
        let Image { texts, .. } = &self.image;
        let mut found = Found { refused: self.image.refused(), ..Found::default() };
        let mut encoder = Encoder::new(&texts.name, &texts.dtd, self.table.clone(), self.image.process(), sink)?;
        let trace = PathBuf::from(OsStr::from_bytes(&texts.trace));
        // That of a forked child, or of a process that found the name taken, has its number.
        let own = numbered(&trace, self.image.process());
        let trace = if own.exists() && !self.is_mine(&trace) { own } else { trace };
        if let Err(error) = self.copy_trace(&trace, &mut encoder, &mut found) {
            encoder.abandon();
            return Err(error);
        }
        if self.image.has_chunks {
            self.add_chunks(&trace, &mut encoder, &mut found)?;
        } else {
            self.add_buffers(&mut encoder, &mut found)?;
        }
        let wall = self.image.start_wall();
        encoder.metadata(&format!(
            r#"{{"telemetry_recovered":{{"start_wall_ns":{wall},"in_buffers":{}}}}}"#,
            found.in_buffers
        ))?;
        Ok((found, encoder.finish()?))
    }

    /// Copies the unfinished trace, as far as it is whole.
    fn copy_trace(&self, path: &Path, encoder: &mut Encoder, found: &mut Found) -> Result<(), Error> {
        let (batch, preparing) = self.image.batches();
        let Some(mut trace) = self.unfinished(path, encoder, found) else {
            if batch > 0 || preparing > 0 {
                let path = path.display();
                let warning =
                    format!("the trace {path} of this process is not there: only what the buffers have is read");
                found.warnings.push(warning);
            }
            return Ok(());
        };
        let schema = encoder.schema().clone();
        let mut user = 0;
        loop {
            let entry = match trace.next_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(error) => {
                    found.warnings.push(format!("{}: {}", path.display(), metatf::explain(&schema.format, &error)));
                    break;
                }
            };
            if let Event::Record(at) | Event::Comment(at) = entry.event {
                encoder.copy(at.section, at.record, entry.record)?;
                found.in_trace += u64::from(matches!(entry.event, Event::Record(_)));
            }
            let metadata = trace.reader().container().user_metadata();
            for json in metadata.iter().skip(user) {
                encoder.metadata(&String::from_utf8_lossy(json))?;
            }
            user = metadata.len();
        }
        Ok(())
    }

    /// Whether a trace is of this process.
    fn is_mine(&self, path: &Path) -> bool {
        let mine = format!("\"start_wall_ns\":{}", self.image.start_wall());
        path.is_file() && metadata(path).is_ok_and(|all| all.iter().any(|json| json.contains(&mine)))
    }

    /// Opens the unfinished trace, if it is there and is of this process.
    fn unfinished(&self, path: &Path, encoder: &Encoder, found: &mut Found) -> Option<Trace<'static>> {
        let reader = path.is_file().then(|| Reader::salvage(path).ok()).flatten()?;
        let mut trace = Trace::new(encoder.schema().clone(), reader).ok()?;
        trace.reader_mut().set_salvage(true);
        let is_mine = self.is_mine(path);
        let same_dtd = trace.reader().container().dtd_text() == Some(encoder.schema().dtd.text.as_bytes());
        if is_mine && same_dtd {
            return Some(trace);
        }
        found.warnings.push(format!("{} is the trace of another run", path.display()));
        None
    }

    /// Adds what only the buffers have.
    fn add_buffers(&self, encoder: &mut Encoder, found: &mut Found) -> Result<(), Error> {
        let (batch, preparing) = self.image.batches();
        let (side, other) = (usize::from(batch & 1 == 1), usize::from(batch & 1 == 0));
        let done = self.image.batch(side);
        let start = self.image.start_nanoseconds();
        let rings: Vec<_> = (0..self.image.rings).filter_map(|index| Some((index, self.image.ring(index)?))).collect();
        let mut parts = Vec::new();
        let mut names = BTreeMap::new();
        for (index, ring) in &rings {
            names.insert(ring.thread, name_of(ring.name));
            parts.push(self.image.part(*index, ring, side, &mut names).unwrap_or_else(|error| {
                found.warnings.push(error.to_string());
                Part { thread: ring.thread, ..Part::default() }
            }));
        }
        found.threads = names.into_iter().collect();
        let mut last = done.moment;
        // A trace that is not there, or lost a part, may lack strings that events name.
        let known: u64 = encoder.records().iter().sum();
        let mut strings =
            if known < done.records.iter().fold(0, |all, n| all.saturating_add(*n)) { 0 } else { done.strings };
        if preparing == batch + 1 {
            let next = self.image.batch(other);
            let scene = Scene { line: Line::through(last, next.moment), start };
            // Records of this batch that are in the trace already.
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
            self.write_strings(encoder, (strings, Some(next.strings)), &scene, &mut found.warnings)?;
            strings = strings.max(next.strings);
            self.write(encoder, &mut batch_parts, &scene, &mut found.warnings)?;
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
        self.write_strings(encoder, (strings, None), &scene, &mut found.warnings)?;
        self.write(encoder, &mut parts, &scene, &mut found.warnings)?;
        for part in parts.iter().filter(|part| part.dropped != 0) {
            encoder.dropped(&[part.dropped, last.stamp], part.thread, &scene)?;
        }
        if found.refused != 0 {
            encoder.dropped(&[found.refused, last.stamp], 0, &scene)?;
        }
        let strings_refused = self.image.strings_refused();
        if strings_refused != 0 {
            found.warnings.push(format!("{strings_refused} strings found no room, and have no number"));
        }
        found.in_buffers = encoder.records().iter().sum::<u64>() - found.in_trace;
        Ok(())
    }

    /// Adds the chunks that a program with the header for C did not write.
    fn add_chunks(&self, trace: &Path, encoder: &mut Encoder, found: &mut Found) -> Result<(), Error> {
        let mut unwritten = Unwritten::of(&self.image, self.is_mine(trace).then_some(trace));
        unwritten.write(encoder)?;
        found.threads = unwritten.threads().map(|thread| (thread, String::new())).collect();
        found.warnings.append(&mut unwritten.warnings);
        found.in_buffers = encoder.records().iter().sum::<u64>() - found.in_trace;
        Ok(())
    }

    /// Returns the line on which the stamps behind the last batch become nanoseconds.
    fn line(&self, last: Moment) -> Line {
        Line::of_rate(last, self.image.rate())
    }

    /// Writes strings that the trace has not.
    fn write_strings(
        &self,
        encoder: &mut Encoder,
        range: (u64, Option<u64>),
        scene: &Scene,
        warnings: &mut Vec<String>,
    ) -> Result<(), Error> {
        match self.image.strings(range.0, range.1) {
            Ok(words) if encoder.strings(&words, scene)? => {}
            Ok(_) => warnings.push("the strings are damaged: some numbers have none".to_owned()),
            Err(error) => warnings.push(error.to_string()),
        }
        Ok(())
    }

    /// Writes the events of parts.
    fn write(
        &self,
        encoder: &mut Encoder,
        parts: &mut [Part],
        scene: &Scene,
        warnings: &mut Vec<String>,
    ) -> Result<(), Error> {
        let mut places: Vec<Place> = Vec::new();
        for (index, part) in (0..).zip(parts.iter_mut()) {
            if let Err(damage) = find(&self.table, index, part, u64::MAX, &mut places) {
                let (thread, at) = (part.thread, damage.0);
                warnings.push(format!("the ring of thread {thread} is damaged at {at}: what follows is lost"));
            }
        }
        order(&mut places);
        write_places(encoder, parts, &places, scene)
    }
}

/// Returns the user metadata with which a trace begins.
fn metadata(path: &Path) -> Result<Vec<String>, String> {
    let reader = Reader::salvage(path).map_err(|error| error.to_string())?;
    let mut trace = Trace::embedded(reader).map_err(|error| error.to_string())?;
    trace.reader_mut().set_salvage(true);
    // It stands before the first record.
    let _ = trace.next_entry();
    let all = trace.reader().container().user_metadata();
    Ok(all.iter().map(|json| String::from_utf8_lossy(json).into_owned()).collect())
}

/// Finds the path of the buffers in the metadata of a trace.
fn named_by(path: &Path) -> Result<PathBuf, Error> {
    let fail = |message: String| Error::Trace(format!("{}: {message}", path.display()));
    let named = metadata(path).map_err(fail)?.iter().find_map(|json| {
        let (_, rest) = json.split_once("\"buffers\":\"")?;
        rest.split('"').next().map(PathBuf::from)
    });
    let buffers = named.ok_or_else(|| fail("it names no telemetry buffers".to_owned()))?;
    if buffers.exists() {
        Ok(buffers)
    } else {
        Err(fail(format!("its buffers {} are gone: it was finished", buffers.display())))
    }
}
