//! The clock that stamps events, and orders those of different threads.

mod stamps;

pub use stamps::{Clock, nanoseconds};

/// Has the processor do all that comes before this before it reads the counter of cycles. Without, the stamp of a free may be
/// earlier than the moment at which the thread was given the block: the counter does not wait for what another core sends.
#[cfg(all(feature = "hooks", target_arch = "x86_64"))]
#[inline]
pub(crate) fn in_order() {
    // SAFETY: every x86-64 processor has the instruction. It changes no memory.
    unsafe { core::arch::x86_64::_mm_lfence() };
}

/// Has the processor do all that comes before this before it reads the counter.
#[cfg(all(feature = "hooks", target_arch = "aarch64"))]
#[inline]
pub(crate) fn in_order() {
    // SAFETY: a barrier, which changes no memory. The compiler keeps the order of memory accesses about it.
    unsafe { core::arch::asm!("isb", options(nostack)) };
}

/// Elsewhere stamps are the system's, which waits by itself.
#[cfg(all(feature = "hooks", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[inline]
pub(crate) fn in_order() {}
