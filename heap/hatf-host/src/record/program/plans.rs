//! The plans for statically linked allocators, which recorded processes read when they start.

use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use hatf_record::Header;
use hatf_record::linked::{PLANS, Source};
use hatf_record::names::LINKED;

use super::executable::open;
use super::linked::{LinkedIn, searched};
use crate::record::spool::SpoolFile;

/// Writes the plans for the programs of a recording.
pub(crate) struct Plans<'a> {
    /// The spool of the first process, next to which all processes look for plans.
    first: &'a SpoolFile,
}

impl<'a> Plans<'a> {
    pub(crate) fn new(first: &'a SpoolFile) -> Self {
        Self { first }
    }

    /// Writes the plan for the first program before it runs, and makes all processes ask for further plans.
    pub(crate) fn begin(&self, program: &OsStr) {
        if let Some((source, found)) = open(program).and_then(|(path, file)| searched(path, &file)) {
            self.write(source, found.as_ref());
        }
        self.first.spool().header().plans.store(PLANS, Ordering::Relaxed);
    }

    /// Writes the plan for the program that a process executes, if the process has asked for it.
    #[inline]
    pub(crate) fn look(&self, header: &Header, process: u32) {
        if let Some(number) = header.asked_plan() {
            self.give(header, number, process);
        }
    }

    /// Writes the plan for the program that a process executes. Tells the process even on failure, so that it does not
    /// wait any longer.
    #[cold]
    fn give(&self, header: &Header, number: u32, process: u32) {
        let executable = PathBuf::from(format!("/proc/{process}/exe"));
        let path = || std::fs::read_link(&executable).unwrap_or_else(|_| executable.clone());
        let found = File::open(&executable).ok().and_then(|file| searched(path(), &file));
        if let Some((source, found)) = found {
            self.write(source, found.as_ref());
        }
        for header in [header, self.first.spool().header()] {
            header.plans.store(PLANS, Ordering::Relaxed);
        }
        header.give_plan(number);
    }

    /// Writes a plan. It contains no functions if the program has no allocator that can be recorded.
    fn write(&self, source: Source, found: Option<&LinkedIn>) {
        let nothing = source.to_bytes();
        let plan = found.and_then(LinkedIn::plan).unwrap_or(&nothing);
        let numbers = source.numbers().map(|number| number.to_string());
        // If this fails, the calls are not recorded, which the trace states.
        let _ = self.first.write(&format!("{LINKED}{}", numbers.join("-")), plan);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatf_record::CHUNK_BYTES;
    use hatf_record::linked::NO_PLANS;

    /// Each request is answered once, even for a process that does not exist or if the header contains nonsense.
    #[test]
    fn requests_are_answered() {
        let file = SpoolFile::create(None, 64 * CHUNK_BYTES as u64).unwrap();
        let plans = Plans::new(&file);
        let header = file.spool().header();
        assert_eq!((header.plans.load(Ordering::Relaxed), header.asked_plan()), (NO_PLANS, None));
        let number = header.ask_plan();
        assert_eq!(header.asked_plan(), Some(number));
        plans.look(header, u32::MAX);
        assert_eq!((header.asked_plan(), header.given_plan()), (None, number));
        let is_plan = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(LINKED);
        let written = || {
            let entries = std::fs::read_dir(file.folder().path()).unwrap();
            entries.filter(|entry| is_plan(&entry.as_ref().unwrap().file_name())).count()
        };
        assert_eq!(written(), 0);
        header.ask_plan();
        plans.look(header, std::process::id());
        plans.look(header, std::process::id());
        assert_eq!((header.asked_plan(), written()), (None, 1));
        // A plan is removed with the spool.
        let folder = file.folder().path().to_owned();
        drop(file);
        assert!(!folder.exists());
    }
}
