//! Whether recording is on: it is turned off and on by the program, by a signal, or by `hatf`, which sets a bit that the next hook sees.
//!
//! What is allocated while it is off is not known afterwards, and what ends meanwhile is not seen to end. So nothing from before counts when
//! it goes on: a reader of the trace begins with an empty heap at [`Kind::Start`].

use core::sync::atomic::{AtomicUsize, Ordering};

use super::recorded_blocks;
use crate::clock::in_order;
use crate::conditions::Conditions;
use crate::event::{Kind, SpoolEvent};
use crate::preload::platform::thread_state;
use crate::preload::spool::push;
use crate::preload::spool::session::Session;

/// The thread that turns recording off or on, by the address of its state; 0: none does. There is one at a time: if a start of one thread were in
/// the middle of a stop of another, the trace would say that recording is off where it is on, or the reverse.
static CHANGING: AtomicUsize = AtomicUsize::new(0);

/// Returns whether recording is on, after doing what was asked for.
#[cold]
pub(crate) fn is_on(session: &Session) -> bool {
    if session.conditions().has(Conditions::CHANGE) {
        change(session);
    }
    !session.conditions().has(Conditions::OFF)
}

/// Does what was asked for by [`crate::Header::ask`], unless another thread, or the code that this signal handler has interrupted, is about to.
#[cold]
pub(crate) fn change(session: &Session) {
    let header = session.spool.header();
    // First: a question that comes now sets it again.
    header.clear(Conditions::CHANGE);
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
        CHANGING.store(0, Ordering::SeqCst);
        // Who has asked meanwhile has left it to this thread.
        if header.off.load(Ordering::SeqCst) == off {
            return;
        }
    }
}

/// Notes that the calling thread has jumped out of what it was in the middle of.
pub(crate) fn leave() {
    let me = core::ptr::from_ref(thread_state::current()) as usize;
    let _ = CHANGING.compare_exchange(me, 0, Ordering::SeqCst, Ordering::Relaxed);
}

/// Notes that this is a forked child, which has none of the threads of its parent.
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
    // Stamped and written before another thread can record a call.
    record(session, Kind::Start);
    header.clear(Conditions::OFF);
}

fn record(session: &Session, kind: Kind) {
    if session.conditions().has(Conditions::THREADS) {
        in_order();
    }
    push::numbers(session, &SpoolEvent::new(kind, push::thread_number(session), session.clock.now()));
}
