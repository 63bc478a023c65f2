//! Children of recorded processes that execute a program that cannot load the recorder.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::process::{peak_of, program_of, state};
use crate::record::program::{NotRecordedReason, not_recorded};

/// The shortest interval between two searches.
const SHORTEST: Duration = Duration::from_millis(10);
/// The longest interval between two searches while a child may be an unrecorded program, whose memory is observed.
const LONGEST: Duration = Duration::from_secs(1);
/// The longest interval between two searches while there is no such child.
const LONGEST_ALONE: Duration = Duration::from_secs(60);
/// The next search takes place after half of the time elapsed since a process was created.
const PART: u32 = 2;
/// A search may take up to one in this many parts of the time.
const COST: u32 = 20;
/// Maximum number of processes kept.
const PROCESSES: usize = 10_000;

/// A process ID, and the start time of the process in kernel ticks since boot.
pub(crate) type ProcessKey = (u32, u64);

/// A program that was executed without being recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrecordedProgram {
    /// The program file.
    pub path: PathBuf,
    /// The reason why the program was not recorded, if known.
    pub reason: Option<NotRecordedReason>,
    /// The number of processes that executed the program.
    pub processes: u64,
    /// The highest peak of resident memory of these processes in bytes, if known.
    pub resident: Option<u64>,
}

impl UnrecordedProgram {
    /// Merges the entries of each program file, and sorts the programs by resident memory in descending order.
    #[must_use]
    pub fn merged(programs: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut merged: BTreeMap<PathBuf, Self> = BTreeMap::new();
        for program in programs {
            match merged.entry(program.path.clone()) {
                Entry::Vacant(entry) => drop(entry.insert(program)),
                Entry::Occupied(mut entry) => {
                    let before = entry.get_mut();
                    before.processes += program.processes;
                    before.resident = before.resident.max(program.resident);
                }
            }
        }
        let mut merged: Vec<_> = merged.into_values().collect();
        merged.sort_by_key(|program| std::cmp::Reverse(program.resident));
        merged
    }
}

/// The children of recorded processes, found by searching after a process was created and then at growing intervals.
/// Children that end between two searches are missed.
#[derive(Debug)]
pub(crate) struct Children {
    /// The last time at which a process was created.
    began: Instant,
    next: Instant,
    /// The end of the last search, and the time that the search took.
    last: (Instant, Duration),
    found: BTreeMap<ProcessKey, (PathBuf, Option<u64>)>,
    /// The processes that were recorded.
    recorded: BTreeSet<ProcessKey>,
}

impl Children {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { began: now, next: now, last: (now, Duration::ZERO), found: BTreeMap::new(), recorded: BTreeSet::new() }
    }

    /// Notes that a process is recorded.
    pub(crate) fn is_recorded(&mut self, process: ProcessKey) {
        self.recorded.insert(process);
    }

    /// Searches for children of these processes if a search is due. `created` states whether a process may have been
    /// created since the last call. Returns the time until the next search.
    pub(crate) fn look(&mut self, parents: impl Iterator<Item = u32>, created: bool) -> Duration {
        let now = Instant::now();
        let (ended, cost) = self.last;
        let shortest = SHORTEST.max(cost * COST);
        if created {
            self.began = now;
            self.next = self.next.min(ended + shortest);
        }
        if now < self.next {
            return self.next - now;
        }
        let mut has_unrecorded = false;
        parents.for_each(|parent| has_unrecorded |= self.look_at(parent));
        self.last = (Instant::now(), now.elapsed());
        let longest = if has_unrecorded { LONGEST } else { LONGEST_ALONE };
        let wait = (now.duration_since(self.began) / PART).min(longest).max(SHORTEST.max(self.last.1 * COST));
        self.next = self.last.0 + wait;
        wait
    }

    /// Searches for children of a process. Returns whether one of them executes another program and is not known to be
    /// recorded.
    fn look_at(&mut self, parent: u32) -> bool {
        let mut has_unrecorded = false;
        let Some(own) = program_of(parent) else { return false };
        for child in children(Path::new("/proc"), parent) {
            let Some((_, began)) = state(child) else { continue };
            // A child that has not executed a program yet, or never will, is recorded like its parent.
            let Some(path) = program_of(child).filter(|path| *path != own) else { continue };
            has_unrecorded |= !self.recorded.contains(&(child, began));
            if self.found.len() < PROCESSES || self.found.contains_key(&(child, began)) {
                let (known, resident) = self.found.entry((child, began)).or_default();
                *known = path;
                *resident = peak_of(child).or(*resident);
            }
        }
        has_unrecorded
    }

    /// Returns the programs that cannot load the recorder, in descending order of resident memory.
    pub(crate) fn programs(&self) -> Vec<UnrecordedProgram> {
        let unrecorded = self.found.iter().filter(|(key, _)| !self.recorded.contains(key));
        UnrecordedProgram::merged(unrecorded.filter_map(|(_, (path, resident))| {
            let reason = Some(not_recorded(path.as_os_str())?.reason);
            Some(UnrecordedProgram { path: path.clone(), reason, processes: 1, resident: *resident })
        }))
    }
}

/// Returns the IDs of a process's children. Each thread has a list of the children that it created.
fn children(proc: &Path, parent: u32) -> Vec<u32> {
    let threads = fs::read_dir(proc.join(format!("{parent}/task"))).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_programs_that_cannot_be_recorded_are_reported() {
        let mut children = Children::new();
        let Ok(mut child) = Command::new("sleep").arg("10").spawn() else { return };
        let key = (child.id(), state(child.id()).unwrap().1);
        while !children.found.contains_key(&key) {
            children.next = children.began;
            children.look(std::iter::once(std::process::id()), false);
        }
        let (path, resident) = &children.found[&key];
        assert!(path.is_absolute() && resident.is_some());
        // The dynamic linker loads the recorder into it.
        assert!(children.programs().is_empty());
        child.kill().unwrap();
        child.wait().unwrap();

        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("static");
        let mut header = fs::read("/proc/self/exe").unwrap();
        header.truncate(64);
        // Without program headers, the program has no dynamic linker.
        header[56..58].fill(0);
        fs::write(&program, header).unwrap();
        for (number, resident) in [(1, Some(5)), (2, Some(9)), (3, None)] {
            children.found.insert((number, 0), (program.clone(), resident));
        }
        children.is_recorded((3, 0));
        let expected = UnrecordedProgram {
            path: program,
            reason: Some(NotRecordedReason::Static),
            processes: 2,
            resident: Some(9),
        };
        assert_eq!(children.programs(), [expected]);
    }
}
