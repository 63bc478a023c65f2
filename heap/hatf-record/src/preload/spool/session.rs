//! The recording in progress.
//!
//! A forked child begins its own session or is not recorded. It inherits everything in this module. If a signal handler
//! forked in the middle of a hook, the child also runs the rest of that hook. Therefore `live` is on a page that the
//! kernel wipes in a child, however the child was created. Everything else stays unchanged, so the rest of a hook finds
//! no null pointers. `hooks/fork.rs` keeps the rest of the hook away from the spool.

use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use core::ptr::null_mut;

use super::reader::Stalled;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
use super::word;
use super::{mapping, shrink};
use crate::clock::Clock;
use crate::conditions::Conditions;
use crate::preload::platform::memory;
use crate::preload::platform::permanent::{self, Pieces};
use crate::reasons::{Stop, WhenFull};
use crate::spool::Spool;

/// A recording in progress. It is written once and never freed.
#[derive(Clone, Copy)]
pub(crate) struct Session {
    /// Nonzero in the recorded process. The kernel wipes it in a forked child.
    live: &'static AtomicU32,
    /// The process ID of `hatf record`, or 0 if there is none.
    pub(super) recorder: u32,
    /// Whether `hatf record` started this process and is therefore its parent for as long as it lives.
    pub(super) is_child: bool,
    /// The 1-based number of this session within the process.
    pub(crate) number: u32,
    /// The process ID.
    pub(crate) process: u32,
    /// The 1-based number of the process image.
    pub(crate) image: u32,
    /// The clock that stamps events.
    pub(crate) clock: Clock,
    /// The action to take if no chunk is available.
    pub(super) when_full: WhenFull,
    /// The maximum time to wait for a chunk, in nanoseconds.
    pub(super) patience: u64,
    /// Whether a thread has waited in vain. If so, no thread waits until the reader has caught up.
    pub(super) stalled: &'static Stalled,
    /// The spool that receives the events.
    pub(crate) spool: Spool<'static>,
    /// Chunks beyond the end of the spool that are still mapped, because threads owned them when the spool was shrunk.
    behind: &'static [u32],
}

static SESSIONS: AtomicU32 = AtomicU32::new(0);

static SESSION: AtomicPtr<Session> = AtomicPtr::new(null_mut());

/// Returns the session if this process is being recorded.
#[inline]
pub(crate) fn current() -> Option<&'static Session> {
    // SAFETY: null, or a session that was written before its address was stored, and that nobody changes or frees.
    let session = unsafe { SESSION.load(Ordering::Acquire).as_ref() }?;
    session.is_live().then_some(session)
}

/// Begins the session of this process.
pub(crate) fn begin(spool: Spool<'static>, process: u32, image: u32) -> Option<()> {
    shrink::forget_chunks();
    let (live, is_new) = LIVE.take(size_of::<AtomicU32>())?;
    if is_new {
        // SAFETY: a page of our own. Kernels before 4.14 reject the advice: there the handler of `pthread_atfork` must
        // suffice.
        unsafe { memory::advise(live, PAGE, libc::MADV_WIPEONFORK) };
    }
    // SAFETY: zeros that are never unmapped, aligned for the word.
    let live = unsafe { &*live.cast::<AtomicU32>() };
    live.store(1, Ordering::Relaxed);
    let header = spool.header();
    let recorder = header.recorder.load(Ordering::Relaxed);
    // SAFETY: cannot fail.
    let parent = unsafe { libc::getppid().cast_unsigned() };
    let session = Session {
        live,
        recorder,
        is_child: header.number.load(Ordering::Relaxed) == 0 && parent == recorder,
        number: SESSIONS.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
        process,
        image,
        clock: Clock::from_number(header.clock.load(Ordering::Relaxed))?,
        when_full: WhenFull::from_number(header.when_full.load(Ordering::Relaxed))?,
        patience: header.patience.load(Ordering::Relaxed).saturating_mul(1_000_000),
        stalled: permanent::keep(Stalled::new())?,
        spool,
        behind: &[],
    };
    begin_with(session)
}

/// Words that the kernel wipes in a forked child.
static LIVE: Pieces = Pieces::new();

fn begin_with(session: Session) -> Option<()> {
    RETIRED.store(false, Ordering::Relaxed);
    let place = core::ptr::from_ref(permanent::keep(session)?);
    SESSION.store(place.cast_mut(), Ordering::SeqCst);
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    word::follow(session.spool.header());
    Some(())
}

/// Whether a thread is changing the mapping of the spool.
static CHANGING: AtomicBool = AtomicBool::new(false);

/// Limits the address space of the spool to this many bytes, plus the chunks that threads own.
pub(crate) fn shrink(bytes: usize) {
    if !CHANGING.swap(true, Ordering::Acquire) {
        shrink_to(bytes);
        CHANGING.store(false, Ordering::Release);
    }
}

fn shrink_to(bytes: usize) -> Option<()> {
    let session = current()?;
    let (smaller, behind) = shrink::take_out_of_use(&session.spool, session.behind, bytes)?;
    // A thread may be about to take a chunk through the previous session, but unmapped chunks cannot be taken.
    begin_with(Session { spool: smaller, behind, ..*session })?;
    shrink::unmap_behind(&session.spool, &smaller, behind);
    Some(())
}

