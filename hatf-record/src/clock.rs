//! The clock that stamps events, and orders those of different threads.

/// A clock. All threads of a machine see the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Clock {
    /// The processor's counter of cycles (x86-64) or of ticks (AArch64).
    Cycles = 1,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    Monotonic = 2,
}

impl Clock {
    /// Returns the clock of that number, if there is one.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Cycles),
            2 => Some(Self::Monotonic),
            _ => None,
        }
    }

    /// Returns the time.
    #[inline]
    #[must_use]
    pub fn now(self) -> u64 {
        match self {
            Self::Cycles => cycles(),
            Self::Monotonic => nanoseconds(),
        }
    }
}

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

#[cfg(target_arch = "x86_64")]
#[inline]
fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn cycles() -> u64 {
    let count: u64;
    // SAFETY: Linux lets programs read this register.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
    count
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn cycles() -> u64 {
    nanoseconds()
}

/// Returns the nanoseconds of `CLOCK_MONOTONIC`.
#[must_use]
pub fn nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer; this clock always exists. Not a system call where the kernel
    // maps its clock into processes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec.cast_unsigned())
}
