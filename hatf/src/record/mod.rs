//! Running a program with the recorder preloaded.

mod any;
#[cfg(target_arch = "x86_64")]
mod attach;
#[cfg(target_arch = "x86_64")]
mod attached;
mod bus_error;
mod claim;
mod control;
mod drain;
mod encode;
mod file_limit;
mod follow;
mod head;
mod keeper;
mod linked;
mod live;
mod mapper;
mod mapping;
mod memory_limit;
mod merge;
mod outcome;
mod own_folder;
mod process;
mod program;
mod python;
mod recover;
mod resident;
mod ring;
mod sanitizer;
mod set_up;
mod shared_file;
mod signals;
#[cfg(test)]
mod simulated;
mod spool_file;
mod stack_file;
mod start;
mod timeline;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub use hatf_record::{Clock, Stop, WhenFull};

use crate::event::EventSink;
use crate::{Error, Result};
#[doc(hidden)]
pub use any::drain_any;
#[cfg(target_arch = "x86_64")]
pub use attached::record_process;
use control::Control;
use drain::Drain;
pub use follow::{FollowedOutcome, FollowedProcess, Follower, RecordInto};
use keeper::{Keeper, Returned};
pub use linked::{LinkedIn, linked_in};
pub use memory_limit::left as memory_left;
pub use outcome::{EndedSpool, Outcome, Recorded};
pub use process::End;
use process::Process;
pub use program::{NotRecorded, NotRecordedReason, not_recorded};
pub use python::PythonVersion;
pub use recover::{Recovered, Spooled};
use resident::{Sampler, Samples};
pub use ring::Keep;
use set_up::SetUp;
pub use signals::ignore_file_size_signal;
pub use spool_file::SPOOL_BYTES;

/// The recorder's shared object.
static RECORDER: &[u8] = include_bytes!(env!("HATF_RECORDER"));

/// Further processes that are recorded at once, at most, unless it is said otherwise.
pub const FOLLOW_MOST: u32 = 128;

/// What gives a sink the events of a trace that was asked for while the program runs.
pub type DumpInto<'a> = &'a mut dyn FnMut(&mut dyn EventSink) -> Result<()>;

/// What takes such a trace: the first, the second and so on.
pub type TakeDump<'a> = &'a (dyn Fn(u32, DumpInto<'_>) + Sync);

/// How to record.
pub struct RecordOptions<'a> {
    /// How often the sink is flushed, if there is anything new.
    pub flush: Option<Duration>,
    /// Events after which the sink is flushed, so that the memory that holds them is free again.
    pub group: u64,
    /// Whether what the program writes to its standard output goes to standard error.
    pub output_to_error: bool,
    /// What to do once the program runs, before its first event is given. An error is as one of the sink.
    pub started: Option<&'a mut dyn FnMut() -> Result<()>>,
    /// The folder in which the spool is made; by default one in memory, or that of temporary files.
    pub spool: Option<PathBuf>,
    /// Bytes that the spool has at most. It has less where there is less room.
    pub spool_bytes: u64,
    /// What the program does where the spool is full.
    pub when_full: WhenFull,
    /// How long a thread of the program waits for space.
    pub patience: Duration,
    /// The clock that stamps events; by default the processor's, where the kernel goes by it.
    pub stamps: Option<Clock>,
    /// Of all blocks one is recorded for so many bytes, on average; 0: every block.
    pub sample: u64,
    /// The names of threads whose blocks alone are recorded, with a `*` at the end for any ending; where there are none, those of all.
    pub only_threads: Vec<String>,
    /// The names of modules (the program and its libraries, by their files) whose blocks alone are recorded, too.
    pub only_modules: Vec<String>,
    /// What was asked for is recorded, and not where blocks are, nor their ends.
    pub sizes_only: bool,
    /// Recording is off until somebody turns it on.
    pub start_off: bool,
    /// The signal that turns recording off and on: sent to a process, of that, sent to this one, of all.
    pub toggle_signal: Option<i32>,
    /// A file whose first word turns recording of all processes `on` or `off`.
    pub control: Option<PathBuf>,
    /// Only the last part is kept, and given when the program ends.
    pub keep: Option<Keep>,
    /// Takes the last part when it is asked for while the program runs: the first time, the second and so on.
    pub dump: Option<TakeDump<'a>>,
    /// The signal that asks for it: sent to a process, of that, sent to this one, of all.
    pub dump_signal: Option<i32>,
    /// Whether arguments of programs and the name of the machine are left out of the trace.
    pub private: bool,
    /// The most frames of a call's stack that are recorded; 0: no stacks.
    pub stacks: usize,
    /// It is recorded how many bytes blocks really have.
    pub usable: bool,
    /// Calls for pages are recorded, and what the kernel says of the process's memory.
    pub pages: bool,
    /// It is recorded on which processor each thread runs.
    pub processors: bool,
    /// Stacks have the frames of Python code, and Python is to take each object from `malloc`, unless the environment says otherwise.
    pub python: bool,
    /// The allocator that the program has linked in, to record its calls, too.
    pub linked_in: Option<&'a LinkedIn>,
    /// What is kept beside the spool, to make a trace of it later: see [`Spooled::about`].
    pub about: serde_json::Value,
    /// Who takes the events of processes that the program makes; without, they are not recorded.
    pub follower: Option<&'a dyn Follower>,
    /// The most of them that are recorded at once.
    pub follow_most: u32,
    /// The names of programs that are followed; all are where there are none.
    pub follow_programs: Vec<String>,
}

impl Default for RecordOptions<'_> {
    fn default() -> Self {
        Self {
            flush: None,
            group: crate::heap::GROUP_RECORDS,
            output_to_error: false,
            started: None,
            spool: None,
            spool_bytes: SPOOL_BYTES,
            when_full: WhenFull::Wait,
            patience: Duration::from_secs(5),
            stamps: None,
            sample: 0,
            only_threads: Vec::new(),
            only_modules: Vec::new(),
            sizes_only: false,
            start_off: false,
            toggle_signal: None,
            control: None,
            keep: None,
            dump: None,
            dump_signal: None,
            private: false,
            stacks: 0,
            usable: false,
            processors: false,
            pages: false,
            python: false,
            linked_in: None,
            about: serde_json::Value::Null,
            follower: None,
            follow_most: FOLLOW_MOST,
            follow_programs: Vec::new(),
        }
    }
}

