//! Threads: records their ends.

use core::ffi::c_void;

use super::begin::session;
use crate::event::{Flags, Kind};
use crate::preload::platform::thread_key;
use crate::preload::platform::thread_state::{self, LAST_ROUND};
use crate::preload::spool::push;

/// Creates the key that records the end of a thread after the thread has [armed](thread_key::arm) it.
pub(crate) fn create_key() {
    thread_key::create(on_exit);
}

/// Records the end of a thread. The destructors of other keys free memory in an unknown order, so this destructor
/// re-arms itself for as long as the system guarantees to call it (4 rounds), and records the end in the last round.
unsafe extern "C" fn on_exit(_: *mut c_void) {
    let round = thread_state::current().exit_rounds.get() + 1;
    thread_state::current().exit_rounds.set(round);
    if round < LAST_ROUND && thread_key::arm() {
        return;
    }
    thread_state::current().exit_rounds.set(LAST_ROUND);
    record_end();
    crate::preload::platform::kept_pages::end(thread_state::current());
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    crate::preload::stacks::memo::Memo::end(thread_state::current());
}

fn record_end() {
    if let Some(session) = session() {
        push::thread_event(session, Kind::ThreadEnd, 0, Flags::default());
        session.leave_chunk(thread_state::current().producer.chunk());
    }
}