/// Stops recording in this process permanently.
pub(crate) fn end() {
    if let Some(session) = current() {
        session.live.store(0, Ordering::Relaxed);
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        word::leave();
    }
}

/// Stops recording in this process permanently and stores the reason.
pub(crate) fn stop(reason: Stop) {
    if let Some(session) = current() {
        session.spool.header().stopped.store(reason as u32, Ordering::Relaxed);
        end();
    }
}

/// Returns the spool of the session, even if the session is not live. In a forked child, this is the parent's spool.
pub(crate) fn inherited() -> Option<Spool<'static>> {
    // SAFETY: as in `current`.
    unsafe { SESSION.load(Ordering::Acquire).as_ref() }.map(|session| session.spool)
}

/// Replaces the inherited spool with private zeros, to which any hook still in progress then writes. Must be called in
/// a forked child, which has only one thread.
pub(crate) fn leave_spool() {
    // No hook writes to the chunks that another thread of the parent was about to unmap.
    CHANGING.store(false, Ordering::Relaxed);
    // SAFETY: as in `current`.
    if let Some(session) = unsafe { SESSION.load(Ordering::Acquire).as_ref() } {
        mapping::replace(&session.spool, session.behind);
    }
}

/// Replaces the spool in the same way in a process that may be recorded again, using the same address range. Returns
/// `false` if the process was not recorded.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) fn retire_spool() -> bool {
    // SAFETY: as in `current`.
    let Some(session) = (unsafe { SESSION.load(Ordering::Acquire).as_ref() }) else { return false };
    end();
    // A thread that is changing the mapping will finish soon.
    while CHANGING.swap(true, Ordering::Acquire) {
        // SAFETY: a call without arguments.
        unsafe { libc::sched_yield() };
    }
    // Load the session again, because it may have been replaced in the meantime.
    // SAFETY: as in `current`.
    let session = unsafe { SESSION.load(Ordering::Acquire).as_ref() }.unwrap_or(session);
    if !RETIRED.swap(true, Ordering::Relaxed) {
        mapping::retire(&session.spool, session.behind);
    }
    CHANGING.store(false, Ordering::Release);
    true
}

/// Whether the spool of the last session is no longer mapped.
static RETIRED: AtomicBool = AtomicBool::new(false);

const PAGE: usize = 4096;

impl Session {
    /// Returns the current conditions for hooks.
    #[inline]
    pub(crate) fn conditions(&self) -> Conditions {
        self.spool.header().conditions()
    }

    /// Records that a second thread exists, which may from now on receive a block in the middle of a realloc.
    pub(crate) fn set_multithreaded(&self) {
        self.spool.header().set(Conditions::THREADS);
    }

    /// Returns whether this process is still being recorded.
    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed) != 0
    }
}

#[cfg(all(loom, test))]
mod models {
    use super::*;
    use crate::event::{Kind, SpoolEvent};
    use crate::models::{alone, events, share, spool};
    use crate::preload::platform::process;
    use crate::preload::spool::push;
    use crate::sync::model::{Share as _, model, spawn};

    /// A recorded process is recorded again, into another spool, while a thread is in its hooks. Events that the thread
    /// writes for a session are in the spool of that session, and no events belong to the previous session once the new
    /// one has been observed.
    #[test]
    fn a_new_session_has_no_chunk_of_the_one_before() {
        let _alone = alone();
        let spools = [spool(1), spool(1)];
        for spool in spools {
            assert!(spool.make_ready(0));
            spool.header().clock.store(Clock::Monotonic as u32, Ordering::Relaxed);
            spool.header().when_full.store(WhenFull::Drop as u32, Ordering::Relaxed);
        }
        begin(spools[0], process::task(), 1).unwrap();
        let first = current().unwrap();
        // SAFETY: the next piece, in a page that stays.
        let second = unsafe { AtomicU32::from_ptr(first.live.as_ptr().byte_add(permanent::ALIGN)) };
        model(3, move || {
            SESSION.share();
            first.live.share();
            second.share();
            spools.into_iter().for_each(share);
            let hooks = spawn(move || {
                let mut written = [0; 2];
                for _ in 0..2 {
                    let is_second = inherited().unwrap().memory() == spools[1].memory();
                    let session = current();
                    assert!(!is_second || session.is_some(), "a session is live when it is seen");
                    let Some(session) = session else { continue };
                    assert!(!is_second || session.number == first.number + 1);
                    let event = SpoolEvent::new(Kind::Malloc, push::thread_number(session), 0);
                    push::numbers(session, &SpoolEvent { size: session.number.into(), address: 16, ..event });
                    written[(session.number - first.number) as usize] += 1;
                }
                written
            });
            let again = spawn(move || {
                end();
                begin(spools[1], process::task(), 2).unwrap();
            });
            let written = hooks.join().unwrap();
            again.join().unwrap();
            for ((spool, written), number) in spools.into_iter().zip(written).zip(u64::from(first.number)..) {
                let events = events(spool, 0);
                assert!(events.iter().all(|event| event.size == number), "{events:?}");
                let ended = number == u64::from(first.number);
                // If the session ended in the middle of a hook, the events that are in no spool came after its end.
                assert!(events.len() == written || ended && events.len() < written, "{written} {events:?}");
                assert_eq!(spool.header().dropped.load(Ordering::Relaxed), 0);
            }
        });
    }
}
