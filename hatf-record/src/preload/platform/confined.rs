//! Detects a possible system call filter, which may kill a program for a call that only the recorder makes.
//!
//! It cannot be asked for: that is a system call. So it is noted when the program says what it has to say before it may have a filter. A filter that was
//! there before the program began is not noticed; `hatf record`, which usually runs under the same one, has made all of these calls by then.
//!
//! From then on hooks make those system calls alone that the C library makes for memory and for threads: `mmap`, `munmap`, `mprotect`, `madvise`, `futex`
//! and `sched_yield`.

use core::sync::atomic::{AtomicBool, Ordering};

static CONFINED: AtomicBool = AtomicBool::new(false);

/// Notes that the program has a filter, or may have one soon.
pub(crate) fn note() {
    CONFINED.store(true, Ordering::Relaxed);
}

/// Returns whether the program may have a filter.
#[inline]
pub(crate) fn is_confined() -> bool {
    CONFINED.load(Ordering::Relaxed)
}
