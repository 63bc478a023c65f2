//! Recording the program's own calls.

use core::ffi::c_void;

use super::attach::session;
use super::session::Session;
use super::thread_state::{ThreadState, current, is_multithreaded};
use super::{push, sample};
use crate::clock::in_order;
use crate::event::{Event, Kind};

/// The numbers of a call, by their names in [`Event`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Call {
    pub(crate) size: usize,
    pub(crate) address: usize,
    pub(crate) old: usize,
    pub(crate) extra: usize,
}

/// Records a call, if it is the program's own and the process is recorded.
#[inline(always)]
pub(crate) fn call(kind: Kind, call: Call) {
    let state = current();
    if state.is_nested() {
        return;
    }
    let Some(session) = session() else { return };
    if is_multithreaded() {
        in_order();
    }
    if sample::is_on() {
        sampled(session, state, kind, call);
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if super::stack::is_on() && !matches!(kind, Kind::Free | Kind::ReallocBegin) {
        with_stack(session, state, kind, call);
        return;
    }
    // SAFETY: the spool stays mapped. A thread without a chunk has no room in it, and gets its number with the first.
    let put = !kind.has_numbers()
        && unsafe { state.producer.put(session.clock, kind, call.size as u64, call.address as u64) };
    if !put {
        slowly(session, state, kind, call);
    }
}

#[inline(never)]
fn slowly(session: &Session, state: &ThreadState, kind: Kind, call: Call) {
    push::numbers(session, &event(session, state, kind, call));
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn with_stack(session: &Session, state: &ThreadState, kind: Kind, call: Call) {
    let stack = super::stack::capture(session);
    push::with_stack(session, &event(session, state, kind, call), stack);
}

/// Records a call of which only chosen blocks count: where its block is chosen, and where it ends one that was.
#[inline(never)]
fn sampled(session: &Session, state: &ThreadState, kind: Kind, call: Call) {
    let ends = match kind {
        Kind::Free => call.address,
        Kind::ReallocBegin => call.old,
        // One that failed has ended nothing.
        _ if call.address == 0 && call.size != 0 => return,
        _ => call.old,
    };
    // Each half of a realloc is recorded as what it is by itself: its two blocks need not both be chosen.
    if ends != 0 && sample::forget(ends) {
        slowly(session, state, Kind::Free, Call { address: ends, ..Call::default() });
    }
    let begins = !matches!(kind, Kind::Free | Kind::ReallocBegin) && call.address != 0;
    if !begins || !sample::chooses(session, state, call.size) || !sample::keep(call.address) {
        return;
    }
    let call = Call { old: 0, ..call };
    #[cfg(target_arch = "x86_64")]
    if super::stack::is_on() {
        with_stack(session, state, kind, call);
        return;
    }
    slowly(session, state, kind, call);
}

/// Makes an event of a call, which is stamped now.
fn event(session: &Session, state: &ThreadState, kind: Kind, call: Call) -> Event {
    Event {
        size: call.size as u64,
        address: call.address as u64,
        old: call.old as u64,
        extra: call.extra as u64,
        ..Event::new(kind, state.id.get(), session.clock.now())
    }
}

/// Records a call that returned `block`.
#[inline(always)]
pub(crate) fn allocation(kind: Kind, block: *mut c_void, size: usize, extra: usize) {
    call(kind, Call { size, address: block as usize, old: 0, extra });
}

/// Records a mark, or the begin or end of a phase.
pub(crate) fn mark(kind: Kind, name: &[u8]) {
    if let Some(session) = session() {
        let event = Event::new(kind, push::thread_number(session), session.clock.now());
        push::event(session, event, name);
    }
}
