//! The functions called by an instrumented program.

use core::sync::atomic::{AtomicPtr, AtomicU64};

use super::known::module;
use super::{reach, shadow};
use crate::conditions::Conditions;
use crate::event::{Kind, SpoolEvent};
use crate::preload::spool::push;
use crate::preload::spool::session;

/// The interface that the program calls: `struct hatf_accesses` in `src/cc/access.c` of `hatf-host`.
#[repr(C)]
pub(crate) struct Interface {
    pub(super) regions: AtomicPtr<shadow::Entry>,
    reach: unsafe extern "C" fn(*const usize, usize, i32),
    module: extern "C" fn(usize, usize, usize, usize),
    enter: extern "C" fn(usize),
    leave: extern "C" fn(),
    /// The time of the last recorded call, which accesses store: nanoseconds of `CLOCK_MONOTONIC`.
    pub(super) now: AtomicU64,
}

pub(super) static INTERFACE: Interface = Interface {
    regions: AtomicPtr::new(core::ptr::null_mut()),
    reach: reach::reach,
    module,
    enter,
    leave,
    now: AtomicU64::new(0),
};

extern "C" fn enter(function: usize) {
    function_event(Kind::Enter, function);
}

extern "C" fn leave() {
    function_event(Kind::Leave, 0);
}

/// Records the start or end of a function.
fn function_event(kind: Kind, function: usize) {
    let Some(session) = session::current().filter(|session| !session.conditions().has(Conditions::OFF)) else { return };
    let thread = push::thread_number(session);
    push::numbers(
        session,
        &SpoolEvent { address: function as u64, ..SpoolEvent::new(kind, thread, session.clock.now()) },
    );
}
