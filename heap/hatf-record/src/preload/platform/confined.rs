//! Detects a possible system call filter, which may kill a program for a call that only the recorder makes.
//!
//! A query would itself be a system call. Therefore the calls that a program must make before it can have a filter are
//! noted. A filter installed before the program began is not detected; `hatf record`, which usually runs under the same
//! filter, has made all of these calls by then.
//!
//! From then on, hooks make only system calls that the C library makes for memory and threads: `mmap`, `munmap`,
//! `mprotect`, `madvise`, `futex` and `sched_yield`.

use core::sync::atomic::{AtomicBool, Ordering};

static CONFINED: AtomicBool = AtomicBool::new(false);

/// Records that the program has a filter, or may have one soon.
pub(crate) fn note() {
    CONFINED.store(true, Ordering::Relaxed);
}

/// Returns whether the program may have a filter.
#[inline]
pub(crate) fn is_confined() -> bool {
    CONFINED.load(Ordering::Relaxed)
}