/// Returns the arguments of a process that runs, if it can be recorded by [`record_process`].
///
/// # Errors
/// It cannot.
#[cfg(target_arch = "x86_64")]
pub fn command_of_process(process: u32) -> Result<Vec<OsString>> {
    attach::command(process)
}

/// Says that it cannot be recorded: nobody has made that for this machine yet.
///
/// # Errors
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub fn command_of_process(process: u32) -> Result<Vec<OsString>> {
    Err(Error::Trace(format!("process {process} can be recorded while it runs on x86-64 alone").into()))
}

/// As [`command_of_process`].
///
/// # Errors
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub fn record_process(process: u32, _: &mut dyn EventSink, _: RecordOptions<'_>) -> Result<Outcome> {
    command_of_process(process).map(|_| unreachable!())
}

/// Runs `command` (a program and its arguments), gives what its heap does to `sink` while it runs,
/// and returns when it has ended and all events have been given.
///
/// The program has our standard input, output and error. Interrupt and termination signals sent to
/// this process alone are passed to it.
///
/// # Errors
/// [`Error::Start`] where the program could not be run, [`Error::System`] where the spool or the
/// recorder could not be set up. A failing sink is not an error here: see [`Recorded::sink_error`].
pub fn record(command: &[OsString], sink: &mut dyn EventSink) -> Result<Outcome> {
    record_with(command, sink, RecordOptions::default())
}

