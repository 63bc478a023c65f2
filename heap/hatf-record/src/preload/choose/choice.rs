//! The selection of calls to record, the first of the three steps of recording an event (see `events/record.rs`).

use super::call::{Call, ends_only};
use super::{by_thread, recorded_blocks, sample, switch};
use crate::conditions::Conditions;
use crate::event::Kind;
use crate::preload::platform::thread_state::ThreadState;
use crate::preload::spool::session::Session;

/// The level of detail of a recorded call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Only the call's size, addresses and flags are recorded.
    Numbers,
    /// The call's stack and the block's usable size are also recorded, if requested. See `events/describe.rs`.
    Described,
}

/// Conditions under which recording may be off, or `hatf` must be woken.
const SWITCH: Conditions = Conditions(Conditions::OFF.0 | Conditions::CHANGE.0 | Conditions::BELL.0);
/// Conditions under which allocating calls are described.
const DESCRIBED: Conditions = Conditions(Conditions::STACKS.0 | Conditions::USABLE.0);

/// Returns whether recording is on, after performing a pending request. If so, wakes `hatf`.
#[inline]
pub(crate) fn is_on(session: &Session, conditions: Conditions) -> bool {
    !conditions.has_any(SWITCH) || switch::is_on(session)
}

/// Returns the level of detail of a call if all calls are recorded.
#[inline]
pub(crate) fn detail(conditions: Conditions, kind: Kind) -> Detail {
    if ends_only(kind) { Detail::Numbers } else { detail_of_block(conditions) }
}

/// Returns the level of detail of an allocating call.
#[inline]
fn detail_of_block(conditions: Conditions) -> Detail {
    if conditions.has_any(DESCRIBED) { Detail::Described } else { Detail::Numbers }
}

/// Returns whether calls of this kind can be recorded if not all calls are recorded. Calls that end blocks are not
/// recorded if only sizes are recorded.
#[inline]
pub(crate) fn may_be_chosen(conditions: Conditions, kind: Kind) -> bool {
    !(ends_only(kind) && conditions.has(Conditions::SIZES))
}

/// Chooses a call for which [`may_be_chosen`] returned `true`, and reduces the call to the part to record. Each half of
/// a realloc is recorded independently, because its two blocks need not both be chosen. Returns `None` if the call is
/// not recorded. `begun` means that the call is a realloc whose start was recorded.
#[inline]
pub(crate) fn choose(
    session: &Session,
    state: &ThreadState,
    kind: &mut Kind,
    call: &mut Call,
    begun: bool,
) -> Option<Detail> {
    // If only sizes are recorded, blocks are unknown: their ends are not recorded, and their starts have no address.
    let sizes_only = session.conditions().has(Conditions::SIZES);
    let ends = if *kind == Kind::Free { call.address } else { call.old };
    let ended = begun || !sizes_only && ends != 0 && recorded_blocks::forget(ends);
    if ends_only(*kind) {
        return ended.then_some(Detail::Numbers);
    }
    // Every call counts, whether it succeeds or not, as in the short paths of hooks.
    let is_sample = session.conditions().has(Conditions::SAMPLE);
    let is_selected = !is_sample || sample::chooses(session, state, call.size) && call.address != 0;
    let detail = detail_of_block(session.conditions());
    let failed = call.address == 0 && call.size != 0;
    if failed && call.old != 0 && !sizes_only {
        // If a block is not recorded, a failure to resize it is not recorded either.
        return (ended && recorded_blocks::keep(call.old)).then_some(detail);
    }
    let begins = (call.address != 0 || failed)
        && is_selected
        && is_chosen(session, state)
        && (call.address == 0 || sizes_only || recorded_blocks::keep(call.address));
    if begins {
        if sizes_only {
            // The usable size is queried by the block's address before the address is removed.
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
        // If the start was recorded, the end must be recorded as well: the block has become nothing.
        *call = Call { old, ..Call::default() };
    } else {
        *kind = Kind::Free;
        *call = Call { address: old, ..Call::default() };
    }
    Some(Detail::Numbers)
}

/// Returns whether allocating calls of this thread and module are recorded. Excluding blocks by name does not change the
/// probability with which the bytes of the remaining blocks are sampled.
#[inline]
fn is_chosen(session: &Session, state: &ThreadState) -> bool {
    let conditions = session.conditions();
    (!conditions.has(Conditions::ONLY_THREADS) || by_thread::is_thread(state))
        && (!conditions.has(Conditions::ONLY_MODULES) || is_module(session))
}

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
use super::by_module::is_module;

/// Returns `false`: without stacks, the calling module is unknown.
#[cfg(not(all(feature = "preload", target_arch = "x86_64")))]
fn is_module(_: &Session) -> bool {
    false
}
