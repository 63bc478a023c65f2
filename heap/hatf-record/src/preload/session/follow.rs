//! Child processes of the recorded program. Each has its own spool, in a directory inside of the first process's
//! directory.
//!
//! A process creates its spool when it is forked or loads the recorder. The directory's name contains the process ID
//! and start time. If the process becomes another program, that program uses both to find the spool again, whereas a
//! process that reuses the ID does not mistake the spool for its own. The event file receives its final name when it is
//! complete.
//!
//! These functions are called while the state in `begin.rs` is held, so only one thread calls them at a time.

use core::ffi::{CStr, c_int};
use core::ptr::{self, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::bell::Work;
use crate::clock::nanoseconds;
use crate::layout::{Header, KEEPER_GONE};
use crate::names;
use crate::preload::platform::path::Path;
use crate::preload::platform::{files, process};
use crate::preload::spool::create::{New, make_file};
use crate::preload::spool::mapping::{self, MappedSpool};
use crate::reasons::NotFollowed;

/// The number of chunks ready from the start, because `hatf record` must find the spool before it can make more ready.
const FIRST: usize = 4;

/// Whether processes are followed.
static ON: AtomicBool = AtomicBool::new(false);

/// Returns whether processes are followed.
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Decides, based on the first process's spool, whether this process and its children are followed.
pub(crate) fn decide(first: &Header, first_events: &Path) {
    let is_on = first.follow.load(Ordering::Relaxed) != 0;
    ON.store(is_on, Ordering::Relaxed);
    if is_on && FIRST_HEAD.load(Ordering::Relaxed).is_null() {
        let header = mapping::header(first_events.as_c()).map_or(null_mut(), |header| ptr::from_ref(header).cast_mut());
        FIRST_HEAD.store(header, Ordering::Release);
    }
}

/// The header of the first process's spool, or null while processes are not followed. The header is mapped separately,
/// so that a forked child can report that it is not followed even if it can no longer open the spool.
static FIRST_HEAD: AtomicPtr<Header> = AtomicPtr::new(null_mut());

/// Returns the header of the first process's spool while processes are followed.
pub(crate) fn first() -> Option<&'static Header> {
    // SAFETY: null, or a header that stays mapped.
    unsafe { FIRST_HEAD.load(Ordering::Acquire).as_ref() }
}

/// Returns whether `hatf record` was killed.
pub(crate) fn recorder_is_gone() -> bool {
    first().is_some_and(|first| first.keeper.load(Ordering::Relaxed) & KEEPER_GONE != 0)
}

/// Wakes the thread of `hatf` that looks for new processes, if it sleeps.
pub(crate) fn ring() {
    if let Some(first) = first() {
        first.ring(Work::Processes);
    }
}

/// Makes all recorded processes silent towards that thread, because this process may soon have a system call filter.
pub(crate) fn silence() {
    if let Some(first) = first() {
        first.silence();
    }
}

/// Counts this process, which was just forked, as not followed.
pub(crate) fn not_followed(why: NotFollowed) {
    if let Some(first) = first() {
        count_not_followed(first, why);
        first.answered.fetch_add(1, Ordering::Release);
    }
}

fn count_not_followed(first: &Header, why: NotFollowed) {
    first.not_followed_why.fetch_or(why.bit(), Ordering::Relaxed);
    first.not_followed.fetch_add(1, Ordering::Relaxed);
}

/// The spool of a process and the path of its events.
pub(crate) struct OwnSpool {
    pub(crate) spool: MappedSpool,
    pub(crate) events: Path,
}

/// Opens or creates the spool of this process, which is not the first recorded process. Returns `None` if the process
/// should not be recorded. A forked child that should not be recorded may become a program that should, so it is
/// counted as not recorded only if a program image was loaded.
pub(crate) fn open_or_make(first: &Header, first_events: Path, process: u32, is_image: bool) -> Option<OwnSpool> {
    let most = first.follow.load(Ordering::Relaxed);
    if most == 0 {
        first.other_processes.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    let parent = first_events.folder()?;
    let folder = parent
        .with(names::PROCESS.as_bytes())?
        .with_number(process.into())?
        .with(b"-")?
        .with_number(process::began())?
        .with(b"/")?;
    let events = folder.with(names::EVENTS.as_bytes())?;
    let command = folder.with(names::COMMAND.as_bytes())?;
    if let Some(spool) = mapping::open(events.as_c()) {
        // The process has become another program.
        // SAFETY: a C string.
        unsafe { libc::unlink(command.as_c().as_ptr()) };
        files::copy(c"/proc/self/cmdline", command.as_c());
        return Some(OwnSpool { spool, events });
    }
    if !is_wanted(parent.with(names::PROGRAMS.as_bytes())?.as_c()) {
        if is_image && note(&folder) == Ok(Noted::Now) {
            first.other_processes.fetch_add(1, Ordering::Relaxed);
        }
        return None;
    }
    let noted = note(&folder);
    let one_more = |now: u32| (now < most).then_some(now + 1);
    let taken = first.followed.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_more).is_ok();
    let made = match noted {
        Err(error) => Err(NotFollowed::of_error(error)),
        Ok(_) if !taken => Err(NotFollowed::Most),
        Ok(_) => make(first, &command, events, process).ok_or(NotFollowed::Room),
    };
    match made {
        Ok(spool) => {
            if noted == Ok(Noted::Before) {
                // The previous program image was not recorded, but this process is.
                first.not_followed.fetch_sub(1, Ordering::Relaxed);
            }
            first.spools.fetch_add(1, Ordering::Release);
            first.ring(Work::Processes);
            Some(OwnSpool { spool, events })
        }
        Err(why) => {
            if taken {
                first.followed.fetch_sub(1, Ordering::AcqRel);
            }
            if noted != Ok(Noted::Before) {
                count_not_followed(first, why);
            }
            None
        }
    }
}

