//! The key that makes a function of the recorder run at the end of each thread that armed it.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

use super::thread_state::nested;

/// The key plus 1, or 0 before the key exists.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Creates the key, whose destructor is `on_exit`.
pub(crate) fn create(on_exit: unsafe extern "C" fn(*mut c_void)) {
    let mut key = 0;
    // SAFETY: a place for the key, and a destructor that touches nothing of ours that could be gone.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(on_exit)) } == 0 {
        KEY.store(key.wrapping_add(1), Ordering::Release);
    }
}

/// Arranges for the destructor to run at the end of the calling thread. Returns `false` if that is impossible.
pub(crate) fn arm() -> bool {
    match KEY.load(Ordering::Acquire).checked_sub(1) {
        None => false,
        // SAFETY: a key that was created. The value is only ever compared with null.
        Some(key) => nested(|| unsafe { libc::pthread_setspecific(key, (&raw const KEY).cast()) == 0 }),
    }
}
