//! The memory that the system allows this process and its children to use. A control group (a container) may be limited
//! to less memory than the machine has.
//!
//! A spool in memory counts toward the memory of its programs, and the system kills a group that uses too much.

use std::fs;
use std::path::{Path, PathBuf};

/// The mount point of control groups.
const ROOT: &str = "/sys/fs/cgroup";

/// Returns the bytes that the control groups of this process may still use, or `u64::MAX` if they are not limited.
#[must_use]
pub fn left() -> u64 {
    left_of(&groups_of("self"))
}

/// Returns the bytes to which the control groups of this process are limited, or `None` if they are not limited.
pub(crate) fn limit() -> Option<u64> {
    limit_of(&groups_of("self"))
}

/// The control group of a process, and the number of its processes that the kernel's OOM killer had killed at first.
#[derive(Debug)]
pub(crate) struct OomKills {
    group: Group,
    before: u64,
}

impl OomKills {
    /// Finds the control group of a running process. Returns `None` if the kernel does not count kills.
    pub(crate) fn of(process: u32) -> Option<Self> {
        let mut groups = groups_of(&process.to_string()).into_iter();
        groups.find_map(|group| Some(Self { before: group.kills()?, group }))
    }

    /// Returns whether the OOM killer has killed a process of the group since.
    pub(crate) fn has_new(&self) -> bool {
        self.group.kills().is_some_and(|kills| kills > self.before)
    }
}

/// A control group, as a directory in which the kernel describes it.
#[derive(Debug)]
struct Group {
    folder: PathBuf,
    /// The names of the files with the limit, the use and the events.
    files: [&'static str; 3],
}

/// The files of version 1 and 2.
const FILES: [[&str; 3]; 2] = [
    ["memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control"],
    ["memory.max", "memory.current", "memory.events"],
];

/// The largest limit in bytes. A group of version 1 without a limit has a larger number.
const MOST: u64 = 1 << 60;

impl Group {
    fn read(&self, file: usize) -> Option<String> {
        fs::read_to_string(self.folder.join(self.files.get(file)?)).ok()
    }

    /// Returns the limit and the used bytes. Without a limit, the text is `max` or a number that exceeds any machine's
    /// memory.
    fn limit(&self) -> Option<(u64, u64)> {
        let number = |file| self.read(file)?.trim().parse().ok();
        Some((number(0)?, number(1)?)).filter(|(limit, _)| *limit < MOST)
    }

    /// Returns the number of processes that the OOM killer has killed.
    fn kills(&self) -> Option<u64> {
        self.read(2)?.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    }
}

fn left_of(groups: &[Group]) -> u64 {
    groups.iter().filter_map(Group::limit).map(|(limit, used)| limit.saturating_sub(used)).min().unwrap_or(u64::MAX)
}

fn limit_of(groups: &[Group]) -> Option<u64> {
    groups.iter().filter_map(Group::limit).map(|(limit, _)| limit).min()
}

fn groups_of(process: &str) -> Vec<Group> {
    groups_in(&fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default(), Path::new(ROOT))
}

/// Returns the groups that may limit memory, each followed by its ancestors. In a separate namespace, the outermost group
/// is the group itself. The groups are given in the format of `/proc/self/cgroup`: `0::/user.slice` in version 2,
/// `4:memory:/user` in version 1.
fn groups_in(lines: &str, root: &Path) -> Vec<Group> {
    let of_line = |line: &str| {
        let (_, named) = line.split_once(':')?;
        let (controllers, group) = named.split_once(':')?;
        let is_second = controllers.is_empty();
        let has_memory = is_second || controllers.split(',').any(|name| name == "memory");
        let root = if is_second { root.to_owned() } else { root.join("memory") };
        let inner = root.join(group.trim_start_matches('/'));
        let around = inner.ancestors().take_while(|folder| folder.starts_with(&root));
        let files = FILES[usize::from(is_second)];
        has_memory.then(|| around.map(|folder| Group { folder: folder.to_owned(), files }).collect::<Vec<_>>())
    };
    lines.lines().filter_map(of_line).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/memory.max", "max\n");
        write("a/memory.current", "5\n");
        write("a/b/memory.max", "1000\n");
        write("a/b/memory.current", "300\n");
        write("memory/c/memory.limit_in_bytes", "600\n");
        write("memory/c/memory.usage_in_bytes", "100\n");
        let left = |groups| left_of(&groups_in(groups, root.path()));
        let limit = |groups| limit_of(&groups_in(groups, root.path()));
        assert_eq!(left("0::/a/b\n"), 700);
        assert_eq!(left("0::/a/b/not/here\n"), 700);
        assert_eq!(left("0::/a\n"), u64::MAX);
        assert_eq!(left("9:name=systemd:/\n4:cpu,memory:/c\n0::/a/b\n"), 500);
        assert_eq!(left("1:cpu:/c\n"), u64::MAX);
        assert_eq!(left(""), u64::MAX);
        write("memory/d/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/d/memory.usage_in_bytes", "100\n");
        assert_eq!(
            [limit("0::/a/b\n"), limit("4:memory:/c\n0::/a/b\n"), limit("0::/a\n")],
            [Some(1000), Some(600), None]
        );
        assert_eq!((limit("4:memory:/d\n"), left("4:memory:/d\n")), (None, u64::MAX));
    }

    #[test]
    fn kills_are_counted() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let kills = |groups| groups_in(groups, root.path()).iter().find_map(Group::kills);
        assert_eq!(kills("4:cpu,memory:/c\n0::/a/b\n"), None);
        write("a/memory.events", "low 0\noom 2\noom_kill 3\noom_group_kill 0\n");
        write("memory/c/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
        assert_eq!((kills("0::/a/b\n"), kills("4:cpu,memory:/c\n0::/a/b\n")), (Some(3), Some(7)));
        let group = groups_in("0::/a\n", root.path()).remove(0);
        let killed = OomKills { group, before: 3 };
        assert!(!killed.has_new());
        write("a/memory.events", "oom_kill 4\n");
        assert!(killed.has_new());
    }
}
