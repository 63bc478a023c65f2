//! Where a program asks for what it counts by.

use core::sync::atomic::Ordering;

use super::interface::{INTERFACE, Interface};
use super::{blocks, shadow};
use crate::conditions::Conditions;
use crate::preload::platform::thread_state::nested;
use crate::preload::spool::session;

/// Returns the functions and the table that a program counts by; null where the process is not recorded with stacks, or there is no memory.
///
/// Its number goes up with what they are: a program of an older `hatf cc` finds none, and counts nothing.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_accesses_2() -> *const Interface {
    let Some(session) = session::current().filter(|session| session.conditions().has(Conditions::STACKS)) else {
        return core::ptr::null();
    };
    nested(|| {
        let Some(regions) = shadow::begin() else { return core::ptr::null() };
        blocks::begin();
        session.spool.header().set(Conditions::ACCESSES);
        INTERFACE.regions.store(regions, Ordering::Release);
        &raw const INTERFACE
    })
}
