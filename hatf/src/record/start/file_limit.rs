//! How many files this process may have open: each process that is recorded takes some.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Files that are open for each process: its spool and the folder of that, its stacks, its trace, and one that says when it ends.
const EACH: u64 = 6;
/// Files that are open besides.
const OTHERS: u64 = 20;
/// More is not asked for: some libraries go through all numbers that a descriptor may have.
const ENOUGH: u64 = 1 << 16;

/// The limit that was found.
pub(super) struct FileLimit {
    before: Option<libc::rlimit>,
    now: u64,
}

impl FileLimit {
    /// Raises the limit as far as this process may.
    pub(super) fn raise() -> Self {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a place for the answer.
        if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
            return Self { before: None, now: EACH + OTHERS };
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max.min(ENOUGH).max(limit.rlim_cur), ..limit };
        // SAFETY: a valid structure.
        let is_raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0;
        Self { before: Some(limit), now: if is_raised { raised.rlim_cur } else { limit.rlim_cur } }
    }

    /// Returns how many processes can be recorded at once beside the first: at least one.
    pub(super) fn most_processes(&self) -> u32 {
        u32::try_from(self.now.saturating_sub(OTHERS) / EACH).unwrap_or(u32::MAX).max(1)
    }

    /// Has a program start with the limit that was found.
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
