//! Processes that the recorded program makes: each has a spool of its own, in a folder inside of the first one's.
//!
//! The process makes it when it is forked, or loads the recorder. The folder has the process's number and the time at which it began in its
//! name: by that a program that it becomes later finds the spool again, and no process takes it for its own that gets the same number. The file
//! of events gets its name when it is whole.
//!
//! Called with the state of `attach.rs` at hand, so by one thread at a time.

use core::ffi::{CStr, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::path::{self, Identity, Path};
use super::{forever, mapping};
use crate::clock::nanoseconds;
use crate::layout::{CHUNK_BYTES, CHUNKS_MAX, Header};
use crate::names;
use crate::spool::{Spool, bytes_for, offset_of};

/// Chunks that are ready from the beginning: `hatf record` has to find the spool before it makes more.
const FIRST: usize = 4;

/// What a process that is made later needs to know, as its environment may be another.
#[derive(Clone, Copy)]
struct Origin {
    /// The path of the first process's events.
    events: &'static CStr,
    /// The variables that a program needs to be recorded, each with its name; an empty text where there is none.
    variables: [&'static CStr; VARIABLES.len()],
    /// The file of the recorder, if there is one.
    library: Option<Identity>,
}

/// The variables that a program needs to be recorded.
pub(crate) const VARIABLES: [&CStr; 3] = [c"HATF_SPOOL", c"HATF_LIBRARY", c"LD_PRELOAD"];

/// Whether processes are followed.
static ON: AtomicBool = AtomicBool::new(false);

/// Returns whether processes are followed.
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Has this process and those that it makes followed, or not, as the first one's spool says.
pub(crate) fn decide(first: &Header) {
    ON.store(first.follow.load(Ordering::Relaxed) != 0, Ordering::Relaxed);
}

static ORIGIN: AtomicPtr<Origin> = AtomicPtr::new(null_mut());

fn origin() -> Option<&'static Origin> {
    // SAFETY: null, or what `remember` wrote before it stored the address, and nobody changes or frees.
    unsafe { ORIGIN.load(Ordering::Acquire).as_ref() }
}

/// Returns the path of the first process's events, as it was when this or an earlier process began.
pub(crate) fn events() -> Option<Path> {
    if let Some(origin) = origin() {
        return Path::new().with(origin.events.to_bytes());
    }
    let [spool, ..] = VARIABLES;
    let events = Path::new().with(environment(spool)?)?;
    remember(events);
    Some(events)
}

/// Returns a variable of the environment; none in a program that has more rights than who has started it, and chose its environment.
pub(crate) fn environment(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: a call that reads what the kernel gave the program.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    // SAFETY: a C string; the answer is null or a C string that stays while nobody changes the environment, which no other
    // thread does before `main`.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
    }
}

/// Remembers the path of the first process's events for processes that this one makes.
pub(crate) fn remember(events: Path) {
    let entry = |name: &CStr| {
        let entry = Path::new().with(name.to_bytes())?.with(b"=")?.with(environment(name)?)?;
        forever::keep_text(entry.as_c())
    };
    let keep = || {
        let events = forever::keep_text(events.as_c())?;
        let origin = match origin() {
            // Its environment is what it was.
            Some(before) => Origin { events, ..*before },
            None => {
                let variables = VARIABLES.map(|name| entry(name).unwrap_or_default());
                Origin { events, variables, library: library(&variables).and_then(path::identity) }
            }
        };
        forever::keep(origin)
    };
    if let Some(origin) = keep() {
        ORIGIN.store(core::ptr::from_ref(origin).cast_mut(), Ordering::Release);
    }
}

/// Returns a variable that a program needs to be recorded, as `NAME=VALUE`, by its place in [`VARIABLES`]; `None` if it is not known.
pub(crate) fn variable(place: usize) -> Option<&'static CStr> {
    origin()?.variables.get(place).copied().filter(|entry| !entry.is_empty())
}

