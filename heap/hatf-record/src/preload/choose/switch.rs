//! The state of recording: it is switched off and on by the program, by a signal, or by `hatf`, which sets a bit that
//! the next hook notices.
//!
//! Blocks allocated while recording is off are unknown afterwards, and the ends of blocks in the meantime are not
//! observed. Therefore earlier blocks no longer count when recording resumes: a reader of the trace starts with an
//! empty heap at [`Kind::Start`].

use core::sync::atomic::{AtomicUsize, Ordering};

use super::recorded_blocks;
use crate::bell::Work;
use crate::clock::in_order;
use crate::conditions::Conditions;
use crate::event::{Kind, SpoolEvent};
use crate::preload::platform::thread_state;
use crate::preload::spool::push;
use crate::preload::spool::session::Session;

/// The thread that is switching recording off or on, identified by the address of its state, or 0 if there is none.
/// Only one thread does so at a time: if one thread started recording while another was stopping it, the trace could
/// indicate that recording is off while it is on, or vice versa.
static CHANGING: AtomicUsize = AtomicUsize::new(0);

/// Recording is off, and the events say so.
const STOPPED: Conditions = Conditions(Conditions::OFF.0 | Conditions::STOPPED.0);

/// Returns whether recording is on, after performing a pending request. If so, wakes `hatf` if it sleeps, and the
/// caller's next stamp is later than that of the event that says so.
#[cold]
pub(crate) fn is_on(session: &Session) -> bool {
    if session.conditions().has(Conditions::CHANGE) {
        change(session);
    }
    let is_on = !session.conditions().has(Conditions::OFF);
    if is_on && session.conditions().has(Conditions::BELL) {
        session.spool.header().clear(Conditions::BELL);
        session.spool.header().ring(Work::Events);
    }
    in_order();
    is_on
}

/// Performs the requests made by [`crate::Header::ask`], unless another thread, or the code interrupted by this signal
/// handler, is already doing so.
#[cold]
pub(crate) fn change(session: &Session) {
    let header = session.spool.header();
    loop {
        let me = core::ptr::from_ref(thread_state::current()) as usize;
        if CHANGING.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return;
        }
        // This must come first: a request made after this sets the bit again.
        header.clear(Conditions::CHANGE);
        let off = header.off.load(Ordering::SeqCst) != 0;
        // Even if the latest request is to start, a hook may have found that recording is off.
        if off || header.conditions().has(Conditions::OFF) {
            stop(session);
        }
        if !off {
            start(session);
        }
        CHANGING.store(0, Ordering::SeqCst);
        // Requests made in the meantime were left to this thread.
        if !header.conditions().has(Conditions::CHANGE) {
            return;
        }
    }
}

/// Ends an unfinished switch that the calling thread has jumped out of.
pub(crate) fn leave() {
    let me = core::ptr::from_ref(thread_state::current()) as usize;
    let _ = CHANGING.compare_exchange(me, 0, Ordering::SeqCst, Ordering::Relaxed);
}

/// Resets the state in a forked child, which does not inherit its parent's other threads.
pub(crate) fn leave_process() {
    CHANGING.store(0, Ordering::SeqCst);
}

fn stop(session: &Session) {
    if !session.spool.header().set(STOPPED).has(Conditions::STOPPED) {
        record(session, Kind::Stop);
    }
}

fn start(session: &Session) {
    let header = session.spool.header();
    if !header.conditions().has(Conditions::STOPPED) {
        return;
    }
    if header.conditions().has_any(Conditions::PART) {
        recorded_blocks::forget_all();
    }
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    super::large_blocks::forget_all();
    // The event is stamped and written before another thread can record a call.
    record(session, Kind::Start);
    // If there is another request by now, which may be one to stop, recording remains off until it is performed.
    header.update(|now| now & !if Conditions(now).has(Conditions::CHANGE) { Conditions::STOPPED.0 } else { STOPPED.0 });
}

fn record(session: &Session, kind: Kind) {
    if session.conditions().has(Conditions::THREADS) {
        in_order();
    }
    push::numbers(session, &SpoolEvent::new(kind, push::thread_number(session), session.clock.now()));
    session.spool.header().ring(Work::Events);
}

#[cfg(all(loom, test))]
mod models {
    use super::*;
    use crate::clock::Clock;
    use crate::models::{alone, events, share, spool};
    use crate::preload::platform::process;
    use crate::preload::spool::session;
    use crate::reasons::WhenFull;
    use crate::sync::model::{Share as _, model, spawn};

    /// Begins a session in a spool of two chunks, with a request to stop or start.
    fn begin(off: bool) -> &'static Session {
        let spool = spool(2);
        let header = spool.header();
        assert!(spool.make_ready(0) && spool.make_ready(1));
        header.clock.store(Clock::Monotonic as u32, Ordering::Relaxed);
        header.when_full.store(WhenFull::Drop as u32, Ordering::Relaxed);
        header.ask(off);
        session::begin(spool, process::task(), 2).unwrap();
        session::current().unwrap()
    }

    fn share_all(session: &Session) {
        let header = session.spool.header();
        share(session.spool);
        header.conditions.share();
        header.off.share();
    }

    /// While a request to stop is pending or being performed, no thread finds recording on.
    #[test]
    fn no_thread_records_during_a_stop() {
        let _alone = alone();
        let session = begin(true);
        model(3, move || {
            share_all(session);
            let hooks = [(); 2].map(|()| spawn(move || is_on(session)));
            for hook in hooks {
                assert!(!hook.join().unwrap(), "a request to stop is pending");
            }
            assert!(session.conditions().has(Conditions::OFF));
        });
    }

    /// If a hook finds recording off, the events say so, even if a request to start follows immediately.
    #[test]
    fn what_a_hook_finds_is_recorded() {
        let _alone = alone();
        let session = begin(false);
        let ask = move |off| {
            session.spool.header().ask(off);
            change(session);
        };
        model(3, move || {
            share_all(session);
            let other = spawn(move || ask(false));
            ask(true);
            // The other thread may have asked for a start after that.
            let was_off = !is_on(session);
            ask(false);
            other.join().unwrap();
            assert!(is_on(session), "the last request was to start");
            let mut events = (0..2).flat_map(|chunk| events(session.spool, chunk));
            assert!(!was_off || events.any(|event| event.kind == Kind::Stop));
        });
    }
}
