//! The clock that stamps events and orders the events of different threads.

mod stamps;

pub use stamps::{Clock, nanoseconds};

/// Makes the CPU complete all preceding instructions before it reads the cycle counter. Otherwise, the stamp of a free
/// could be earlier than the point at which the thread received the block, because reading the counter does not wait
/// for data from other cores.
#[cfg(all(feature = "hooks", target_arch = "x86_64"))]
#[inline]
pub(crate) fn in_order() {
    // SAFETY: every x86-64 CPU has the instruction. It changes no memory.
    unsafe { core::arch::x86_64::_mm_lfence() };
}

/// Makes the CPU complete all preceding instructions before it reads the counter.
#[cfg(all(feature = "hooks", target_arch = "aarch64"))]
#[inline]
pub(crate) fn in_order() {
    // SAFETY: a barrier that changes no memory. The compiler preserves the order of memory accesses around it.
    unsafe { core::arch::asm!("isb", options(nostack)) };
}

/// Does nothing. On other architectures, stamps come from the system, which orders them itself.
#[cfg(all(feature = "hooks", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[inline]
pub(crate) fn in_order() {}
