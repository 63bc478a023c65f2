//! Who may drain: one thread at a time, and in a forked child nobody of its parent.

use crate::sync::AtomicU32;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use core::cell::UnsafeCell;

use crate::clock::monotonic;
use crate::drainer::Drainer;
use crate::sys;

/// The drain of a process, and the lock that one thread at a time holds. A forked child forgets both.
pub(crate) struct DrainLock {
    locked: AtomicU32,
    drainer: UnsafeCell<Option<Box<Drainer>>>,
}

// SAFETY: the drainer is reached by `with` alone, while the lock is held. It may be sent: its mapping is of the process.
unsafe impl Sync for DrainLock {}

/// Opens the lock, whatever happens.
struct Unlock<'l>(&'l AtomicU32);

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

impl DrainLock {
    pub(crate) const fn new() -> Self {
        Self { locked: AtomicU32::new(0), drainer: UnsafeCell::new(None) }
    }

    /// Gives the drainer to `f`. `None` if somebody else has it for longer than that.
    pub(crate) fn with<T>(&self, milliseconds: u64, f: impl FnOnce(&mut Option<Box<Drainer>>) -> T) -> Option<T> {
        let until = monotonic().saturating_add(milliseconds.saturating_mul(1_000_000));
        while self.locked.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            if monotonic() > until {
                return None;
            }
            sys::pause();
        }
        let unlock = Unlock(&self.locked);
        // SAFETY: the lock is held until `unlock` goes, so nobody else has a reference.
        let result = f(unsafe { &mut *self.drainer.get() });
        drop(unlock);
        Some(result)
    }

    /// Forgets the parent's drainer, in a forked child: another thread may have been at it.
    ///
    /// # Safety
    /// There is one thread, and it does not hold the lock.
    pub(crate) unsafe fn forget(&self) {
        // SAFETY: no other thread is there. What it was is not dropped: its file is the parent's.
        unsafe { core::ptr::write(self.drainer.get(), None) };
        self.locked.store(0, Relaxed);
    }
}
