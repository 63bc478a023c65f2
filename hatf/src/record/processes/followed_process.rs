//! A process that the program made: its numbers, and its program.

use std::sync::atomic::Ordering;

use crate::record::spool::SpoolFile;

/// A process that the recorded program made, or one that such a process made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedProcess {
    /// Its number: 2, 3, ... in the order in which they first allocated. The program that was started is 1.
    pub number: u32,
    /// The system's number of it.
    pub process: u32,
    /// The process that made it.
    pub parent: u32,
    /// The program and its arguments, as they were when it first allocated.
    pub command: Vec<String>,
}

impl FollowedProcess {
    /// Reads what a spool says of its process.
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

    /// Returns the program's name, without folders.
    #[must_use]
    pub fn name(&self) -> &str {
        let program = self.command.first().map_or("", String::as_str);
        program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("process")
    }
}
