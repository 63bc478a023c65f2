//! Threads: recording that they end.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

use super::begin::session;
use crate::event::{Flags, Kind};
use crate::preload::platform::thread_state::{self, nested};
use crate::preload::spool::push;

/// The key whose destructor runs when a thread ends, plus 1; 0 before there is one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Creates the key.
pub(crate) fn create_key() {
    let mut key = 0;
    // SAFETY: a place for the key, and a destructor that touches nothing of ours that could be gone.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(on_exit)) } == 0 {
        KEY.store(key.wrapping_add(1), Ordering::Release);
    }
}

/// Has [`on_exit`] run at the end of the calling thread; `false` if that cannot be had.
pub(crate) fn arm() -> bool {
    match KEY.load(Ordering::Acquire).checked_sub(1) {
        None => false,
        // SAFETY: a key that was made. The value is only ever compared with null.
        Some(key) => nested(|| unsafe { libc::pthread_setspecific(key, (&raw const KEY).cast()) == 0 }),
    }
}

/// Other keys' destructors free memory, in an order that nobody knows: so this one asks to be called
/// again as long as the system promises to (4 rounds), and records the end in the last.
unsafe extern "C" fn on_exit(_: *mut c_void) {
    const ROUNDS: u32 = 4;
    let round = thread_state::current().exit_rounds.get() + 1;
    thread_state::current().exit_rounds.set(round);
    if round < ROUNDS && arm() {
        return;
    }
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
