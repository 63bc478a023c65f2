//! Identification of a process created by the program.

use std::sync::atomic::Ordering;

use crate::record::spool::SpoolFile;

/// A process that the recorded program created, directly or through another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedProcess {
    /// The number of the process: 2, 3, ... in the order of their first allocations. The program that was started is
    /// number 1.
    pub number: u32,
    /// The process ID.
    pub process: u32,
    /// The ID of the parent process.
    pub parent: u32,
    /// The program and its arguments at the time of the first allocation.
    pub command: Vec<String>,
}

impl FollowedProcess {
    /// Reads the identification of a process from its spool.
    pub(crate) fn of(file: &SpoolFile) -> Self {
        let spool = file.spool();
        let header = spool.header();
        Self {
            number: header.number.load(Ordering::Relaxed).saturating_add(1),
            process: header.process.load(Ordering::Relaxed),
            parent: header.parent.load(Ordering::Relaxed),
            command: file.command(),
        }
    }

    /// Returns the file name of the program.
    #[must_use]
    pub fn name(&self) -> &str {
        let program = self.command.first().map_or("", String::as_str);
        program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("process")
    }
}
