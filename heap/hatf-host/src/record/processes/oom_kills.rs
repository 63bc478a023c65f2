//! Kills by the kernel's OOM killer in the cgroup of a process.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The mount point of cgroups.
const MOUNT: &str = "/sys/fs/cgroup";

/// The cgroup of a process, and the number of its processes that the OOM killer had killed when recording began.
#[derive(Debug)]
pub(crate) struct OomKills {
    cgroup: Cgroup,
    before: u64,
}

/// The directory of a cgroup that limits memory.
#[derive(Debug, PartialEq, Eq)]
struct Cgroup {
    folder: PathBuf,
    is_version_2: bool,
}

impl OomKills {
    /// Finds the cgroup of a running process. Returns `None` if the kernel does not count OOM kills.
    pub(crate) fn of(process: u32) -> Option<Self> {
        let lines = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
        cgroups(&lines, Path::new(MOUNT)).into_iter().find_map(|cgroup| {
            let before = cgroup.kills()?;
            Some(Self { cgroup, before })
        })
    }

    /// Returns the description for the user metadata if the OOM killer has killed a process of the cgroup since.
    pub(crate) fn to_json(&self) -> Option<Value> {
        (self.cgroup.kills()? > self.before).then(|| json!({"limit": self.cgroup.limit()}))
    }
}

impl Cgroup {
    /// Returns the number of processes that the OOM killer has killed.
    fn kills(&self) -> Option<u64> {
        let file = if self.is_version_2 { "memory.events" } else { "memory.oom_control" };
        let text = fs::read_to_string(self.folder.join(file)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    }

    /// Returns the limit in bytes, or `None` if there is no limit.
    fn limit(&self) -> Option<u64> {
        let file = if self.is_version_2 { "memory.max" } else { "memory.limit_in_bytes" };
        let limit: u64 = fs::read_to_string(self.folder.join(file)).ok()?.trim().parse().ok()?;
        // In version 1, the largest number of whole pages means that there is no limit.
        (limit < 1 << 62).then_some(limit)
    }
}

/// Returns the cgroups of a process that may limit its memory, given the content of its `/proc/PID/cgroup`. In a
/// container, the paths may be those of the host, whereas the mounted root is already the container's cgroup.
fn cgroups(lines: &str, mount: &Path) -> Vec<Cgroup> {
    let mut found = Vec::new();
    for line in lines.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let is_version_2 = controllers.is_empty();
        if !is_version_2 && !controllers.split(',').any(|name| name == "memory") {
            continue;
        }
        let root = if is_version_2 { mount.to_owned() } else { mount.join("memory") };
        for folder in [root.join(path.trim_start_matches('/')), root] {
            found.push(Cgroup { folder, is_version_2 });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_have_folders() {
        let folder = |path: &str, is_version_2| Cgroup { folder: path.into(), is_version_2 };
        let lines = "8:pids:/x\n4:cpu,memory:/docker/1\n0::/user.slice\nnonsense\n1:memory\n";
        let expected = [
            folder("/c/memory/docker/1", false),
            folder("/c/memory", false),
            folder("/c/user.slice", true),
            folder("/c/", true),
        ];
        assert_eq!(cgroups(lines, Path::new("/c/")), expected);
    }

    #[test]
    fn kills_and_limits_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let (first, second) = [false, true].map(|is_version_2| Cgroup { folder: path.to_owned(), is_version_2 }).into();
        assert_eq!((first.kills(), second.kills(), second.limit()), (None, None, None));
        fs::write(path.join("memory.events"), "low 0\noom 2\noom_kill 3\noom_group_kill 0\n").unwrap();
        fs::write(path.join("memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n").unwrap();
        fs::write(path.join("memory.max"), "max\n").unwrap();
        fs::write(path.join("memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        assert_eq!((first.kills(), second.kills()), (Some(7), Some(3)));
        assert_eq!((first.limit(), second.limit()), (None, None));
        fs::write(path.join("memory.max"), "100663296\n").unwrap();
        let kills = OomKills { cgroup: second, before: 3 };
        assert_eq!(kills.to_json(), None);
        fs::write(path.join("memory.events"), "oom_kill 4\n").unwrap();
        assert_eq!(kills.to_json(), Some(json!({"limit": 100_663_296})));
    }
}
