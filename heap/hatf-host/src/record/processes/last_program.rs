//! The program that a process executed last, if it did not load the recorder.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hatf_record::Header;

use super::process::{peak_of, program_of};
use super::unrecorded_children::UnrecordedProgram;
use crate::record::program::not_recorded;

/// The time after `exec` during which each call looks at the program, because it may end soon.
const SOON: Duration = Duration::from_millis(100);
/// The interval of later looks.
const LATER: Duration = Duration::from_millis(100);

/// A program that does not load the recorder, as the kernel describes it.
#[derive(Debug, Default)]
pub(crate) struct LastProgram {
    /// The times of the first and the last look.
    looked: Option<(Instant, Instant)>,
    path: Option<PathBuf>,
    /// The peak of resident memory in bytes.
    resident: Option<u64>,
}

impl LastProgram {
    /// Examines the process if it has executed a program that has not loaded the recorder.
    #[inline]
    pub(crate) fn look(&mut self, header: &Header, process: u32) {
        if header.becomes.load(Ordering::Relaxed) != 0 {
            self.examine(process);
        } else if self.looked.is_some() {
            *self = Self::default();
        }
    }

    #[cold]
    fn examine(&mut self, process: u32) {
        let now = Instant::now();
        let (first, last) = self.looked.unwrap_or((now, now));
        if self.looked.is_some() && now.duration_since(first) > SOON && now.duration_since(last) < LATER {
            return;
        }
        self.looked = Some((first, now));
        self.path = program_of(process).or(self.path.take());
        self.resident = peak_of(process).or(self.resident);
    }

    /// Returns the program, if known. `before` contains the programs that were recorded: if `exec` has not completed at
    /// the last look, the kernel still names one of them.
    pub(crate) fn program(&self, before: &BTreeSet<PathBuf>) -> Option<UnrecordedProgram> {
        let path = self.path.clone().filter(|path| !before.contains(path))?;
        let reason = not_recorded(path.as_os_str()).map(|found| found.reason);
        Some(UnrecordedProgram { path, reason, processes: 1, resident: self.resident })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_program_is_not_named() {
        let mut last = LastProgram::default();
        last.examine(std::process::id());
        let own = std::env::current_exe().unwrap();
        let found = last.program(&BTreeSet::new()).unwrap();
        assert_eq!((&found.path, found.reason, found.processes), (&own, None, 1));
        assert!(found.resident.unwrap() > 0);
        assert_eq!(last.program(&BTreeSet::from([own])), None);
    }
}
