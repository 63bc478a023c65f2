//! The path of a call's event in three steps.
//!
//! A call is *chosen* (`choose/choice.rs`), which decides whether and how it is recorded. It is *described*
//! (`describe.rs`) by its size and addresses, its stack, and the usable size of its block. It is *pushed* into the
//! chunk of its thread (`spool/push.rs`). In the plain case, every call is recorded in a single slot, with only its
//! size and addresses; the code for that is inlined into each hook.

use core::ffi::c_void;

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
use super::changes::heed_injected;
use super::{changes, finish};
use crate::bell::Work;
use crate::clock::in_order;
use crate::conditions::Conditions;
use crate::event::{Kind, SpoolEvent};
use crate::preload::choose::call::{Begun, Block, Call, ends_only};
use crate::preload::choose::choice::{self, Detail};
use crate::preload::choose::sample;
use crate::preload::platform::thread_state::{ThreadState, current};
use crate::preload::session::begin::session;
use crate::preload::spool::push;
use crate::preload::spool::session::Session;

/// Conditions under which the use of a block is recorded when it ends.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
const USE: Conditions = Conditions(Conditions::ACCESSES.0 | Conditions::LARGE.0);
/// Conditions under which the start of a realloc has an effect.
const REALLOC: Conditions = Conditions(Conditions::THREADS.0 | Conditions::LARGE.0);

/// Records a call, if it is the program's own and the process is being recorded.
#[inline(always)]
pub(crate) fn call(kind: Kind, call: Call) {
    call_of(current(), kind, call);
}

/// Does the same as [`call`] for a caller that has looked up the calling thread's state.
#[inline(always)]
pub(crate) fn call_of(state: &ThreadState, kind: Kind, call: Call) {
    record(state, kind, call, Block::Other, false);
}

/// Records a call to an underlying function that returned `block`.
#[inline(always)]
pub(crate) fn allocation(state: &ThreadState, kind: Kind, block: *mut c_void, size: usize, extra: usize) {
    record(state, kind, Call { size, address: block as usize, extra, ..Call::default() }, Block::Malloc, false);
}

/// Records that a realloc is about to run in a multi-threaded program.
#[inline]
pub(crate) fn realloc_begins(old: *mut c_void, size: usize) -> Begun {
    let Some(session) = session().filter(|_| !old.is_null()) else { return Begun::No };
    let conditions = session.conditions();
    if !choice::is_on(session, conditions) {
        return Begun::Off;
    }
    if !conditions.has_any(REALLOC) {
        return Begun::No;
    }
    let call = Call { size, old: old as usize, ..Call::default() };
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    if conditions.has(Conditions::LARGE) {
        crate::preload::choose::large_blocks::forget(call.old);
    }
    match conditions.has(Conditions::THREADS) {
        false => Begun::No,
        true if record(current(), Kind::ReallocBegin, call, Block::Other, false) => Begun::Recorded,
        // Recording has just stopped, or the call is nested, in which case its end is nested, too.
        true => Begun::Off,
    }
}

/// Records that a realloc has returned. If its start was recorded, the end is always recorded as well. If it began
/// while recording was off, the old block is unknown.
#[inline]
pub(crate) fn realloc_ends(state: &ThreadState, kind: Kind, mut call: Call, block: Block, begun: Begun) {
    if begun == Begun::Off {
        call.old = 0;
    }
    record(state, kind, call, block, begun == Begun::Recorded);
}

/// Records a mark, or the start or end of a phase.
pub(crate) fn mark(kind: Kind, name: &[u8]) {
    let Some(session) = session() else { return };
    if choice::is_on(session, session.conditions()) {
        let event = SpoolEvent::new(kind, push::thread_number(session), session.clock.now());
        push::event(session, event, name);
    }
}

/// Records a call. If its start was recorded (`begun`), records it even while recording is off. Returns whether it was
/// recorded.
#[inline(always)]
fn record(state: &ThreadState, kind: Kind, call: Call, block: Block, begun: bool) -> bool {
    if state.is_nested() {
        if !ends_only(kind) {
            sample::skip(state, call.size);
        }
        return false;
    }
    let Some(session) = session() else { return false };
    let conditions = session.conditions();
    // In the plain case, this comparison is the only check.
    if conditions != Conditions(0) {
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        if conditions.has(Conditions::INJECTED) {
            heed_injected(session, state);
        }
        if conditions.has(Conditions::THREADS) {
            in_order();
        }
        if !choice::is_on(session, conditions) && !begun {
            return false;
        }
        changes::record(session, state, conditions);
        if conditions.has_any(Conditions::PART) {
            return choice::may_be_chosen(conditions, kind)
                && record_part(session, state, kind, call.copied(), block, begun);
        }
        record_use(session, conditions, kind, &call);
        if choice::detail(conditions, kind) == Detail::Described {
            note_large(session, &call);
            finish::allocation(session, state, kind, call.copied(), block);
            return true;
        }
    }
    if kind.has_numbers() {
        finish::numbers(session, state, kind, call);
    } else if !push::in_one_slot(session, state, kind, call.size as u64, call.address as u64) {
        finish::numbers(session, state, kind, call.copied());
    }
    true
}

/// Records a call if it is chosen, for recordings that do not include all calls. Returns whether it was chosen.
#[inline(never)]
fn record_part(
    session: &Session,
    state: &ThreadState,
    mut kind: Kind,
    mut call: Call,
    block: Block,
    begun: bool,
) -> bool {
    let called = kind;
    let Some(detail) = choice::choose(session, state, &mut kind, &mut call, begun) else { return false };
    record_use(session, session.conditions(), called, &call);
    match detail {
        Detail::Numbers => finish::numbers(session, state, kind, call),
        Detail::Described => {
            note_large(session, &call);
            finish::allocation(session, state, kind, call, block);
        }
    }
    // `hatf` also looks by itself from time to time, so this needs no fence.
    if session.spool.header().is_asleep(Work::Events) {
        session.spool.header().ring(Work::Events);
    }
    true
}

/// Notes a call that may have returned a large block, so that its untouched pages are counted when it ends.
#[inline]
fn note_large(session: &Session, call: &Call) {
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    if call.size >= crate::preload::choose::large_blocks::LEAST {
        super::untouched::note(session, call.address, call.size);
    }
    #[cfg(not(all(feature = "preload", target_arch = "x86_64")))]
    let _ = (session, call);
}

/// Records the access counts and the untouched pages of a block that a call is about to free.
#[inline]
fn record_use(session: &Session, conditions: Conditions, kind: Kind, call: &Call) {
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    if conditions.has_any(USE) && kind == Kind::Free {
        if conditions.has(Conditions::LARGE) {
            super::untouched::tell(session, call.address);
        }
        if conditions.has(Conditions::ACCESSES) {
            crate::preload::accesses::tell::tell(session, call.address);
        }
    }
    #[cfg(not(all(feature = "preload", target_arch = "x86_64")))]
    let _ = (session, conditions, kind, call);
}
