//! The entry point through which an instrumented program obtains its counters.

use core::sync::atomic::Ordering;

use super::interface::{INTERFACE, Interface};
use super::{blocks, shadow};
use crate::conditions::Conditions;
use crate::preload::platform::thread_state::nested;
use crate::preload::spool::session;

/// Returns the functions and the table that a program uses for counting, or null if stacks are not recorded or no
/// memory is available.
///
/// The number in the name increases with incompatible changes, so a program built by an older `hatf cc` does not find
/// the function and counts nothing.
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
