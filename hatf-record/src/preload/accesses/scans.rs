//! Scans of blocks, which do not end meanwhile.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::preload::platform::thread_state::current;

/// Threads that look at blocks.
static SCANS: AtomicU32 = AtomicU32::new(0);

/// Does something while no block ends.
pub(super) fn while_blocks_stay(run: impl FnOnce()) {
    let own = &current().scans;
    own.set(own.get() + 1);
    SCANS.fetch_add(1, Ordering::SeqCst);
    run();
    SCANS.fetch_sub(1, Ordering::SeqCst);
    own.set(own.get() - 1);
}

/// Forgets the scans of other threads, in a forked child, which has one thread.
pub(super) fn leave() {
    SCANS.store(current().scans.get(), Ordering::SeqCst);
}

/// Turns after which a waiting thread lets others run: one that was interrupted in a scan may wait for a processor.
const SPINS: u32 = 1000;
/// Turns that a signal handler waits at most.
const TURNS: u32 = 1_000_000;

/// Waits until no other thread looks at a block any more that is marked no longer, however long its scan is interrupted.
///
/// A signal handler that interrupted a scan of this thread does not wait for that, which goes on behind it. Nor does it wait for ever: the
/// handler of another thread may be waiting for this one. `false` then, or if this thread's own scan may look at the block: it must stay.
#[must_use]
pub(super) fn wait_for_scans() -> bool {
    let own = current().scans.get();
    let mut turns = 0;
    while SCANS.load(Ordering::SeqCst) > own {
        turns += 1;
        if own > 0 && turns > TURNS {
            return false;
        }
        if turns < SPINS {
            core::hint::spin_loop();
        } else {
            // SAFETY: a call without arguments.
            unsafe { libc::sched_yield() };
            turns = if own > 0 { turns } else { SPINS };
        }
    }
    own == 0
}
