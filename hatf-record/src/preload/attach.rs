//! Finding the ring at the first call of a hook.

use core::ffi::c_char;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};

use super::push;
use super::session::{self, Session};
use super::thread_state::nested;
use crate::event::{Event, Kind, TEXT_MAX};
use crate::ring::Ring;

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

/// Maps the ring that the environment names, if this process is the one to record: the direct child of `hatf record`, or a
/// program it turned into by exec.
fn begin_session() -> Option<()> {
    // SAFETY: a constant C string; the answer is null or a C string that stays while nobody changes
    // the environment, which no other thread does before `main`.
    let path = unsafe { libc::getenv(c"HATF_RING".as_ptr()) };
    if path.is_null() {
        return None;
    }
    let ring = map_ring(path)?;
    let header = ring.header();
    let parent = header.parent.load(Ordering::Relaxed);
    // SAFETY: two calls without arguments that cannot fail.
    let (process, its_parent) = unsafe { (libc::getpid().cast_unsigned(), libc::getppid().cast_unsigned()) };
    let is_ours = match header.process.load(Ordering::Acquire) {
        0 if its_parent == parent => {
            header.process.compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire).is_ok()
        }
        recorded => recorded == process,
    };
    if !is_ours {
        header.other_processes.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    if header.closed.load(Ordering::Acquire) != 0 {
        return None;
    }
    header.images.fetch_add(1, Ordering::Relaxed);
    ring.prefault();
    // SAFETY: cannot fail. Another process by now: a signal handler has forked since, and this is the child.
    if unsafe { libc::getpid().cast_unsigned() } != process {
        return None;
    }
    session::begin(ring)
}

fn map_ring(path: *const c_char) -> Option<Ring<'static>> {
    // SAFETY: system calls with valid arguments, each result checked. The mapping is never undone,
    // so that the ring is valid for the rest of the process.
    unsafe {
        let file = libc::open(path, libc::O_RDWR | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let bytes = libc::lseek(file, 0, libc::SEEK_END);
        let bytes = usize::try_from(bytes).unwrap_or(0);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let memory = libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, file, 0);
        libc::close(file);
        if memory == libc::MAP_FAILED {
            return None;
        }
        let ring = Ring::attach(memory.cast(), bytes);
        if ring.is_none() {
            libc::munmap(memory, bytes);
        }
        ring
    }
}

/// Records which program this is.
fn push_image() {
    let Some(session) = session::current() else { return };
    let mut path = [0u8; TEXT_MAX];
    // SAFETY: a constant path and a buffer with its length.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len()) };
    let path = path.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
    let mut event = Event::new(Kind::Image, push::thread_number(session), push::now(session));
    event.extra = u64::from(session.ring.header().process.load(Ordering::Relaxed));
    push::event_with_text(session, event, path);
}
