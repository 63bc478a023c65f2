//! Finding the ring, and losing it again at fork.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::thread_state::below;
use super::{log, threads};
use crate::ring::Ring;

/// A recording in progress. It lives in a page of its own that the kernel wipes in a forked child,
/// however the child was made: there, `live` reads 0 from the first instruction on.
#[repr(C)]
pub(crate) struct Session {
    live: AtomicU32,
    /// The process of `hatf record`.
    pub(crate) parent: u32,
    /// Nanoseconds of the clock when recording began.
    pub(crate) start: u64,
    /// Where events go.
    pub(crate) ring: Ring<'static>,
}

static SESSION: AtomicPtr<Session> = AtomicPtr::new(null_mut());
static STATE: AtomicU32 = AtomicU32::new(UNDECIDED);
const UNDECIDED: u32 = 0;
const ATTACHING: u32 = 1;
const DECIDED: u32 = 2;

/// The session, if this process is recorded.
#[inline]
pub(crate) fn session() -> Option<&'static Session> {
    if STATE.load(Ordering::Acquire) != DECIDED {
        attach();
    }
    current()
}

#[inline]
fn current() -> Option<&'static Session> {
    // SAFETY: null, or a session page that is never unmapped. In a forked child it is all zero, and
    // only `live` is looked at, which any bytes make a value of.
    unsafe {
        let session = SESSION.load(Ordering::Acquire);
        if session.is_null() || (*session).live.load(Ordering::Relaxed) == 0 {
            return None;
        }
        Some(&*session)
    }
}

/// Stops recording in this process for good.
pub(crate) fn detach() {
    if let Some(session) = current() {
        session.live.store(0, Ordering::Relaxed);
    }
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
    let session = below(open_session);
    if let Some(session) = session {
        SESSION.store(session, Ordering::Release);
    }
    STATE.store(DECIDED, Ordering::Release);
    if session.is_some() {
        log::image();
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Maps the ring that the environment names, if this process is the one to record: the direct child
/// of `hatf record`, or a program it turned into by exec.
fn open_session() -> Option<*mut Session> {
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
    let (mine, over_me) = unsafe { (libc::getpid().cast_unsigned(), libc::getppid().cast_unsigned()) };
    let known = match header.process.load(Ordering::Acquire) {
        0 if over_me == parent => header.process.compare_exchange(0, mine, Ordering::AcqRel, Ordering::Acquire).is_ok(),
        process => process == mine,
    };
    if !known {
        header.elsewhere.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    if header.closed.load(Ordering::Acquire) != 0 {
        return None;
    }
    header.images.fetch_add(1, Ordering::Relaxed);
    ring.touch();
    let page = page_wiped_on_fork()?.cast::<Session>();
    let start = header.start.load(Ordering::Relaxed);
    // SAFETY: a fresh page, larger than a session and aligned for it.
    unsafe { page.write(Session { live: AtomicU32::new(1), parent, start, ring }) };
    Some(page)
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

fn page_wiped_on_fork() -> Option<*mut c_void> {
    // SAFETY: system calls with valid arguments. Kernels before 4.14 refuse the advice: there the
    // handler of `pthread_atfork` has to do.
    unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(null_mut(), 4096, access, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return None;
        }
        libc::madvise(page, 4096, libc::MADV_WIPEONFORK);
        Some(page)
    }
}

/// Where the ring's counters are, for the child of a fork, whose session page is gone.
static HEADER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

extern "C" fn after_fork_in_child() {
    detach();
    let header = HEADER.load(Ordering::Relaxed).cast::<crate::ring::Header>();
    // SAFETY: null, or the header of the ring, which stays mapped.
    if let Some(header) = unsafe { header.as_ref() } {
        header.forks.fetch_add(1, Ordering::Relaxed);
    }
    // A child of this child is not counted.
    HEADER.store(null_mut(), Ordering::Relaxed);
}

/// Runs when the object is loaded: decides, if no hook did, and asks to be told of forks and of
/// threads that end.
extern "C" fn constructor(_: c_int, _: *const *const c_char, _: *const *const c_char) {
    let Some(session) = session() else {
        // Without an environment nothing will ever be recorded.
        STATE.store(DECIDED, Ordering::Release);
        return;
    };
    HEADER.store(core::ptr::from_ref(session.ring.header()).cast_mut().cast(), Ordering::Relaxed);
    below(|| {
        // SAFETY: a handler that is safe to run in a forked child.
        unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
        threads::watch_for_ends();
    });
}

type Constructor = extern "C" fn(c_int, *const *const c_char, *const *const c_char);

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: Constructor = constructor;

/// Whether `hatf record` is still there to read: it is our parent for as long as it lives.
pub(crate) fn is_read(session: &Session) -> bool {
    if session.ring.header().closed.load(Ordering::Relaxed) != 0 {
        return false;
    }
    // SAFETY: cannot fail.
    unsafe { libc::getppid().cast_unsigned() == session.parent }
}

/// Waits until there may be room in the ring; `false` if nobody reads any more.
#[cold]
pub(crate) fn wait_for_room(session: &Session, drawn_from: u64) -> bool {
    let header = session.ring.header();
    header.waits.fetch_add(1, Ordering::Relaxed);
    header.waiting.fetch_add(1, Ordering::SeqCst);
    let seen = header.room.load(Ordering::SeqCst);
    let timeout = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    if session.ring.consumed() == drawn_from {
        // SAFETY: a futex word that stays mapped, a timeout on the stack, and no pointers else. The
        // word is in memory shared by two processes: not a private futex.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                header.room.as_ptr(),
                libc::FUTEX_WAIT,
                seen,
                &raw const timeout,
                null::<u32>(),
                0,
            );
        }
    }
    header.waiting.fetch_sub(1, Ordering::SeqCst);
    is_read(session)
}
