//! Sampling by bytes: each allocated byte has the same small probability of selecting its block.
//!
//! The number of bytes until a thread's next selection is drawn from an exponential distribution, so a block of `s`
//! bytes is selected with probability `1 - exp(-s / mean)`, independently of previous allocations. A reader of the
//! trace weights the block by the inverse of this probability, which makes the estimate unbiased. The end of a selected
//! block is recorded as well: see `recorded_blocks.rs`.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::preload::platform::thread_state::ThreadState;
use crate::preload::spool::session::Session;

/// The mean number of bytes between two selections.
static MEAN: AtomicU64 = AtomicU64::new(0);

/// Starts sampling.
pub(crate) fn begin(mean: u64) {
    MEAN.store(mean, Ordering::Relaxed);
}

/// Returns whether the thread's next block, of this many bytes, is selected.
#[inline]
pub(crate) fn chooses(session: &Session, state: &ThreadState, size: usize) -> bool {
    if state.random.get() == 0 {
        begin_thread(session, state);
    }
    count(state, size)
}

/// Counts the bytes of a nested call, whose block is not recorded even if it is selected. A hook's short path counts
/// calls without determining whether they are nested. Nested bytes that always count leave the distribution unchanged.
#[inline]
pub(crate) fn skip(state: &ThreadState, size: usize) {
    if state.until_sample.get() != 0 {
        let _ = count(state, size);
    }
}

/// Counts the bytes of a block. Returns whether the block is selected.
#[inline(never)]
fn count(state: &ThreadState, size: usize) -> bool {
    // An empty block has the same probability as a block of one byte.
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

/// Draws from the exponential distribution using comparisons alone (J. von Neumann, Various techniques used in
/// connection with random digits, 1951).
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
