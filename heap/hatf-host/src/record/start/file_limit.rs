//! The limit on open files for this process, which needs several files per recorded process.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// An upper bound for the number of open files per process: its spool, the spool's directory, its stacks, its trace,
/// and a descriptor that reports its end.
const EACH: u64 = 6;
/// The number of other open files.
const OTHERS: u64 = 20;
/// Maximum limit to request, because some libraries iterate over all possible descriptors.
const ENOUGH: u64 = 1 << 16;

/// The original limit.
pub(super) struct FileLimit {
    before: Option<libc::rlimit>,
    now: u64,
}

impl FileLimit {
    /// Raises the limit as far as this process is permitted to.
    pub(super) fn raise() -> Self {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the pointer is to a valid struct that receives the result.
        if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
            return Self { before: None, now: EACH + OTHERS };
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max.min(ENOUGH).max(limit.rlim_cur), ..limit };
        // SAFETY: the pointer is to a valid struct.
        let is_raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0;
        Self { before: Some(limit), now: if is_raised { raised.rlim_cur } else { limit.rlim_cur } }
    }

    /// Returns the number of processes that can be recorded in addition to the first process. The result is at least 1.
    pub(super) fn most_processes(&self) -> u32 {
        u32::try_from(self.now.saturating_sub(OTHERS) / EACH).unwrap_or(u32::MAX).max(1)
    }

    /// Makes a program start with the original limit.
    pub(super) fn restore_in(&self, program: &mut Command) {
        let Some(before) = self.before else { return };
        // SAFETY: `setrlimit` may be called between fork and exec.
        unsafe {
            program.pre_exec(move || {
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const before);
                Ok(())
            });
        }
    }
}