/// Whether an earlier image of a process has already counted it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Noted {
    Now,
    Before,
}

/// Creates the directory of a process. A directory without a spool means that the process was counted as not recorded:
/// it may become another program, which must not be counted again.
fn note(folder: &Path) -> Result<Noted, c_int> {
    // SAFETY: a C string; `errno` of this thread.
    unsafe {
        if libc::mkdir(folder.as_c().as_ptr(), 0o700) == 0 {
            return Ok(Noted::Now);
        }
        match *libc::__errno_location() {
            libc::EEXIST => Ok(Noted::Before),
            error => Err(error),
        }
    }
}

/// Creates the spool in its directory, which stays empty on failure.
fn make(first: &Header, command: &Path, events: Path, process: u32) -> Option<MappedSpool> {
    let unfinished = events.with(b".new")?;
    // SAFETY: C strings.
    unsafe {
        let chunks = usize::try_from(first.follow_chunks.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        // Without `hatf record`, nobody ever makes further chunks ready, so none are ready from the start.
        let ready = if first.recorder.load(Ordering::Relaxed) == 0 { 0 } else { FIRST };
        if let Some(spool) = make_file(&unfinished, New { chunks, ready }) {
            let header = spool.header();
            set(header, first);
            header.process.store(process, Ordering::Relaxed);
            header.parent.store(libc::getppid().cast_unsigned(), Ordering::Relaxed);
            header.number.store(first.numbers.fetch_add(1, Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            files::copy(c"/proc/self/cmdline", command.as_c());
            if libc::rename(unfinished.as_c().as_ptr(), events.as_c().as_ptr()) == 0 {
                return Some(spool);
            }
            spool.unmap();
        }
        for path in [command.as_c(), unfinished.as_c()] {
            libc::unlink(path.as_ptr());
        }
    }
    None
}

/// Copies the settings of the first process's spool to another spool.
fn set(header: &Header, first: &Header) {
    let numbers = [
        (&header.recorder, &first.recorder),
        (&header.clock, &first.clock),
        (&header.when_full, &first.when_full),
        (&header.stack_depth, &first.stack_depth),
        (&header.stack_room, &first.stack_room),
        (&header.extras, &first.extras),
        (&header.plans, &first.plans),
        (&header.toggle_signal, &first.toggle_signal),
        (&header.dump_signal, &first.dump_signal),
    ];
    for (ours, theirs) in numbers {
        ours.store(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    header.ask(first.off.load(Ordering::Relaxed) != 0);
    header.start.store(nanoseconds(), Ordering::Relaxed);
    header.sample.store(first.sample.load(Ordering::Relaxed), Ordering::Relaxed);
    header.patience.store(first.patience.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Returns whether the program of this process should be followed, based on its file name or its process name.
fn is_wanted(list: &CStr) -> bool {
    let mut bytes = [0; 4096];
    let Some(list) = files::read(list, &mut bytes) else { return true };
    let mut path = [0_u8; 4096];
    // SAFETY: a C string, and a buffer with its length.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len()) };
    let path = path.get(..usize::try_from(length).unwrap_or_default()).unwrap_or_default();
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let mut comm = [0; 64];
    let comm = files::read(c"/proc/self/comm", &mut comm).unwrap_or_default();
    let comm = comm.strip_suffix(b"\n").unwrap_or(comm);
    // The kernel truncates names.
    let is = |name: &[u8]| name == file || name == comm || name.get(..15).is_some_and(|name| name == comm);
    list.split(|byte| *byte == b'\n').any(|name| !name.is_empty() && is(name))
}
