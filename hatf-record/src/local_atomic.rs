//! A word that is atomic for one thread and its signal handlers: each change is one instruction, so that a handler comes before it or after it. No
//! other thread may look at it.

use core::sync::atomic::{AtomicUsize, Ordering};

/// A word of one thread, and its signal handlers.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct LocalAtomic(AtomicUsize);

impl LocalAtomic {
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    #[inline]
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds, and returns what it was before.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn fetch_add(&self, add: usize) -> usize {
        let before: usize;
        // SAFETY: changes the word, and the flags. Without a `lock` prefix, which costs more than all the rest of an event:
        // no other thread looks at it.
        unsafe {
            core::arch::asm!(
                "xadd qword ptr [{word}], {add}",
                word = in(reg) self.0.as_ptr(),
                add = inout(reg) add => before,
                options(nostack),
            );
        }
        before
    }

    /// Adds, and returns what it was before.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    pub(crate) fn fetch_add(&self, add: usize) -> usize {
        self.0.fetch_add(add, Ordering::Relaxed)
    }

    /// Changes it from one value to another; `false` if it has not that value.
    #[inline]
    pub(crate) fn replace(&self, from: usize, to: usize) -> bool {
        self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
