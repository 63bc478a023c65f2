//! Determines whether the calling thread is one of the threads to which recording is restricted.
//!
//! A thread is identified by its name at the time of the allocation. The result is cached in the thread's state until
//! any thread is renamed.

use core::sync::atomic::{AtomicU32, Ordering};

use super::name_list::{THREADS, has};
use crate::preload::platform::thread_name;
use crate::preload::platform::thread_state::ThreadState;

/// A counter that is incremented when thread names may have changed. Bit 0 is reserved for the cached result.
static NAMED: AtomicU32 = AtomicU32::new(2);

/// Records that a thread may have a different name now.
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
