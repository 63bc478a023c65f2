//! Sampling by bytes: of all bytes that are allocated each has the same small chance to choose its block.
//!
//! How many bytes a thread allocates up to the next choice is drawn from an exponential distribution, so a block of `s` bytes is chosen with
//! probability `1 - exp(-s / mean)`, whatever was allocated before it. Who reads the trace counts it as that many times more, and
//! the estimate has no bias. Of a chosen block the end is recorded, too: see `recorded_blocks.rs`.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::preload::platform::thread_state::ThreadState;
use crate::preload::spool::session::Session;

/// The mean number of bytes from one choice to the next.
static MEAN: AtomicU64 = AtomicU64::new(0);

/// Begins to sample.
pub(crate) fn begin(mean: u64) {
    MEAN.store(mean, Ordering::Relaxed);
}

/// Returns whether a thread's next block, of so many bytes, is chosen.
#[inline]
pub(crate) fn chooses(session: &Session, state: &ThreadState, size: usize) -> bool {
    if state.random.get() == 0 {
        begin_thread(session, state);
    }
    // A block of no bytes is as likely as one of one byte.
    let left = state.until_sample.get().saturating_sub(i64::try_from(size.max(1)).unwrap_or(i64::MAX));
    state.until_sample.set(if left <= 0 { draw(state) } else { left });
    left <= 0
}

#[cold]
fn begin_thread(session: &Session, state: &ThreadState) {
    let thread = crate::preload::spool::push::thread_number(session);
    state.random.set((session.clock.now() ^ u64::from(thread) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    state.until_sample.set(draw(state));
}

/// Draws from the exponential distribution by comparisons alone (J. von Neumann, Various techniques used in connection with random
/// digits, 1951).
fn draw(state: &ThreadState) -> i64 {
    let mean = MEAN.load(Ordering::Relaxed);
    let mut whole = 0_u64;
    loop {
        let first = random(state);
        let (mut last, mut descents) = (first, 1);
        loop {
            let next = random(state);
            if next >= last {
                break;
            }
            last = next;
            descents += 1;
        }
        if descents % 2 == 1 {
            let part = (u128::from(first) * u128::from(mean)) >> 64;
            let bytes = u128::from(whole) * u128::from(mean) + part + 1;
            return i64::try_from(bytes).unwrap_or(i64::MAX);
        }
        whole += 1;
    }
}

/// Returns the thread's next random number (xorshift64*, G. Marsaglia 2003 and S. Vigna 2016).
fn random(state: &ThreadState) -> u64 {
    let mut random = state.random.get();
    random ^= random >> 12;
    random ^= random << 25;
    random ^= random >> 27;
    state.random.set(random);
    random.wrapping_mul(0x2545_f491_4f6c_dd1d)
}
