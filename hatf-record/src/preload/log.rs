//! Recording the program's own calls.

use core::ffi::c_void;

use super::attach::session;
use super::session::Session;
use super::thread_state::{ThreadState, current};
use super::{control, push, sample};
use crate::clock::in_order;
use crate::conditions::Conditions;
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
    record(kind, call, false);
}

/// What is recorded of the beginning of a realloc.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Begun {
    /// Nothing: only programs with several threads need it.
    No,
    /// A [`Kind::ReallocBegin`].
    Recorded,
    /// Recording was off. Another thread may be given the old block, and record that, before the call returns.
    Off,
}

/// Records that a realloc is about to run in a program with several threads.
#[inline]
pub(crate) fn realloc_begins(old: *mut c_void, size: usize) -> Begun {
    let Some(session) = session().filter(|_| !old.is_null()) else { return Begun::No };
    let conditions = session.conditions();
    if conditions.0 & (Conditions::OFF.0 | Conditions::CHANGE.0) != 0 && !is_on(session) {
        return Begun::Off;
    }
    let call = Call { size, old: old as usize, ..Call::default() };
    match conditions.has(Conditions::THREADS) {
        false => Begun::No,
        true if record(Kind::ReallocBegin, call, false) => Begun::Recorded,
        // Recording has stopped at this moment, or the call is nested, and so is its end.
        true => Begun::Off,
    }
}

/// Records that a realloc has returned. One whose beginning was recorded gets its end, whatever happened meanwhile; of one that began
/// while recording was off the old block is not known.
#[inline]
pub(crate) fn realloc_ends(kind: Kind, call: Call, begun: Begun) {
    let old = if begun == Begun::Off { 0 } else { call.old };
    record(kind, Call { old, ..call }, begun == Begun::Recorded);
}

/// Records a call, also while recording is off if it is the end of one that has `begun`. Returns whether it did.
#[inline(always)]
fn record(kind: Kind, call: Call, begun: bool) -> bool {
    let state = current();
    if state.is_nested() {
        return false;
    }
    let Some(session) = session() else { return false };
    let conditions = session.conditions();
    // One comparison where nothing is unusual.
    if conditions != Conditions(0) {
        if conditions.has(Conditions::THREADS) {
            in_order();
        }
        if conditions.0 & (Conditions::OFF.0 | Conditions::CHANGE.0) != 0 && !is_on(session) && !begun {
            return false;
        }
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        if conditions.has(Conditions::ACCESSES) && kind == Kind::Free && !conditions.has(Conditions::SAMPLE) {
            super::accesses::tell(session, call.address);
        }
        if conditions.has(Conditions::SAMPLE) {
            sampled(session, state, kind, call);
            return true;
        }
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        if conditions.has(Conditions::STACKS) && !ends_only(kind) {
            with_stack(session, state, kind, call);
            return true;
        }
    }
    // SAFETY: the spool stays mapped. A thread without a chunk has no room in it, and gets its number with the first.
    let put = !kind.has_numbers()
        && unsafe { state.producer.put(session.clock, kind, call.size as u64, call.address as u64) };
    if !put {
        slowly(session, state, kind, call);
    }
    true
}

/// Does what was asked for, and returns whether recording is on.
#[cold]
fn is_on(session: &Session) -> bool {
    if session.conditions().has(Conditions::CHANGE) {
        control::change(session);
    }
    !session.conditions().has(Conditions::OFF)
}

fn ends_only(kind: Kind) -> bool {
    matches!(kind, Kind::Free | Kind::ReallocBegin)
}

#[inline(never)]
fn slowly(session: &Session, state: &ThreadState, kind: Kind, call: Call) {
    push::numbers(session, &event(session, state, kind, call));
}

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
#[inline(never)]
fn with_stack(session: &Session, state: &ThreadState, kind: Kind, call: Call) {
    let stack = super::stack::capture(session);
    if session.conditions().has(Conditions::ACCESSES) {
        super::accesses::allocated(call.address, stack);
    }
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
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        if kind == Kind::Free && session.conditions().has(Conditions::ACCESSES) {
            super::accesses::tell(session, ends);
        }
        slowly(session, state, Kind::Free, Call { address: ends, ..Call::default() });
    }
    let begins = !ends_only(kind) && call.address != 0;
    if !begins || !sample::chooses(session, state, call.size) || !sample::keep(call.address) {
        return;
    }
    let call = Call { old: 0, ..call };
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    if session.conditions().has(Conditions::STACKS) {
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
    let Some(session) = session() else { return };
    if is_on(session) {
        let event = Event::new(kind, push::thread_number(session), session.clock.now());
        push::event(session, event, name);
    }
}
