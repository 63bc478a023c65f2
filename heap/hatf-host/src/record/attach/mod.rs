//! Recording of a process that is already running.
//!
//! The process loads the recorder and calls the recorder's functions that begin and end the recording: see
//! `heap/hatf-record/src/preload/attach/inject.rs`. In between, the process is not being traced.

mod frame;
mod maps;
mod ptrace;
mod remote_call;
mod stop;
mod stopped_thread;
mod target;
mod unsafe_code;

pub use stop::while_stopped;
pub(super) use target::read_any;

use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use hatf_record::Answer;

use hatf_trace::{Error, Result};
use remote_call::{GiveUp, NULL, RemoteCalls};
use stopped_thread::{StoppedThread, in_a_thread};
use target::Target;

/// The name by which an already loaded recorder is found.
const LIBRARY: &CStr = c"libhatf_record.so";

/// The time limit for a process to end its recording. After that, its hooks detect by themselves that nobody reads the
/// spool.
const DETACH: Duration = Duration::from_secs(15);

/// Returns the arguments of a process, or an error if the process cannot be recorded, as far as this can be determined
/// without stopping it.
pub(super) fn command(process: u32) -> Result<Vec<OsString>> {
    Target::find(process).map(|_| target::command(process))
}

/// Makes a process load the recorder from a file and record into a spool. Recording stays off unless `on` is set. If
/// `give_up` returns true because the user no longer wants to wait, a thread that waits for a lock is left in its call.
pub(super) fn attach(process: u32, library: &Path, events: &Path, on: bool, give_up: GiveUp<'_>) -> Result<()> {
    in_a_thread(|| {
        let target = Target::find(process)?;
        let mut calls = RemoteCalls::begin(StoppedThread::find(&target)?, give_up)?;
        let mut handle = load(&mut calls, LIBRARY, libc::RTLD_NOLOAD)?;
        if handle == NULL {
            handle = load(&mut calls, &c_string(library)?, 0)?;
        }
        if handle == NULL {
            let problem = calls.call(c"dlerror", &[])?;
            let why = if problem == NULL { String::new() } else { calls.read_text(problem) };
            return Err(target.refused(&format!("cannot load the recorder: {why}")));
        }
        let begin = symbol(&mut calls, handle, c"hatf_recorder_attach")?;
        if begin == NULL {
            return Err(
                target.refused("contains the recorder of a different version of hatf: restart the process first")
            );
        }
        let path = calls.text(&c_string(events)?)?;
        let answer = calls.call_at(begin, &[path, on.into()], "the recorder")?;
        match Answer::from_number(low_half(answer)) {
            Some(Answer::Done) => Ok(()),
            Some(Answer::Recorded) => Err(target.refused("is already being recorded")),
            Some(Answer::NoSpool) => {
                Err(target.refused("cannot open the spool: check that the process can see the spool's directory"))
            }
            Some(Answer::NoCalls) => {
                Err(target.refused("calls no functions that can be recorded: its allocator is statically linked"))
            }
            Some(Answer::Failed) | None => {
                Err(target.refused("could not be recorded: its recorder sent an unexpected reply"))
            }
        }
    })?
}

/// Makes an attached process end its recording and restore the functions it called before.
pub(super) fn detach(process: u32) -> Result<()> {
    let begun = Instant::now();
    let give_up = || begun.elapsed() >= DETACH;
    in_a_thread(|| {
        let target = Target::find(process)?;
        let mut calls = RemoteCalls::begin(StoppedThread::find(&target)?, &give_up)?;
        let handle = load(&mut calls, LIBRARY, libc::RTLD_NOLOAD)?;
        let end = if handle == NULL { NULL } else { symbol(&mut calls, handle, c"hatf_recorder_detach")? };
        if end == NULL {
            return Err(target.refused("no longer contains the recorder"));
        }
        calls.call_at(end, &[], "the recorder").map(drop)
    })?
}

fn load(calls: &mut RemoteCalls<'_>, path: &CStr, flags: libc::c_int) -> Result<u64> {
    let path = calls.text(path)?;
    calls.call(c"dlopen", &[path, (libc::RTLD_NOW | flags).unsigned_abs().into()])
}

fn symbol(calls: &mut RemoteCalls<'_>, handle: u64, name: &CStr) -> Result<u64> {
    let name = calls.text(name)?;
    calls.call(c"dlsym", &[handle, name])
}

fn c_string(path: &Path) -> Result<CString> {
    let text = CString::new(path.as_os_str().as_bytes());
    text.map_err(|_| Error::Usage(format!("{}: the path contains a zero byte", path.display())))
}

fn low_half(number: u64) -> u32 {
    u32::try_from(number & 0xffff_ffff).unwrap_or_default()
}
