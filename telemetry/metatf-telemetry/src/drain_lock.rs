//! The lock of the drain. Only one thread at a time may drain, and a forked child must not use the drain of its parent.

use crate::sync::AtomicU32;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use core::cell::UnsafeCell;

use crate::clock::monotonic;
use crate::drainer::Drainer;
use crate::sys;

/// The drain of a process, and the lock that a thread must hold to use it. A forked child discards both.
pub(crate) struct DrainLock {
    locked: AtomicU32,
    drainer: UnsafeCell<Option<Box<Drainer>>>,
}

// SAFETY: the drainer is accessed only in `with`, while the lock is held. The drainer may be sent between threads,
// because its mapping belongs to the process.
unsafe impl Sync for DrainLock {}

/// Releases the lock when dropped, even in a panic.
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

    /// Calls `f` with the drainer. Returns `None` if another thread holds the lock for longer than the given time.
    pub(crate) fn with<T>(&self, milliseconds: u64, f: impl FnOnce(&mut Option<Box<Drainer>>) -> T) -> Option<T> {
        let until = monotonic().saturating_add(milliseconds.saturating_mul(1_000_000));
        while self.locked.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            if monotonic() > until {
                return None;
            }
            sys::pause();
        }
        let unlock = Unlock(&self.locked);
        // SAFETY: the lock is held until `unlock` is dropped, so there is no other reference.
        let result = f(unsafe { &mut *self.drainer.get() });
        drop(unlock);
        Some(result)
    }

    /// Discards the parent's drainer in a forked child. Another thread of the parent may have been using it during the
    /// fork.
    ///
    /// # Safety
    /// There must be only one thread, and it must not hold the lock.
    pub(crate) unsafe fn forget(&self) {
        // SAFETY: there is no other thread. The old drainer is not dropped, because its file belongs to the parent.
        unsafe { core::ptr::write(self.drainer.get(), None) };
        self.locked.store(0, Relaxed);
    }
}

#[cfg(all(loom, test))]
mod models {
    use super::*;
    use crate::sync::model::{Share as _, model, spawn};

    /// A thread that gets the drainer sees the changes of the thread that had it before.
    #[test]
    fn one_thread_has_the_drainer() {
        let (lock, done): (&DrainLock, &AtomicU32) = (Box::leak(Box::new(DrainLock::new())), Box::leak(Box::default()));
        model(2, move || {
            lock.locked.share();
            done.share();
            let drain = move || lock.with(0, |_| done.store(done.load(Relaxed) + 1, Relaxed));
            let threads = [spawn(drain), spawn(drain)].map(|thread| thread.join().unwrap());
            assert_eq!(done.load(Relaxed) as usize, threads.iter().flatten().count());
            assert_eq!(done.load(Relaxed), 2);
        });
    }
}
