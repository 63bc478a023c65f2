//! The recording in progress.
//!
//! A forked child begins a session of its own, or none. It inherits everything here, and if a signal handler forked in the middle of a hook, the
//! rest of that hook as well. So `live` lies on a page that the kernel wipes in a child, however the child was made; all else
//! stays as it was, so that the rest of a hook finds no null pointers. `hooks/fork.rs` keeps that rest away from the spool.

use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use core::ptr::null_mut;

use super::reader::Stalled;
use super::{mapping, shrink};
use crate::clock::Clock;
use crate::conditions::Conditions;
use crate::preload::platform::memory;
use crate::preload::platform::permanent::{self, Pieces};
use crate::reasons::{Stop, WhenFull};
use crate::spool::Spool;

/// A recording in progress. Written once, and never freed.
#[derive(Clone, Copy)]
pub(crate) struct Session {
    /// Not 0 in the recorded process. The kernel wipes it in a forked child.
    live: &'static AtomicU32,
    /// The process of `hatf record`; 0: there is none.
    pub(super) recorder: u32,
    /// `hatf record` has started this process: it is its parent for as long as it lives.
    pub(super) is_child: bool,
    /// The number of this session among those of this process, from 1.
    pub(crate) number: u32,
    /// This process.
    pub(crate) process: u32,
    /// The number of its image, from 1.
    pub(crate) image: u32,
    /// The clock of stamps.
    pub(crate) clock: Clock,
    /// What to do where there is no chunk.
    pub(super) when_full: WhenFull,
    /// How long to wait for one, in nanoseconds.
    pub(super) patience: u64,
    /// Waiting was in vain: nobody waits until the reader has caught up.
    pub(super) stalled: &'static Stalled,
    /// Where events go.
    pub(crate) spool: Spool<'static>,
    /// Chunks of the spool that are mapped behind those: threads had them when the others were given up.
    behind: &'static [u32],
}

static SESSIONS: AtomicU32 = AtomicU32::new(0);

static SESSION: AtomicPtr<Session> = AtomicPtr::new(null_mut());

/// Returns the session, if this process is recorded.
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
        // SAFETY: a page of our own. Kernels before 4.14 refuse the advice: there the handler of `pthread_atfork` has to do.
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
    SESSION.store(place.cast_mut(), Ordering::Release);
    Some(())
}

/// A thread changes what is mapped of the spool.
static CHANGING: AtomicBool = AtomicBool::new(false);

/// Has the spool take this many bytes of address space at most, and what threads have of it.
pub(crate) fn shrink(bytes: usize) {
    if !CHANGING.swap(true, Ordering::Acquire) {
        shrink_to(bytes);
        CHANGING.store(false, Ordering::Release);
    }
}

fn shrink_to(bytes: usize) -> Option<()> {
    let session = current()?;
    let (smaller, behind) = shrink::take_out_of_use(&session.spool, session.behind, bytes)?;
    // A thread may be about to take a chunk by the session from before: those that are not mapped cannot be taken.
    begin_with(Session { spool: smaller, behind, ..*session })?;
    shrink::unmap_behind(&session.spool, &smaller, behind);
    Some(())
}

/// Stops recording in this process for good.
pub(crate) fn end() {
    if let Some(session) = current() {
        session.live.store(0, Ordering::Relaxed);
    }
}

/// Stops recording in this process for good, and says why.
pub(crate) fn stop(reason: Stop) {
    if let Some(session) = current() {
        session.spool.header().stopped.store(reason as u32, Ordering::Relaxed);
        end();
    }
}

/// Returns the spool of the session, whether that is live or not: in a forked child it is the parent's.
pub(crate) fn inherited() -> Option<Spool<'static>> {
    // SAFETY: as in `current`.
    unsafe { SESSION.load(Ordering::Acquire).as_ref() }.map(|session| session.spool)
}