/// Returns the path of the recorder's file, as a variable has it.
fn library(variables: &[&'static CStr; VARIABLES.len()]) -> Option<&'static CStr> {
    let [_, library, _] = variables;
    let behind = library.to_bytes().iter().position(|byte| *byte == b'=')? + 1;
    CStr::from_bytes_until_nul(library.to_bytes_with_nul().get(behind..)?).ok()
}

/// Returns the path of the recorder's file, if that is no longer there, or is another by now.
pub(crate) fn stale_library() -> Option<&'static [u8]> {
    let origin = origin()?;
    let path = library(&origin.variables)?;
    let is_stale = origin.library.is_some() && path::identity(path) != origin.library;
    is_stale.then(|| path.to_bytes())
}

/// The spool of a process, and the path of its events.
pub(crate) struct Own {
    pub(crate) spool: Spool<'static>,
    pub(crate) events: Path,
}

/// Opens the spool of this process, which is not the first one recorded, or makes it; `None` if it is not to be recorded. A forked child that is not
/// may become a program that is: it is counted as one that is not where a program image was loaded.
pub(crate) fn own(first: &Header, first_events: Path, process: u32, is_image: bool) -> Option<Own> {
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
        .with_number(began())?
        .with(b"/")?;
    let events = folder.with(names::EVENTS.as_bytes())?;
    let command = folder.with(names::COMMAND.as_bytes())?;
    if let Some(spool) = mapping::open(events.as_c()) {
        // The program has become another.
        // SAFETY: a C string.
        unsafe { libc::unlink(command.as_c().as_ptr()) };
        copy(c"/proc/self/cmdline", command.as_c());
        return Some(Own { spool, events });
    }
    if !is_wanted(parent.with(names::PROGRAMS.as_bytes())?.as_c()) {
        first.other_processes.fetch_add(is_image.into(), Ordering::Relaxed);
        return None;
    }
    let one_more = |now: u32| (now < most).then_some(now + 1);
    let taken = first.followed.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_more).is_ok();
    let spool = if taken { make(first, &folder, &command, events, process) } else { None };
    match spool {
        Some(spool) => {
            first.spools.fetch_add(1, Ordering::Release);
            Some(Own { spool, events })
        }
        None => {
            if taken {
                first.followed.fetch_sub(1, Ordering::AcqRel);
            }
            first.not_followed.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

/// Makes the spool and its folder.
fn make(first: &Header, folder: &Path, command: &Path, events: Path, process: u32) -> Option<Spool<'static>> {
    let unfinished = events.with(b".new")?;
    // SAFETY: C strings.
    unsafe {
        if libc::mkdir(folder.as_c().as_ptr(), 0o700) != 0 {
            return None;
        }
        let chunks = usize::try_from(first.follow_chunks.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        // Without `hatf record` nobody ever makes more ready: none are from the beginning.
        let ready = if first.recorder.load(Ordering::Relaxed) == 0 { 0 } else { FIRST };
        if let Some(spool) = make_file(&unfinished, New { chunks, ready }) {
            let header = spool.header();
            set(header, first);
            header.process.store(process, Ordering::Relaxed);
            header.parent.store(libc::getppid().cast_unsigned(), Ordering::Relaxed);
            header.number.store(first.numbers.fetch_add(1, Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            copy(c"/proc/self/cmdline", command.as_c());
            if libc::rename(unfinished.as_c().as_ptr(), events.as_c().as_ptr()) == 0 {
                return Some(spool);
            }
            mapping::unmap(&spool);
        }
        for path in [command.as_c(), unfinished.as_c()] {
            libc::unlink(path.as_ptr());
        }
        libc::rmdir(folder.as_c().as_ptr());
    }
    None
}

/// What a spool is to have: chunks, as far as this process may, and of these so many ready.
pub(crate) struct New {
    pub(crate) chunks: usize,
    pub(crate) ready: usize,
}

/// Makes the file of a spool.
pub(crate) fn make_file(path: &Path, New { chunks, ready }: New) -> Option<Spool<'static>> {
    let file = create(path.as_c())?;
    let most = mapping::share_of_address_space().min(mapping::file_size_limit());
    let chunks = chunks.min(CHUNKS_MAX).min(most / CHUNK_BYTES);
    let place = |number: usize| libc::off_t::try_from(number).ok();
    let first_chunks = chunks.min(ready);
    let spool = (|| {
        // SAFETY: an open file and numbers, whose results are checked; then fresh zeros of the file.
        unsafe {
            if chunks == 0 {
                *libc::__errno_location() = libc::EFBIG;
                return None;
            }
            if libc::ftruncate(file, place(bytes_for(chunks))?) != 0 {
                return None;
            }
            let reserved = libc::posix_fallocate(file, 0, place(offset_of(chunks, first_chunks))?);
            if reserved != 0 {
                *libc::__errno_location() = reserved;
                return None;
            }
            mapping::map(file, bytes_for(chunks), |memory| Some(Spool::create(memory, chunks)))
        }
    })();
    // SAFETY: the file that was opened.
    unsafe { libc::close(file) };
    let spool = spool?;
    for chunk in 0..first_chunks {
        spool.make_ready(chunk);
    }
    Some(spool)
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

/// Makes a file for reading and writing, which this user alone can open.
pub(crate) fn create(path: &CStr) -> Option<c_int> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: a C string.
    let file = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    (file >= 0).then_some(file)
}

/// Copies a file, as far as it goes.
pub(crate) fn copy(from: &CStr, to: &CStr) {
    let Some(to) = create(to) else { return };
    // SAFETY: a C string; a buffer and its length; files that were opened here.
    unsafe {
        let from = libc::open(from.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let mut bytes = [0_u8; 4096];
        // The arguments of a program are at most 2 MiB, or a quarter of its stack.
        loop {
            let read = libc::read(from, bytes.as_mut_ptr().cast(), bytes.len());
            let Some(length) = usize::try_from(read).ok().filter(|length| *length > 0) else { break };
            if libc::write(to, bytes.as_ptr().cast(), length) != read {
                break;
            }
        }
        libc::close(from);
        libc::close(to);
    }
}

/// Reads the beginning of a file.
pub(crate) fn read<'b>(path: &CStr, bytes: &'b mut [u8]) -> Option<&'b [u8]> {
    // SAFETY: a C string, and a buffer with its length.
    let length = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let length = libc::read(file, bytes.as_mut_ptr().cast::<c_void>(), bytes.len());
        libc::close(file);
        length
    };
    bytes.get(..usize::try_from(length).ok()?)
}

/// Returns when this process began, in the kernel's ticks since boot; 0 where that is not to be found out.
pub(crate) fn began() -> u64 {
    let mut bytes = [0; 1024];
    let text = read(c"/proc/self/stat", &mut bytes).unwrap_or_default();
    // The second field is a name in parentheses, which may have any character.
    let behind = text.iter().rposition(|byte| *byte == b')').map_or(0, |at| at + 1);
    let mut fields = text.get(behind..).unwrap_or_default().split(|byte| *byte == b' ');
    let began = fields.nth(20).unwrap_or_default();
    began.iter().fold(0, |number: u64, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0'))))
}

/// Returns whether the program of this process is one of those that are followed, by its file's name or its own.
fn is_wanted(list: &CStr) -> bool {
    let mut bytes = [0; 4096];
    let Some(list) = read(list, &mut bytes) else { return true };
    let mut path = [0_u8; 4096];
    // SAFETY: a C string, and a buffer with its length.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len()) };
    let path = path.get(..usize::try_from(length).unwrap_or_default()).unwrap_or_default();
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let mut comm = [0; 64];
    let comm = read(c"/proc/self/comm", &mut comm).unwrap_or_default();
    let comm = comm.strip_suffix(b"\n").unwrap_or(comm);
    // The kernel cuts a name.
    let is = |name: &[u8]| name == file || name == comm || name.get(..15).is_some_and(|name| name == comm);
    list.split(|byte| *byte == b'\n').any(|name| !name.is_empty() && is(name))
}
