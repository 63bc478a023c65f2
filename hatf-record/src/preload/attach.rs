//! Finding the spool at the first call of a hook.

use core::ffi::c_char;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};

use super::push;
use super::session::{self, Session};
use super::thread_state::nested;
use crate::event::{Event, Kind, TEXT_MAX};
use crate::layout::CHUNK_BYTES;
use crate::spool::{Spool, bytes_for};

static STATE: AtomicU32 = AtomicU32::new(UNDECIDED);
const UNDECIDED: u32 = 0;
const ATTACHING: u32 = 1;
const DECIDED: u32 = 2;

/// Returns the session, if this process is recorded.
#[inline]
pub(crate) fn session() -> Option<&'static Session> {
    if STATE.load(Ordering::Acquire) != DECIDED {
        attach();
    }
    session::current()
}

/// Decides that this process is not recorded, if nothing was decided yet.
pub(crate) fn give_up() {
    STATE.store(DECIDED, Ordering::Release);
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Attaches at the first call of a hook: constructors of other libraries run before ours, and may
/// allocate.
#[cold]
fn attach() {
    // SAFETY: a read of the pointer that the C library keeps. Very early it is not yet set: then
    // nothing is decided.
    if unsafe { environ.is_null() } {
        return;
    }
    if STATE.compare_exchange(UNDECIDED, ATTACHING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: `errno` of this thread.
    let errno = unsafe { *libc::__errno_location() };
    nested(begin_session);
    STATE.store(DECIDED, Ordering::Release);
    push_image();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Maps the spool that the environment names, if this process is the one to record: the direct child of `hatf record`, or a
/// program it turned into by exec.
fn begin_session() -> Option<()> {
    // SAFETY: a constant C string; the answer is null or a C string that stays while nobody changes
    // the environment, which no other thread does before `main`.
    let path = unsafe { libc::getenv(c"HATF_SPOOL".as_ptr()) };
    if path.is_null() {
        return None;
    }
    let spool = map_spool(path)?;
    let header = spool.header();
    let parent = header.parent.load(Ordering::Relaxed);
    // SAFETY: two calls without arguments that cannot fail.
    let (process, its_parent) = unsafe { (libc::getpid().cast_unsigned(), libc::getppid().cast_unsigned()) };
    let is_ours = match header.process.load(Ordering::Acquire) {
        0 if its_parent == parent => {
            header.process.compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire).is_ok()
        }
        recorded => recorded == process,
    };
    let wanted = is_ours && header.closed.load(Ordering::Acquire) == 0;
    if !is_ours {
        header.other_processes.fetch_add(1, Ordering::Relaxed);
    }
    if !wanted || spool.mapped() == 0 {
        unmap(&spool);
        return None;
    }
    header.mapped.store(u32::try_from(spool.mapped()).unwrap_or(u32::MAX), Ordering::Relaxed);
    let image = header.images.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    // SAFETY: cannot fail. Another process by now: a signal handler has forked since, and this is the child.
    if unsafe { libc::getpid().cast_unsigned() } != process {
        return None;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the C string from above.
    super::stack::begin(unsafe { core::ffi::CStr::from_ptr(path) });
    session::begin(spool, process, image)
}

/// Maps all of the spool, or where the program may not have so much memory, a part of it.
fn map_spool(path: *const c_char) -> Option<Spool<'static>> {
    // SAFETY: system calls with valid arguments, each result checked.
    unsafe {
        let file = libc::open(path, libc::O_RDWR | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let bytes = libc::lseek(file, 0, libc::SEEK_END);
        let mut bytes = usize::try_from(bytes).unwrap_or(0).min(share_of_address_space());
        let mut spool = None;
        while spool.is_none() && bytes >= bytes_for(1) {
            spool = map_aligned(file, bytes);
            bytes /= 2;
        }
        libc::close(file);
        spool
    }
}

/// The part of the address space that the spool may take: where that is limited, a sixteenth.
fn share_of_address_space() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the answer.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    let limited = known && limit.rlim_cur != libc::RLIM_INFINITY;
    if limited { usize::try_from(limit.rlim_cur / 16).unwrap_or(usize::MAX) } else { usize::MAX }
}

/// Maps the beginning of the file at a multiple of the length of a chunk. The mapping is never undone where it is a spool, so that it is
/// valid for the rest of the process.
///
/// # Safety
/// `file` is open for reading and writing.
unsafe fn map_aligned(file: libc::c_int, bytes: usize) -> Option<Spool<'static>> {
    let bytes = bytes / CHUNK_BYTES * CHUNK_BYTES;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let nowhere = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: addresses are reserved first, more than are needed; the spool is put in place of some of them, and the others
    // are given back.
    unsafe {
        let reserved = libc::mmap(null_mut(), bytes + CHUNK_BYTES, libc::PROT_NONE, nowhere, -1, 0);
        if reserved == libc::MAP_FAILED {
            return None;
        }
        let before = (reserved as usize).next_multiple_of(CHUNK_BYTES) - reserved as usize;
        let memory = reserved.byte_add(before);
        let mapped = libc::mmap(memory, bytes, access, libc::MAP_SHARED | libc::MAP_FIXED, file, 0);
        if before > 0 {
            libc::munmap(reserved, before);
        }
        libc::munmap(memory.byte_add(bytes), CHUNK_BYTES - before);
        let spool = if mapped == libc::MAP_FAILED { None } else { Spool::attach(memory.cast(), bytes) };
        if spool.is_none() {
            libc::munmap(memory, bytes);
        }
        spool
    }
}

fn unmap(spool: &Spool<'static>) {
    let (memory, bytes) = spool.memory();
    // SAFETY: the mapping of `map_aligned`, which nobody uses.
    unsafe { libc::munmap(memory.cast(), bytes) };
}

/// Records which program this is.
fn push_image() {
    let Some(session) = session::current() else { return };
    let mut path = [0u8; TEXT_MAX];
    // SAFETY: a constant path and a buffer with its length.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len()) };
    let path = path.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
    let mut event = Event::new(Kind::Image, push::thread_number(session), session.clock.now());
    event.extra = u64::from(session.process);
    push::event(session, event, path);
}
