//! The second and third steps of recording an event: a chosen call is described and pushed.

use super::describe;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
use crate::conditions::Conditions;
use crate::event::Kind;
use crate::preload::choose::call::{Block, Call};
use crate::preload::platform::thread_state::ThreadState;
use crate::preload::spool::push;
use crate::preload::spool::session::Session;

/// Records a call with only its size, addresses and extra value.
#[inline(never)]
pub(super) fn numbers(session: &Session, state: &ThreadState, kind: Kind, call: Call) {
    push::numbers(session, &describe::numbers(session, state, kind, call));
}

/// Records an allocating call with the description of its block.
#[inline(never)]
pub(super) fn allocation(session: &Session, state: &ThreadState, kind: Kind, call: Call, block: Block) {
    let event = describe::allocation(session, state, kind, call, block);
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    let conditions = session.conditions();
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    if conditions.has(Conditions::ACCESSES) && !conditions.has(Conditions::SIZES) {
        crate::preload::accesses::known::note_block(call.address, event.about.stack);
    }
    push::with_about(session, &event);
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    if conditions.has(Conditions::ACCESSES) {
        crate::preload::accesses::tell::note_time();
    }
}
