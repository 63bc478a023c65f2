//! Processes that the recorded program makes: each has a spool of its own, in a folder inside of the first one's.
//!
//! The process makes it when it is forked, or loads the recorder. The folder has the process's number and the time at which it began in its
//! name: by that a program that it becomes later finds the spool again, and no process takes it for its own that gets the same number. The file
//! of events gets its name when it is whole.
//!
//! Called with the state of `begin.rs` at hand, so by one thread at a time.

use core::ffi::{CStr, c_int};
use core::ptr::{self, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::clock::nanoseconds;
use crate::layout::{Header, KEEPER_GONE};
use crate::names;
use crate::preload::platform::path::Path;
use crate::preload::platform::{files, process};
use crate::preload::spool::create::{New, make_file};
use crate::preload::spool::mapping::{self, MappedSpool};
use crate::reasons::NotFollowed;

/// Chunks that are ready from the beginning: `hatf record` has to find the spool before it makes more.
const FIRST: usize = 4;

/// Whether processes are followed.
static ON: AtomicBool = AtomicBool::new(false);

/// Returns whether processes are followed.
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Has this process and those that it makes followed, or not, as the first one's spool says.
pub(crate) fn decide(first: &Header, first_events: &Path) {
    let is_on = first.follow.load(Ordering::Relaxed) != 0;
    ON.store(is_on, Ordering::Relaxed);
    if is_on && FIRST_HEAD.load(Ordering::Relaxed).is_null() {
        let header = mapping::header(first_events.as_c()).map_or(null_mut(), |header| ptr::from_ref(header).cast_mut());
        FIRST_HEAD.store(header, Ordering::Release);
    }
}

/// The head of the first process's spool, mapped by itself, so that a forked child can say that it is not followed when it cannot open that spool any
/// more; null while processes are not followed.
static FIRST_HEAD: AtomicPtr<Header> = AtomicPtr::new(null_mut());

/// Returns whether `hatf record` was killed.
pub(crate) fn recorder_is_gone() -> bool {
    // SAFETY: null, or a header that stays mapped.
    let first = unsafe { FIRST_HEAD.load(Ordering::Acquire).as_ref() };
    first.is_some_and(|first| first.keeper.load(Ordering::Relaxed) & KEEPER_GONE != 0)
}

/// Counts this process, which was just forked, as one that is not followed.
pub(crate) fn not_followed(why: NotFollowed) {
    // SAFETY: null, or a header that stays mapped.
    if let Some(first) = unsafe { FIRST_HEAD.load(Ordering::Acquire).as_ref() } {
        count_not_followed(first, why);
        first.answered.fetch_add(1, Ordering::Release);
    }
}

fn count_not_followed(first: &Header, why: NotFollowed) {
    first.not_followed_why.fetch_or(why.bit(), Ordering::Relaxed);
    first.not_followed.fetch_add(1, Ordering::Relaxed);
}

/// The spool of a process, and the path of its events.
pub(crate) struct OwnSpool {
    pub(crate) spool: MappedSpool,
    pub(crate) events: Path,
}

/// Opens the spool of this process, which is not the first one recorded, or makes it; `None` if it is not to be recorded. A forked child that is not
/// may become a program that is: it is counted as one that is not where a program image was loaded.
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
        // The program has become another.
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

/// Returns whether an earlier image of a process counted it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Noted {
    Now,
    Before,
}

/// Makes the folder of a process. One without a spool says that the process was counted as one that is not recorded: it may become another program, which
/// is not to be counted once more.
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

/// Makes the spool in its folder, which stays empty where that fails.
fn make(first: &Header, command: &Path, events: Path, process: u32) -> Option<MappedSpool> {
    let unfinished = events.with(b".new")?;
    // SAFETY: C strings.
    unsafe {
        let chunks = usize::try_from(first.follow_chunks.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        // Without `hatf record` nobody ever makes more ready: none are from the beginning.
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

/// Sets a process's spool as the first one's is.
fn set(header: &Header, first: &Header) {
    let numbers = [
        (&header.recorder, &first.recorder),
        (&header.clock, &first.clock),
        (&header.when_full, &first.when_full),
        (&header.stack_depth, &first.stack_depth),
        (&header.stack_room, &first.stack_room),
        (&header.extras, &first.extras),
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

/// Returns whether the program of this process is one of those that are followed, by its file's name or its own.
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
    // The kernel cuts a name.
    let is = |name: &[u8]| name == file || name == comm || name.get(..15).is_some_and(|name| name == comm);
    list.split(|byte| *byte == b'\n').any(|name| !name.is_empty() && is(name))
}
