//! Two clocks that are consistent across all threads of a machine.
//!
//! `telemetry/metatf-telemetry/src/clock/stamps.rs` is a symbolic link to this file. The recorder does not use the
//! standard library, and a program that emits telemetry events depends on libc alone, so neither crate can depend on
//! the other.

/// A clock that is consistent across all threads of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Clock {
    /// The CPU's cycle counter (x86-64) or tick counter (AArch64).
    Cycles = 1,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    Monotonic = 2,
}

impl Clock {
    /// Returns the clock with this number, if there is one.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Cycles),
            2 => Some(Self::Monotonic),
            _ => None,
        }
    }

    /// Returns the current time.
    #[inline(always)]
    #[must_use]
    pub fn now(self) -> u64 {
        match self {
            Self::Cycles => cycles(),
            Self::Monotonic => nanoseconds(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn cycles() -> u64 {
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
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

/// Returns the current `CLOCK_MONOTONIC` time in nanoseconds.
#[cold]
#[must_use]
pub fn nanoseconds() -> u64 {
    // In a model, do not read the real clock, because all executions of a model must be identical.
    #[cfg(all(loom, test))]
    if crate::sync::model::is_running() {
        return 0;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result, and this clock always exists. This is not a system call if the
    // kernel maps its clock into processes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec.cast_unsigned())
}