/// Does what [`record`] does, in the way that `options` say. Raises the number of files that this process may have open; the program starts
/// with the number that was.
///
/// # Errors
/// As for [`record`].
pub fn record_with(command: &[OsString], sink: &mut dyn EventSink, options: RecordOptions<'_>) -> Result<Outcome> {
    // First: its process is not to have what is opened from here on.
    let forwarding = signals::Forwarding::begin();
    let set_up = SetUp::make(command, &options)?;
    let SetUp { file, library, clock, start, head, files } = &set_up;
    let (clock, spool) = (*clock, set_up.spool());

    let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let mut child = start::prepare(command, file, library, files);
    if options.python && std::env::var_os(PYTHON_ALLOCATOR).is_none() {
        child.env(PYTHON_ALLOCATOR, "malloc");
    }
    if program::has_address_sanitizer(program) {
        let given = std::env::var_os(sanitizer::ADDRESS_OPTIONS);
        child.env(sanitizer::ADDRESS_OPTIONS, sanitizer::behind_another(given.as_deref()));
    }
    if options.output_to_error {
        #[expect(clippy::disallowed_methods, reason = "the program gets it, nothing is printed")]
        child.stdout(std::io::stderr());
    }
    let returned = Returned::default();
    let samples = Samples::default();
    let sampler = options.pages.then(|| Sampler::new(&samples, clock));
    let keeper = Keeper::new(file, spool, &returned, keeper::READY_FIRST);
    let take = options.dump;
    let dump = move |number, give: DumpInto<'_>| take.map_or((), |take| take(number, give));
    let mut encode = set_up.encode(&samples, sink);
    let control = Control::new(options.control);
    let shared = options.follower.map(|follower| follow::Shared {
        follower,
        most: options.follow_most,
        control: &control,
        keep: options.keep,
        clock,
        start: *start,
        head,
        group: options.group.max(1),
        flush: options.flush,
        first: spool,
        file,
        first_ended: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        found: AtomicU32::new(0),
        forks: AtomicU32::new(0),
        errors: Mutex::default(),
    });
    let signals = control::Signals::take(options.toggle_signal, options.dump_signal);
    let (status, recorded, followed, not_followed, follow_errors) = std::thread::scope(|scope| {
        // A sink may panic: other threads do not wait for what will not come then.
        let _stop = OnDrop(|| {
            spool.header().closed.store(1, Ordering::SeqCst);
            if let Some(shared) = &shared {
                shared.stop.store(true, Ordering::Release);
                shared.first_ended.store(true, Ordering::Release);
            }
            returned.stop();
            control.stop();
        });
        let held = forwarding.hold(&mut child);
        let child = child.spawn().map_err(|error| Error::Start(program.to_string_lossy().into_owned(), error))?;
        forwarding.to(child.id());
        drop(held);
        std::thread::Builder::new()
            .name("hatf-keeper".to_owned())
            .spawn_scoped(scope, || keeper.run(sampler))
            .map_err(Error::system("a thread"))?;
        if control.has_file() || options.toggle_signal.or(options.dump_signal).is_some() {
            scope.spawn(|| control.run(spool.header()));
        }
        let forwarding = &forwarding;
        let following =
            shared.as_ref().map(|shared| scope.spawn(move || shared.run(scope, || forwarding.interrupted())));
        encode.sink.try_to(|_| options.started.map_or(Ok(()), |started| started()));
        let drain = Drain {
            keeping: set_up.keeping(options.keep, &dump),
            spool,
            encode,
            returned: &returned,
            control: &control,
            process: Process::Started(child),
            clock,
            samples: &samples,
            group: options.group.max(1),
            flush: options.flush,
            flushed: 0,
        };
        let outcome = drain.run(head, || forwarding.child_is_gone());
        returned.stop();
        if let Some(shared) = &shared {
            shared.note_forks(outcome.as_ref().map_or(0, |(_, recorded)| recorded.forks));
            shared.first_ended.store(true, Ordering::Release);
        }
        let followed = following.map_or(0, |following| following.join().unwrap_or(0));
        control.stop();
        drop(signals);
        // Only now: processes that are made while others go on look here.
        spool.header().closed.store(1, Ordering::SeqCst);
        let (end, recorded) = outcome?;
        let End::Status(status) = end else { return Err(Error::Trace("the program was lost".into())) };
        let header = spool.header();
        let others = header.other_processes.load(Ordering::Relaxed);
        // Without followers each process is seen when it is forked, or when it loads the recorder.
        let not_followed = match &shared {
            None => header.forks.load(Ordering::Relaxed).max(others),
            Some(_) => header.not_followed.load(Ordering::Relaxed).saturating_add(others),
        };
        let follow_errors = shared
            .as_ref()
            .map(|shared| std::mem::take(&mut *shared.errors.lock().unwrap_or_else(PoisonError::into_inner)));
        Ok((status, recorded, followed, not_followed, follow_errors.unwrap_or_default()))
    })?;
    let spool = EndedSpool::new(set_up.file);
    Ok(Outcome { status, recorded, followed, not_followed, follow_errors, spool })
}

/// Does something when it is dropped.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The environment variable that says where Python takes objects from.
const PYTHON_ALLOCATOR: &str = "PYTHONMALLOC";

/// Reads any bytes as what the kernel says of a process, which is looked at before it is recorded. For fuzzing.
#[doc(hidden)]
pub fn read_process(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    attach::read_any(bytes);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
