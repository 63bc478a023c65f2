//! Sampling by bytes: of all bytes that are allocated each has the same small chance to choose its block.
//!
//! How many bytes a thread allocates up to the next choice is drawn from an exponential distribution, so a block of `s` bytes is chosen with
//! probability `1 - exp(-s / mean)`, whatever was allocated before it. Who reads the trace counts it as that many times more, and
//! the estimate has no bias. Of a chosen block the end is recorded, too: its address is kept in a table until then.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::memory;
use super::session::Session;
use super::thread_state::ThreadState;

/// Slots of a bucket: a cache line.
const SLOTS: usize = 8;
/// Buckets: memory for so many is present only where they are used.
const BUCKETS: usize = 1 << 15;
/// Buckets that are looked at for an address.
const TRIES: usize = 8;
/// In a bucket's first slot: an address of this bucket is in the next. Addresses of blocks are even.
const OVERFLOWED: usize = 1;

/// Addresses of chosen blocks that are live; 0 where there is none.
#[repr(align(64))]
struct Bucket([AtomicUsize; SLOTS]);

static TABLE: AtomicPtr<Bucket> = AtomicPtr::new(null_mut());
/// The mean number of bytes from one choice to the next.
static MEAN: AtomicU64 = AtomicU64::new(0);

/// Begins to sample; `None` where there is no memory for the table.
pub(crate) fn begin(mean: u64) -> Option<()> {
    if !TABLE.load(Ordering::Acquire).is_null() {
        // Of an earlier recording of this process.
        forget_all();
        MEAN.store(mean, Ordering::Relaxed);
        return Some(());
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a system call with valid arguments, whose result is checked. The mapping is never undone.
    let memory = unsafe { memory::map(null_mut(), BUCKETS * size_of::<Bucket>(), access, flags, -1, 0) };
    if memory == libc::MAP_FAILED {
        return None;
    }
    TABLE.store(memory.cast(), Ordering::Release);
    MEAN.store(mean, Ordering::Relaxed);
    Some(())
}

/// Forgets all blocks: they may have ended while nobody looked.
pub(crate) fn forget_all() {
    let table = TABLE.load(Ordering::Acquire);
    if !table.is_null() {
        // SAFETY: the mapping of `begin`, of private memory: all zeros after this.
        unsafe { memory::advise(table.cast(), BUCKETS * size_of::<Bucket>(), libc::MADV_DONTNEED) };
    }
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
    let thread = super::push::thread_number(session);
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

fn buckets(address: usize) -> impl Iterator<Item = &'static Bucket> {
    let hash = (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let first = usize::try_from(hash).unwrap_or_default();
    let table = TABLE.load(Ordering::Acquire);
    (0..TRIES).map_while(move |n| {
        // SAFETY: one of the table's buckets, which stay; all are zeros at first, and made of atomics.
        (!table.is_null()).then(|| unsafe { &*table.add((first + n) % BUCKETS) })
    })
}

/// Keeps the address of a block that was chosen; `false` where there is no room, and the block is not to be recorded.
pub(crate) fn keep(address: usize) -> bool {
    for Bucket(slots) in buckets(address) {
        for slot in slots {
            let keep = |now: usize| (now & !OVERFLOWED == 0).then_some(now | address);
            if slot.fetch_update(Ordering::AcqRel, Ordering::Relaxed, keep).is_ok() {
                return true;
            }
        }
        slots[0].fetch_or(OVERFLOWED, Ordering::AcqRel);
    }
    false
}

/// Forgets a block that is about to end; returns whether it was chosen.
#[inline]
pub(crate) fn forget(address: usize) -> bool {
    for Bucket(slots) in buckets(address) {
        for slot in slots {
            let now = slot.load(Ordering::Acquire);
            if now & !OVERFLOWED == address {
                slot.fetch_and(OVERFLOWED, Ordering::AcqRel);
                return true;
            }
        }
        if slots[0].load(Ordering::Acquire) & OVERFLOWED == 0 {
            return false;
        }
    }
    false
}
