//! Whether the calling thread is one of those whose blocks alone are recorded.
//!
//! A thread goes by the name that it has when it allocates. What a thread finds out of its own is kept in its state, until it or another is
//! named again.

use core::sync::atomic::{AtomicU32, Ordering};

use super::name_list::{THREADS, has};
use crate::preload::platform::thread_name;
use crate::preload::platform::thread_state::ThreadState;

/// Goes up when threads may have other names. Bit 0 is of the answer beside it.
static NAMED: AtomicU32 = AtomicU32::new(2);

/// Notes that a thread may have another name now.
pub(crate) fn names_changed() {
    NAMED.fetch_add(2, Ordering::AcqRel);
}

/// Returns whether blocks of the calling thread are recorded.
#[inline]
pub(crate) fn is_thread(state: &ThreadState) -> bool {
    let (known, named) = (state.is_named.get(), NAMED.load(Ordering::Acquire));
    if known & !1 == named { known & 1 != 0 } else { find_out(state, named) }
}

#[cold]
fn find_out(state: &ThreadState, named: u32) -> bool {
    let mut name = [0; thread_name::BYTES];
    let wanted = thread_name::own(&mut name).is_some_and(|name| has(&THREADS, name, thread_name::BYTES - 1));
    state.is_named.set(named | u32::from(wanted));
    wanted
}
