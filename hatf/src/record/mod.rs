//! Running a program with the recorder preloaded.

mod drain;
mod head;
mod mapper;
mod ring_file;
mod shared_file;
mod signals;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::Duration;

use hatf_record::RING_VARIABLE;

use crate::event::EventSink;
use crate::{Error, Result};
use drain::Drain;
use ring_file::RingFile;
use shared_file::SharedFile;

/// The recorder's shared object.
static RECORDER: &[u8] = include_bytes!(env!("HATF_RECORDER"));

/// The outcome of a recording.
#[derive(Debug)]
pub struct Outcome {
    /// How the program ended.
    pub status: ExitStatus,
    /// Events taken from the ring.
    pub events: u64,
    /// Events that the program made and that did not arrive.
    pub lost: u64,
    /// Program images recorded: 0 if the program never loaded the recorder, over 1 if it turned into
    /// others by exec.
    pub images: u64,
    /// Child processes, which are not recorded: at least so many.
    pub children: u32,
    /// Times that the program had to wait for the trace to be written.
    pub waits: u64,
    /// How long it ran.
    pub duration: Duration,
    /// The sink's error. The program went on without being recorded.
    pub sink_error: Option<Error>,
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
        if self.images == 0 {
            return Some(
                "the program did not load the recorder: it is statically linked, or set-user-ID, or \
                 for another machine"
                    .to_owned(),
            );
        }
        if self.lost > 0 {
            return Some(format!("{} events were lost", self.lost));
        }
        None
    }
}

/// Runs `command` (a program and its arguments), gives what its heap does to `sink` while it runs,
/// and returns when it has ended and all events have been given.
///
/// The program has our standard input, output and error. Interrupt and termination signals sent to
/// this process alone are passed to it.
///
/// # Errors
/// [`Error::Start`] where the program could not be run, [`Error::System`] where the ring or the
/// recorder could not be set up. A failing sink is not an error here: see [`Outcome::sink_error`].
pub fn record(command: &[OsString], sink: &mut dyn EventSink) -> Result<Outcome> {
    record_flushing(command, sink, None)
}

/// Does what [`record`] does, and flushes the sink every `flush` if there is anything new. While events come faster than they are
/// taken it does not.
///
/// # Errors
/// As for [`record`].
pub fn record_flushing(command: &[OsString], sink: &mut dyn EventSink, flush: Option<Duration>) -> Result<Outcome> {
    let ring_file = RingFile::create()?;
    let ring = ring_file.ring()?;
    let library = SharedFile::create("libhatf_record.so", RECORDER)?;
    let begun = head::Head::now(command);
    let header = ring.header();
    header.start.store(begun.clock, Ordering::Relaxed);
    header.parent.store(std::process::id(), Ordering::Release);

    let (program, arguments) = command.split_first().map_or((OsStr::new(""), command), |(p, a)| (p, a));
    let mut child = Command::new(program);
    child.args(arguments);
    child.env(RING_VARIABLE, ring_file.path());
    child.env("LD_PRELOAD", preload(library.path()));
    let forwarding = signals::Forwarding::begin();
    let child = child.spawn().map_err(|error| Error::Start(program.to_string_lossy().into_owned(), error))?;
    forwarding.to(child.id());
    Drain::new(ring, child, &begun, sink).run(&forwarding, flush)
}

/// Our library first: what the user preloads (an allocator, say) is then behind it.
fn preload(library: &OsStr) -> OsString {
    let mut list = library.to_owned();
    if let Some(theirs) = std::env::var_os("LD_PRELOAD").filter(|theirs| !theirs.is_empty()) {
        list.push(":");
        list.push(theirs);
    }
    list
}
