//! The recording in progress.
//!
//! A forked child is not recorded. It inherits everything here, and if a signal handler forked in the middle of a hook, the
//! rest of that hook as well. So `live` lies on a page that the kernel wipes in a child, however the child was made; all else
//! stays as it was, so that the rest of a hook finds no null pointers. `fork.rs` keeps that rest away from the ring.

use core::ffi::c_void;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::ring::Ring;

/// A recording in progress. Written once, and never freed.
pub(crate) struct Session {
    /// Not 0 in the recorded process. The kernel wipes it in a forked child.
    live: &'static AtomicU32,
    /// The process of `hatf record`.
    parent: u32,
    /// Nanoseconds of the clock when recording began.
    pub(crate) start: u64,
    /// Where events go.
    pub(crate) ring: Ring<'static>,
}

static SESSION: AtomicPtr<Session> = AtomicPtr::new(null_mut());

/// Returns the session, if this process is recorded.
#[inline]
pub(crate) fn current() -> Option<&'static Session> {
    // SAFETY: null, or a session that was written before its address was stored, and that nobody changes or frees.
    let session = unsafe { SESSION.load(Ordering::Acquire).as_ref() }?;
    session.is_live().then_some(session)
}

/// Begins the session of this process.
pub(crate) fn begin(ring: Ring<'static>) -> Option<()> {
    let live = page()?;
    // SAFETY: a page of our own. Kernels before 4.14 refuse the advice: there the handler of `pthread_atfork` has to do.
    unsafe { libc::madvise(live, PAGE, libc::MADV_WIPEONFORK) };
    // SAFETY: a zeroed page that is never unmapped, aligned for the word.
    let live = unsafe { &*live.cast::<AtomicU32>() };
    live.store(1, Ordering::Relaxed);
    let session = page()?.cast::<Session>();
    let header = ring.header();
    let (parent, start) = (header.parent.load(Ordering::Relaxed), header.start.load(Ordering::Relaxed));
    // SAFETY: a fresh page, larger than a session and aligned for it.
    unsafe { session.write(Session { live, parent, start, ring }) };
    SESSION.store(session, Ordering::Release);
    Some(())
}

/// Stops recording in this process for good.
pub(crate) fn end() {
    if let Some(session) = current() {
        session.live.store(0, Ordering::Relaxed);
    }
}

/// Returns the ring of the session, whether that is live or not: in a forked child it is the parent's.
pub(crate) fn inherited_ring() -> Option<Ring<'static>> {
    // SAFETY: as in `current`.
    unsafe { SESSION.load(Ordering::Acquire).as_ref() }.map(|session| session.ring)
}

const PAGE: usize = 4096;

fn page() -> Option<*mut c_void> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a system call with valid arguments.
    let page = unsafe { libc::mmap(null_mut(), PAGE, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
    (page != libc::MAP_FAILED).then_some(page)
}

impl Session {
    /// Returns whether this process is still recorded.
    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed) != 0
    }

    /// Returns whether `hatf record` is still there to read: it is our parent for as long as it lives.
    fn is_read(&self) -> bool {
        if self.ring.header().closed.load(Ordering::Relaxed) != 0 {
            return false;
        }
        // SAFETY: cannot fail.
        unsafe { libc::getppid().cast_unsigned() == self.parent }
    }

    /// Waits until a slot may be free; ends the session and returns `false` if nobody reads any more. Keeps `errno`.
    #[cold]
    pub(crate) fn wait(&self) -> bool {
        if !self.is_live() {
            return false;
        }
        // SAFETY: `errno` of this thread.
        let errno = unsafe { *libc::__errno_location() };
        let go_on = self.wait_on_futex();
        if !go_on {
            end();
        }
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        go_on
    }

    fn wait_on_futex(&self) -> bool {
        let (header, head) = (self.ring.header(), self.ring.head());
        header.waits.fetch_add(1, Ordering::Relaxed);
        header.waiting.fetch_add(1, Ordering::SeqCst);
        let seen = header.wakeups.load(Ordering::SeqCst);
        let timeout = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        if self.ring.head() == head {
            // SAFETY: a futex word that stays mapped, a timeout on the stack, and no pointers else. The word is in memory
            // shared by two processes: not a private futex.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    header.wakeups.as_ptr(),
                    libc::FUTEX_WAIT,
                    seen,
                    &raw const timeout,
                    null::<u32>(),
                    0,
                );
            }
        }
        header.waiting.fetch_sub(1, Ordering::SeqCst);
        self.is_read()
    }
}
