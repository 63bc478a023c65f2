//! The choice of calls: the first of the three steps of an event (see `events/record.rs`).

use super::call::{Call, ends_only};
use super::{by_thread, recorded_blocks, sample, switch};
use crate::conditions::Conditions;
use crate::event::Kind;
use crate::preload::platform::thread_state::ThreadState;
use crate::preload::spool::session::Session;

/// How a call is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// By its numbers.
    Numbers,
    /// With what is known of a block that it allocates: see `events/describe.rs`.
    Described,
}

/// Recording may be off.
const SWITCH: Conditions = Conditions(Conditions::OFF.0 | Conditions::CHANGE.0);
/// More than its numbers is recorded of a call that allocates.
const DESCRIBED: Conditions = Conditions(Conditions::STACKS.0 | Conditions::USABLE.0);

/// Returns whether recording is on, after doing what was asked for.
#[inline]
pub(crate) fn is_on(session: &Session, conditions: Conditions) -> bool {
    !conditions.has_any(SWITCH) || switch::is_on(session)
}

/// Returns how a call is recorded, where all are.
#[inline]
pub(crate) fn detail(conditions: Conditions, kind: Kind) -> Detail {
    if ends_only(kind) { Detail::Numbers } else { detail_of_block(conditions) }
}

/// Returns how a call that allocates is recorded.
#[inline]
fn detail_of_block(conditions: Conditions) -> Detail {
    if conditions.has_any(DESCRIBED) { Detail::Described } else { Detail::Numbers }
}

/// Returns whether calls of a kind are ever recorded where not all are: those that end blocks are not where only sizes are recorded.
#[inline]
pub(crate) fn may_be_chosen(conditions: Conditions, kind: Kind) -> bool {
    !(ends_only(kind) && conditions.has(Conditions::SIZES))
}

/// Chooses a call that [may be](may_be_chosen), and changes it to what of it is recorded: of a realloc each half is recorded as what it is by itself, as its
/// two blocks need not both be chosen. `None`: it is not recorded. `begun`: it is a realloc whose beginning was recorded.
#[inline]
pub(crate) fn choose(
    session: &Session,
    state: &ThreadState,
    kind: &mut Kind,
    call: &mut Call,
    begun: bool,
) -> Option<Detail> {
    // Blocks are not known where only sizes are recorded: what ends one is not recorded, and what begins one has no address.
    let sizes_only = session.conditions().has(Conditions::SIZES);
    let ends = if *kind == Kind::Free { call.address } else { call.old };
    let ended = begun || !sizes_only && ends != 0 && recorded_blocks::forget(ends);
    if ends_only(*kind) {
        return ended.then_some(Detail::Numbers);
    }
    let detail = detail_of_block(session.conditions());
    let failed = call.address == 0 && call.size != 0;
    if failed && call.old != 0 && !sizes_only {
        // Of a block that is not recorded, it is not recorded either that it could not be changed.
        return (ended && recorded_blocks::keep(call.old)).then_some(detail);
    }
    let begins = (call.address != 0 || failed)
        && is_chosen(session, state, call)
        && (call.address == 0 || sizes_only || recorded_blocks::keep(call.address));
    if begins {
        if sizes_only {
            // What the block really has is asked by its address, before that is left out.
            if detail == Detail::Numbers {
                *call = call.without_address();
            }
        } else if !ended {
            call.old = 0;
        }
        return Some(detail);
    }
    if !ended {
        return None;
    }
    let old = call.old;
    if begun {
        // Of one whose beginning is there the end has to be, too: the block has become nothing.
        *call = Call { old, ..Call::default() };
    } else {
        *kind = Kind::Free;
        *call = Call { address: old, ..Call::default() };
    }
    Some(Detail::Numbers)
}

/// Returns whether a call that allocates is recorded, or that failed to.
#[inline]
fn is_chosen(session: &Session, state: &ThreadState, call: &Call) -> bool {
    let conditions = session.conditions();
    // What costs least comes first. Of what is left out by name each byte has had the same chance as others, too.
    (!conditions.has(Conditions::ONLY_THREADS) || by_thread::is_thread(state))
        && (!conditions.has(Conditions::SAMPLE) || call.address != 0 && sample::chooses(session, state, call.size))
        && (!conditions.has(Conditions::ONLY_MODULES) || is_module(session))
}

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
use super::by_module::is_module;

/// Without stacks nobody knows which module makes a call.
#[cfg(not(all(feature = "preload", target_arch = "x86_64")))]
fn is_module(_: &Session) -> bool {
    false
}
