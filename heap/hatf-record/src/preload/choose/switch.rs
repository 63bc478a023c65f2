//! The state of recording: it is switched off and on by the program, by a signal, or by `hatf`, which sets a bit that
//! the next hook notices.
//!
//! Blocks allocated while recording is off are unknown afterwards, and the ends of blocks in the meantime are not
//! observed. Therefore earlier blocks no longer count when recording resumes: a reader of the trace starts with an
//! empty heap at [`Kind::Start`].

use core::sync::atomic::{AtomicUsize, Ordering};

use super::recorded_blocks;
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

/// Returns whether recording is on, after performing a pending request.
#[cold]
pub(crate) fn is_on(session: &Session) -> bool {
    let header = session.spool.header();
    if header.conditions().has(Conditions::CHANGE) {
        change(session);
    }
    let conditions = header.conditions();
    // Another thread may be in the middle of stopping.
    let stops = conditions.has(Conditions::CHANGE) && header.off.load(Ordering::SeqCst) != 0;
    !stops && !conditions.has(Conditions::OFF)
}

/// Performs the request made by [`crate::Header::ask`], unless another thread, or the code interrupted by this signal
/// handler, is already doing so.
#[cold]
pub(crate) fn change(session: &Session) {
    let header = session.spool.header();
    loop {
        let me = core::ptr::from_ref(thread_state::current()) as usize;
        if CHANGING.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return;
        }
        let off = header.off.load(Ordering::SeqCst);
        if off != 0 {
            stop(session);
        } else {
            start(session);
        }
        // The bit is cleared last, because a thread that finds neither bit records its calls.
        header.clear(Conditions::CHANGE);
        CHANGING.store(0, Ordering::SeqCst);
        // Requests made in the meantime were left to this thread.
        if header.off.load(Ordering::SeqCst) == off {
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
    if !session.spool.header().set(Conditions::OFF).has(Conditions::OFF) {
        record(session, Kind::Stop);
    }
}

fn start(session: &Session) {
    let header = session.spool.header();
    let conditions = header.conditions();
    if !conditions.has(Conditions::OFF) {
        return;
    }
    if conditions.has_any(Conditions::PART) {
        recorded_blocks::forget_all();
    }
    // The event is stamped and written before another thread can record a call.
    record(session, Kind::Start);
    header.clear(Conditions::OFF);
}

fn record(session: &Session, kind: Kind) {
    if session.conditions().has(Conditions::THREADS) {
        in_order();
    }
    push::numbers(session, &SpoolEvent::new(kind, push::thread_number(session), session.clock.now()));
}

#[cfg(all(loom, test))]
mod models {
    use super::*;
    use crate::clock::Clock;
    use crate::models::{alone, share, spool};
    use crate::preload::platform::process;
    use crate::preload::spool::session;
    use crate::reasons::WhenFull;
    use crate::sync::model::{Share as _, model, spawn};

    /// While a request to stop is pending or being performed, no thread finds recording on.
    #[test]
    fn no_thread_records_during_a_stop() {
        let _alone = alone();
        let spool = spool(1);
        assert!(spool.make_ready(0));
        let header = spool.header();
        header.clock.store(Clock::Monotonic as u32, Ordering::Relaxed);
        header.when_full.store(WhenFull::Drop as u32, Ordering::Relaxed);
        header.ask(true);
        session::begin(spool, process::task(), 1).unwrap();
        let session = session::current().unwrap();
        model(3, move || {
            share(spool);
            header.conditions.share();
            header.off.share();
            let hooks = [(); 2].map(|()| spawn(move || is_on(session)));
            for hook in hooks {
                assert!(!hook.join().unwrap(), "a request to stop is pending");
            }
            assert!(header.conditions().has(Conditions::OFF));
        });
    }
}