/// Puts private zeros in place of that spool: who is in the middle of a hook writes there from now on. In a forked child, which has one thread.
pub(crate) fn leave_spool() {
    // What another thread of the parent was about to unmap is nothing that a hook writes to.
    CHANGING.store(false, Ordering::Relaxed);
    // SAFETY: as in `current`.
    if let Some(session) = unsafe { SESSION.load(Ordering::Acquire).as_ref() } {
        mapping::replace(&session.spool, session.behind);
    }
}

/// Does so in a process that may be recorded again, in the same place; `false` if it was not recorded.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) fn retire_spool() -> bool {
    // SAFETY: as in `current`.
    let Some(session) = (unsafe { SESSION.load(Ordering::Acquire).as_ref() }) else { return false };
    end();
    // A thread that changes the mapping is soon done.
    while CHANGING.swap(true, Ordering::Acquire) {
        // SAFETY: a call without arguments.
        unsafe { libc::sched_yield() };
    }
    // The session from before is the last that there was: it may be another by now.
    // SAFETY: as in `current`.
    let session = unsafe { SESSION.load(Ordering::Acquire).as_ref() }.unwrap_or(session);
    if !RETIRED.swap(true, Ordering::Relaxed) {
        mapping::retire(&session.spool, session.behind);
    }
    CHANGING.store(false, Ordering::Release);
    true
}

/// The spool of the last session is no longer mapped.
static RETIRED: AtomicBool = AtomicBool::new(false);

const PAGE: usize = 4096;

impl Session {
    /// Returns what a hook has to heed.
    #[inline]
    pub(crate) fn conditions(&self) -> Conditions {
        self.spool.header().conditions()
    }

    /// Notes that there is a second thread: from now on it may be given a block in the middle of a realloc.
    pub(crate) fn set_multithreaded(&self) {
        self.spool.header().set(Conditions::THREADS);
    }

    /// Returns whether this process is still recorded.
    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed) != 0
    }
}

#[cfg(all(loom, test))]
mod models {
    use super::*;
    use crate::event::{Kind, SpoolEvent};
    use crate::models::{events, share, spool};
    use crate::preload::platform::process;
    use crate::preload::spool::push;
    use crate::sync::model::{Share as _, model, spawn};

    /// A process that is recorded is recorded again, into another spool, while a thread is in its hooks: what the thread writes for a session is in
    /// the spool of that session, and once the new one has been seen nothing is of the one from before.
    #[test]
    fn a_new_session_has_no_chunk_of_the_one_before() {
        let spools = [spool(1), spool(1)];
        for spool in spools {
            assert!(spool.make_ready(0));
            spool.header().clock.store(Clock::Monotonic as u32, Ordering::Relaxed);
            spool.header().when_full.store(WhenFull::Drop as u32, Ordering::Relaxed);
        }
        begin(spools[0], process::task(), 1).unwrap();
        let first = current().unwrap();
        assert_eq!(first.number, 1);
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
                    assert!(!is_second || session.number == 2);
                    let event = SpoolEvent::new(Kind::Malloc, push::thread_number(session), 0);
                    push::numbers(session, &SpoolEvent { size: session.number.into(), address: 16, ..event });
                    written[session.number as usize - 1] += 1;
                }
                written
            });
            let again = spawn(move || {
                end();
                begin(spools[1], process::task(), 2).unwrap();
            });
            let written = hooks.join().unwrap();
            again.join().unwrap();
            for ((spool, written), number) in spools.into_iter().zip(written).zip(1..) {
                let events = events(spool, 0);
                assert!(events.iter().all(|event| event.size == number), "{events:?}");
                let ended = number == 1;
                // The session may have ended in the middle of a hook; what is in no spool then was after its end.
                assert!(events.len() == written || ended && events.len() < written, "{written} {events:?}");
                assert_eq!(spool.header().dropped.load(Ordering::Relaxed), 0);
            }
        });
    }
}
