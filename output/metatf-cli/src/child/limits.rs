//! Resource limits of a child.

use std::fs;
use std::path::Path;

/// The wall-clock seconds allowed per CPU second, because other programs also run.
#[cfg(unix)]
const SLOWER: u64 = 10;

#[cfg(unix)]
pub(super) const ABORT: i32 = libc::SIGABRT;
#[cfg(unix)]
pub(super) const OUT_OF_TIME: &[i32] = &[libc::SIGXCPU, libc::SIGALRM];
#[cfg(not(unix))]
pub(super) const ABORT: i32 = 6;
#[cfg(not(unix))]
pub(super) const OUT_OF_TIME: &[i32] = &[];

/// Limits that a child applies to itself. The child also cannot write files, and leaves no core dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildLimits {
    /// The memory limit in bytes. Mapped files are not counted.
    pub memory: u64,
    /// The CPU time limit in seconds, counted from now.
    pub seconds: u64,
    /// Whether wall-clock time is limited as well, to ten times the CPU seconds. Set this only for work that does not
    /// wait for other processes or devices.
    pub is_clocked: bool,
}

impl ChildLimits {
    /// Limits this process. Each call replaces the limits of the previous one.
    #[cfg(unix)]
    pub fn apply(self) {
        let Self { memory, seconds, is_clocked } = self;
        let end = used_seconds().saturating_add(seconds);
        // Set only the soft limits, which a later call can raise.
        for (resource, most) in
            [(libc::RLIMIT_DATA, memory), (libc::RLIMIT_CPU, end), (libc::RLIMIT_CORE, 0), (libc::RLIMIT_FSIZE, 0)]
        {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the call writes to a valid structure.
            if unsafe { libc::getrlimit(resource, &raw mut limit) } == 0 {
                limit.rlim_cur = limit.rlim_max.min(most);
                // SAFETY: the structure is valid. If the call fails, the previous limit remains in effect.
                unsafe { libc::setrlimit(resource, &raw const limit) };
            }
        }
        let passed = if is_clocked { seconds.saturating_mul(SLOWER) } else { 0 };
        alarm(passed);
    }

    /// Does nothing, because this system does not support such limits.
    #[cfg(not(unix))]
    pub fn apply(self) {}

    /// Removes the wall-clock limit while the child waits for its parent.
    pub fn stop_clock() {
        #[cfg(unix)]
        alarm(0);
    }
}

#[cfg(unix)]
fn alarm(seconds: u64) {
    // SAFETY: the call takes a number. Its signal ends this process, which has no handler for it.
    unsafe { libc::alarm(u32::try_from(seconds).unwrap_or(u32::MAX)) };
}

/// Returns the CPU seconds used by this process, rounded up.
#[cfg(unix)]
fn used_seconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to a valid structure.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0).saturating_add(1)
}

/// Returns the total size of files in bytes. A file that cannot be queried counts as empty.
pub fn file_bytes<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> u64 {
    let lengths = paths.into_iter().filter_map(|path| fs::metadata(path).ok()).map(|file| file.len());
    lengths.fold(0, u64::saturating_add)
}
