//! The resources of a recording, prepared before the program runs or a running process is attached to.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::Ordering;

use hatf_record::{CHUNK_BYTES, Clock, Conditions, Header, Spool, names};
use serde_json::{Map, Value, json};

use super::file_limit::FileLimit;
use super::shared_file::SharedFile;
use crate::record::options::RecordOptions;
use crate::record::order::{Encode, Keep, MemorySamples, Moment, Timeline, choose_clock};
use crate::record::processes::{CHUNKS_EACH, DumpInto, Keeping, Origin, Scope};
use crate::record::program::{LinkedIn, Plans};
use crate::record::spool::{LIBRARY, SpoolFile, create_stack_file};
use hatf_trace::event::EventSink;
use hatf_trace::{Error, Result};

/// The recorder: a shared object that programs load.
pub static RECORDER: &[u8] = include_bytes!(env!("HATF_RECORDER"));

/// The ratio of the spool's size to the maximum size of a process's stack table. Stack tables are allocated in addition
/// to spools.
const STACKS_PART: usize = 4;

pub(super) struct SetUp {
    pub(super) file: SpoolFile,
    /// The recorder, as a file that a program can load.
    pub(super) library: SharedFile,
    pub(super) clock: Clock,
    pub(super) start: Moment,
    pub(super) origin: Origin,
    pub(super) files: FileLimit,
}

impl SetUp {
    /// Creates the spool for a recording of `command`, and stores the options in it.
    ///
    /// # Errors
    /// [`Error::System`] if the spool or the recorder could not be created.
    pub(super) fn make(command: &[OsString], options: &RecordOptions<'_>) -> Result<Self> {
        // If the last part is kept, half of the spool is reserved for events that arrive while a trace is being made.
        let kept =
            options.keep.map_or(0, |keep| if let Keep::Bytes(bytes) = keep { bytes.saturating_mul(2) } else { 0 });
        let file = SpoolFile::create(options.spool.as_deref(), options.spool_bytes.max(kept))?;
        let stack_room = file.spool().mapped() * CHUNK_BYTES / STACKS_PART;
        if options.stacks > 0 {
            call_mincore();
            create_stack_file(file.folder(), options.stacks, stack_room)
                .map_err(Error::system(file.folder().path().join(names::STACKS).display().to_string()))?;
        }
        for (file_name, list) in [
            (names::PROGRAMS, &options.follow_programs),
            (names::ONLY_THREADS, &options.only_threads),
            (names::ONLY_MODULES, &options.only_modules),
        ] {
            if !list.is_empty() {
                file.write_names(file_name, list)?;
            }
        }
        if options.record_linked_in {
            Plans::new(&file).begin(command.first().map_or(OsStr::new(""), OsString::as_os_str));
        }
        let library = SharedFile::create("libhatf_record.so", RECORDER)?;
        file.write(LIBRARY, library.path().as_bytes())?;
        let clock = options.stamps.unwrap_or_else(choose_clock);
        let start = Moment::now(clock);
        let linked_in = options.linked_in.filter(|linked_in| !linked_in.is_refused());
        let linked_in = linked_in.map(LinkedIn::to_json);
        let (sample, private, linked_in) = (options.sample, options.private, linked_in.unwrap_or_default());
        let scope = Scope { sample, private, labels: options.labels.clone(), only: only(options), linked_in };
        let origin = Origin::now(command, file.folder().path(), start, scope);
        file.write_origin(&json!({"start": origin.to_json(clock), "about": options.about}))?;
        let files = FileLimit::raise();
        let header = file.spool().header();
        set_header(header, options, start, clock, &files);
        header.stack_room.store(u32::try_from(stack_room >> 20).unwrap_or(u32::MAX), Ordering::Relaxed);
        Ok(Self { file, library, clock, start, origin, files })
    }

    pub(super) fn spool(&self) -> Spool<'_> {
        self.file.spool()
    }

    /// Creates the encoder from the spool to `sink`.
    pub(super) fn encode<'a>(&'a self, samples: &'a MemorySamples, sink: &'a mut dyn EventSink) -> Encode<'a> {
        Encode::new(self.spool(), self.file.folder(), Timeline::new(self.start), samples, sink)
    }

    /// Returns the settings for keeping only the last part, if requested.
    pub(super) fn keeping<'a>(
        &'a self,
        keep: Option<Keep>,
        dump: &'a dyn Fn(u32, DumpInto<'_>),
    ) -> Option<Keeping<'a>> {
        keep.map(|keep| Keeping { keep, file: &self.file, dump })
    }
}

/// Calls `mincore`, as the recorder does in the program if stacks are recorded. A system call filter that kills for this
/// call ends this process now, instead of the program later.
fn call_mincore() {
    let mut state = 0;
    // SAFETY: the kernel neither reads nor writes memory for a range of 0 bytes.
    unsafe { libc::mincore(std::ptr::null_mut(), 0, &raw mut state) };
}

/// Returns the restriction of the recording to certain threads, modules or sizes, or null if everything is recorded.
fn only(options: &RecordOptions<'_>) -> Value {
    let RecordOptions { only_threads, only_modules, sizes_only, .. } = options;
    let mut only = Map::new();
    for (key, names) in [("threads", only_threads), ("modules", only_modules)] {
        if !names.is_empty() {
            only.insert(key.to_owned(), json!(names));
        }
    }
    if *sizes_only {
        only.insert("sizes".to_owned(), true.into());
    }
    if only.is_empty() { Value::Null } else { only.into() }
}

/// Stores the options in the header of the spool.
fn set_header(header: &Header, options: &RecordOptions<'_>, start: Moment, clock: Clock, files: &FileLimit) {
    header.start.store(start.nanoseconds, Ordering::Relaxed);
    header.clock.store(clock as u32, Ordering::Relaxed);
    header.when_full.store(options.when_full as u32, Ordering::Relaxed);
    let patience = u64::try_from(options.patience.as_millis()).unwrap_or(u64::MAX);
    header.patience.store(patience, Ordering::Relaxed);
    header.sample.store(options.sample, Ordering::Relaxed);
    header.toggle_signal.store(options.toggle_signal.unwrap_or(0).unsigned_abs(), Ordering::Relaxed);
    header.dump_signal.store(options.dump_signal.unwrap_or(0).unsigned_abs(), Ordering::Relaxed);
    if options.start_off {
        header.ask(true);
    }
    let extra = |wanted: bool, extra: Conditions| if wanted { extra.0 } else { 0 };
    let extras = extra(options.usable, Conditions::USABLE)
        | extra(options.pages, Conditions::PAGES)
        | extra(options.resident, Conditions::RESIDENT)
        | extra(options.processors, Conditions::PROCESSORS)
        | extra(options.python, Conditions::PYTHON)
        | extra(!options.only_threads.is_empty(), Conditions::ONLY_THREADS)
        | extra(!options.only_modules.is_empty(), Conditions::ONLY_MODULES)
        | extra(options.sizes_only, Conditions::SIZES);
    header.extras.store(extras, Ordering::Relaxed);
    header.stack_depth.store(u32::try_from(options.stacks).unwrap_or(u32::MAX), Ordering::Relaxed);
    let most = options.follower.map_or(0, |_| options.follow_most.min(files.most_processes()));
    header.follow.store(most, Ordering::Relaxed);
    header.follow_chunks.store(CHUNKS_EACH, Ordering::Relaxed);
    header.recorder.store(std::process::id(), Ordering::Release);
}
