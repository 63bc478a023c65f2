//! Scans of blocks. No block ends during a scan.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::preload::platform::thread_state::current;

/// The number of threads that are scanning blocks.
static SCANS: AtomicU32 = AtomicU32::new(0);

/// Runs a function while no block ends.
pub(super) fn while_blocks_stay(run: impl FnOnce()) {
    let own = &current().scans;
    own.set(own.get() + 1);
    SCANS.fetch_add(1, Ordering::SeqCst);
    run();
    SCANS.fetch_sub(1, Ordering::SeqCst);
    own.set(own.get() - 1);
}

/// Discards the scans of other threads in a forked child, which has only one thread.
pub(super) fn leave() {
    SCANS.store(current().scans.get(), Ordering::SeqCst);
}

/// The number of iterations after which a waiting thread yields: a thread interrupted in a scan may be waiting for a
/// CPU.
const SPINS: u32 = 1000;
/// The maximum number of iterations that a signal handler waits.
const TURNS: u32 = 1_000_000;

/// Waits until no other thread inspects a block that has been unmarked, even if its scan is interrupted for a long
/// time.
///
/// A signal handler that interrupted a scan in this thread does not wait for that scan, which continues after the
/// handler. The handler also does not wait forever, because a handler in another thread may be waiting for it. Returns
/// `false` in that case, or if this thread's own scan may inspect the block, which must therefore stay.
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
